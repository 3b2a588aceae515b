"""What this room hangs on others; ``app.py`` calls it."""

from __future__ import annotations

from lastcall.clubs.gates import bump_gates_of_person
from lastcall.clubs.personal import SOURCES
from lastcall.people.listeners import on_person_blocked
from lastcall.people.personal_data import holds


def register() -> None:
    """Blocking a person moves the gates of their clubs in the same transaction; and what clubs hold about people.
    Registering twice is once.
    """
    holds(*SOURCES)
    on_person_blocked(bump_gates_of_person)
