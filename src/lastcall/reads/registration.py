"""What this room hangs on others; ``app.py`` calls it."""

from __future__ import annotations

from lastcall.people.personal_data import holds
from lastcall.reads.personal import SOURCES


def register() -> None:
    """Say what reads keep about people. Registering twice is once."""
    holds(*SOURCES)
