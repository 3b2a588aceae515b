"""What this room hangs on others; ``app.py`` calls it."""

from __future__ import annotations

from lastcall.access.mails import ACCEPTED, DECIDED
from lastcall.access.personal import RULES, SOURCES, hold_clubs
from lastcall.people.data_retention import keep
from lastcall.people.listeners import on_person_erasing
from lastcall.people.personal_data import holds
from lastcall.people.preferences import declare_topic


def register() -> None:
    """Say what the door keeps about people, and hold the clubs in which an erased person leaves traces.
    Registering twice is once.
    """
    declare_topic(ACCEPTED)
    declare_topic(DECIDED)
    on_person_erasing(hold_clubs)
    holds(*SOURCES)
    keep(*RULES)
