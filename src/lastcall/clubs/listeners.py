"""What must happen in the same transaction when a club's life or its retention changes (ACC-06).

``clubs/`` knows nothing of retention, connections and operations, so the higher rooms register here;
``app.py`` lists who does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

from lastcall.db.transaction import Transaction


class ClubChange(StrEnum):
    """What happened to the club."""

    RETENTION = "retention"
    PAUSED = "paused"
    RESUMED = "resumed"
    ARCHIVED = "archived"
    UNARCHIVED = "unarchived"
    DELETED = "deleted"


ClubListener: TypeAlias = Callable[[Transaction, UUID, ClubChange], Awaitable[None]]

_listeners: list[ClubListener] = []


def on_club_changed(listener: ClubListener) -> None:
    """Call ``listener(tx, club_id, change)`` after the change, in its transaction and with the club's gate held.

    A listener that raises undoes the change; one of the house's errors is what the person then reads.
    Registering twice is once.
    """
    if listener not in _listeners:
        _listeners.append(listener)


async def club_changed(tx: Transaction, club_id: UUID, change: ClubChange) -> None:
    """Tell every listener."""
    for listener in _listeners:
        await listener(tx, club_id, change)
