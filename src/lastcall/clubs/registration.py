"""What this room hangs on others; ``app.py`` calls it."""

from __future__ import annotations

from lastcall.clubs.gates import bump_gates_of_person
from lastcall.people.listeners import on_person_blocked


def register() -> None:
    """Blocking a person moves the gates of their clubs in the same transaction. Registering twice is once."""
    on_person_blocked(bump_gates_of_person)
