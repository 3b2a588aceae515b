"""What approvals keep about a person: what they asked, said and decided."""

from __future__ import annotations

from lastcall.people.personal_data import PersonalData

SOURCES = (
    PersonalData(
        "approval you asked for",
        ("approvals.requested_by_person_id",),
        "select a.club_id || ' ' || a.id as k, c.slug as club, a.type, a.title, a.body, a.status, a.created_at,"
        " a.activity_at, a.decided_at, a.decision_note"
        " from approvals a join clubs c on c.id = a.club_id where a.requested_by_person_id = :person",
        kept="The club's record of what was asked, by id.",
    ),
    PersonalData(
        "approval you decided",
        ("approvals.decided_by",),
        "select a.club_id || ' ' || a.id as k, c.slug as club, a.type, a.status, a.decided_at, a.decision_note"
        " from approvals a join clubs c on c.id = a.club_id where a.decided_by = :person",
        kept="The club's record of who decided, by id.",
    ),
    PersonalData(
        "comment on an approval",
        ("approval_comments.person_id",),
        "select m.club_id || ' ' || m.id as k, c.slug as club, m.kind, m.body, m.created_at"
        " from approval_comments m join clubs c on c.id = m.club_id where m.person_id = :person",
        kept="The club's record of what was said before it was decided, by id.",
    ),
)
