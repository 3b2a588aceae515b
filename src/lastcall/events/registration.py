"""What this room hangs on others; ``app.py`` calls it."""

from __future__ import annotations

from lastcall.events.personal import SOURCES
from lastcall.people.personal_data import holds


def register() -> None:
    """Say what events hold about people. Registering twice is once."""
    holds(*SOURCES)
