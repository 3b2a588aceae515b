"""What events keep about a person: that they made one, by their id."""

from __future__ import annotations

from lastcall.people.personal_data import PersonalData

SOURCES = (
    PersonalData(
        "event you made",
        ("events.created_by",),
        "select e.id::text as k, c.slug as club, e.title, e.created_at, e.removed_at"
        " from events e join clubs c on c.id = e.club_id where e.created_by = :person",
        kept="The club's record of who made its event, by id.",
    ),
)
