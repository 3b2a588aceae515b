"""What retention keeps about a person: that they archived something, by their id."""

from __future__ import annotations

from lastcall.people.personal_data import PersonalData

SOURCES = (
    PersonalData(
        "item you archived",
        ("retention.archived_by_person_id",),
        "select r.id::text as k, c.slug as club, r.archived_at"
        " from retention r join clubs c on c.id = r.club_id where r.archived_by_person_id = :person",
        kept="The club's record of who archived, by id.",
    ),
)
