"""What events keep about a person: that they made one or read a calendar, by their id; and for how long what a calendar
said is kept."""

from __future__ import annotations

from datetime import timedelta

from lastcall.people.data_retention import Rule
from lastcall.people.personal_data import PersonalData

SOURCES = (
    PersonalData(
        "event you made",
        ("events.created_by",),
        "select e.id::text as k, c.slug as club, e.title, e.created_at, e.removed_at"
        " from events e join clubs c on c.id = e.club_id where e.created_by = :person",
        kept="The club's record of who made its event, by id.",
    ),
    PersonalData(
        "calendar you imported",
        ("calendar_imports.created_by",),
        "select i.id::text as k, c.slug as club, i.source_kind, i.source, i.name, i.created_at"
        " from calendar_imports i join clubs c on c.id = i.club_id where i.created_by = :person",
        kept="It goes with the document, 30 days after it was read.",
    ),
)

RULES = (
    Rule(
        "what an imported calendar said, after it was read",
        "calendar_imports",
        "created_at",
        timedelta(days=30),
    ),
)
