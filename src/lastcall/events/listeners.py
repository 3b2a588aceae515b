"""What must happen in the same transaction when an event changes (EVT-01).

``events/`` knows nothing of operations, so the lower room registers here; ``app.py`` lists who does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from lastcall.db.transaction import Transaction
from lastcall.events.times import EventTime, Timed


@dataclass(frozen=True)
class EventChange:
    """What one write did to an event. ``before`` is None for a new one.

    Cancelling and removing raise the event's ``cancel_generation``, losing the exact start its ``tba_generation``;
    they are in its row when listeners are told.
    """

    club_id: UUID
    event_id: UUID
    before: EventTime | None
    after: EventTime
    is_cancelled: bool = False
    """It was cancelled just now."""
    is_removed: bool = False

    @property
    def is_moved(self) -> bool:
        """It had an exact start and has another one now."""
        return (
            isinstance(self.before, Timed)
            and isinstance(self.after, Timed)
            and self.before.starts_at != self.after.starts_at
        )

    @property
    def lost_time(self) -> bool:
        """It had an exact start and has none any more."""
        return isinstance(self.before, Timed) and not isinstance(self.after, Timed)


EventListener: TypeAlias = Callable[[Transaction, EventChange], Awaitable[None]]

_listeners: list[EventListener] = []


def on_event_change(listener: EventListener) -> None:
    """Call ``listener(tx, change)`` after each write of an event, in its transaction, while the writer holds the club's
    gate and the event's row.

    A listener that raises undoes the write; one of the house's errors is what the person then reads. Registering
    twice is once.
    """
    if listener not in _listeners:
        _listeners.append(listener)


async def event_changed(tx: Transaction, change: EventChange) -> None:
    """Tell every listener."""
    for listener in _listeners:
        await listener(tx, change)
