"""What the ledger of operations keeps about a person: that they queued something, by their id, for good."""

from __future__ import annotations

from lastcall.people.personal_data import PersonalData

# Whom an action was for is another person's data, so an export counts targets and names none.
SOURCES = (
    PersonalData(
        "action you queued",
        ("operation_requests.created_by",),
        "select r.id::text as k, c.slug as club, r.kind, r.size as targets, r.due_at, r.created_at"
        " from operation_requests r join clubs c on c.id = r.club_id where r.created_by = :person",
        kept="The ledger's truth: who asked, by id.",
    ),
    PersonalData(
        "action under your authority",
        ("operations.actor_id",),
        "select c.slug || ' ' || o.kind || ' ' || o.state as k, c.slug as club, o.kind, o.state, count(*) as actions,"
        " min(o.due_at) as first_due_at, max(o.due_at) as last_due_at"
        " from operations o join clubs c on c.id = o.club_id where o.actor_id = :person group by 1, 2, 3, 4",
        kept="The ledger's truth: under whose authority it was sent, by id.",
    ),
    PersonalData(
        "action edited",
        ("operation_revisions.actor_id", "operation_revisions.edited_by"),
        "select r.operation_id || ' ' || r.revision as k, c.slug as club, r.revision,"
        " r.actor_id = :person as under_your_authority, r.edited_by = :person as edited_by_you, r.due_at, r.edited_at"
        " from operation_revisions r join clubs c on c.id = r.club_id where :person in (r.actor_id, r.edited_by)",
        kept="The ledger's truth: what it said before an edit, under whose authority, and who changed it, by id.",
    ),
)
