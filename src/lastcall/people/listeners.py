"""What must happen in the same transaction when a person loses their authority everywhere.

``people/`` knows nothing of clubs, so a higher room registers here; ``app.py`` lists who does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias
from uuid import UUID

from lastcall.db.transaction import Transaction

PersonListener: TypeAlias = Callable[[Transaction, UUID], Awaitable[None]]

_listeners: list[PersonListener] = []
_erasing: list[PersonListener] = []


def on_person_blocked(listener: PersonListener) -> None:
    """Call ``listener(tx, person_id)`` in each transaction that blocks a person. Registering twice is
    once.
    """
    if listener not in _listeners:
        _listeners.append(listener)


async def person_blocked(tx: Transaction, person_id: UUID) -> None:
    """Tell every listener, before the row changes: they take gates, and gates come first in the lock
    order.
    """
    for listener in _listeners:
        await listener(tx, person_id)


def on_person_erasing(listener: PersonListener) -> None:
    """Call ``listener(tx, person_id)`` first thing in each transaction that erases a person, to take the gates that
    what follows needs, in order. Registering twice is once.
    """
    if listener not in _erasing:
        _erasing.append(listener)


async def person_erasing(tx: Transaction, person_id: UUID) -> None:
    """Tell every listener, before any row is locked."""
    for listener in _erasing:
        await listener(tx, person_id)
