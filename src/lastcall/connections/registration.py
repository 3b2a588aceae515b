"""What this room hangs on others; ``app.py`` calls it."""

from __future__ import annotations

from lastcall.clubs.listeners import on_club_changed
from lastcall.connections.closing import club_changed


def register() -> None:
    """An archived club is disconnected in the same transaction. Registering twice is once."""
    on_club_changed(club_changed)
