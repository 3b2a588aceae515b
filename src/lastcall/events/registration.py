"""What this room hangs on others; ``app.py`` calls it."""

from __future__ import annotations

from lastcall.events.personal import RULES, SOURCES
from lastcall.people.data_retention import keep
from lastcall.people.personal_data import holds


def register() -> None:
    """Say what events hold about people, and how long what was imported is kept. Registering twice is once."""
    holds(*SOURCES)
    keep(*RULES)
