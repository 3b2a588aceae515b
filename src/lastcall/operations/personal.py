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
)
