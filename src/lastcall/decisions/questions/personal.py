"""What decisions keep about a person: what they asked and what they chose."""

from __future__ import annotations

from lastcall.people.personal_data import PersonalData

SOURCES = (
    PersonalData(
        "decision you asked for",
        ("decisions.requested_by_person_id",),
        "select d.club_id || ' ' || d.id as k, c.slug as club, d.title, d.body, d.options, d.status, d.created_at,"
        " d.expires_at, d.decided_option, d.decided_at, d.decision_note"
        " from decisions d join clubs c on c.id = d.club_id where d.requested_by_person_id = :person",
        kept="The club's record of what was asked, by id.",
    ),
    PersonalData(
        "decision you made",
        ("decisions.decided_by",),
        "select d.club_id || ' ' || d.id as k, c.slug as club, d.decided_option, d.decided_at, d.decision_note"
        " from decisions d join clubs c on c.id = d.club_id where d.decided_by = :person",
        kept="The club's record of who decided, by id.",
    ),
)
