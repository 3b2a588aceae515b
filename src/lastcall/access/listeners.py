"""What must go with a join request in the same transaction.

``access/`` knows nothing of retention, so the higher room registers here; ``app.py`` lists who does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from lastcall.db.transaction import Transaction

ComingListener: TypeAlias = Callable[[Transaction, UUID, datetime], Awaitable[None]]
JoinRequestListener: TypeAlias = Callable[[Transaction, UUID, Sequence[UUID]], Awaitable[None]]

_coming: list[ComingListener] = []
_listeners: list[JoinRequestListener] = []
_going: list[JoinRequestListener] = []


def on_join_request_coming(listener: ComingListener) -> None:
    """Call ``listener(tx, club_id, activity_at)`` before a pending request of that activity time is inserted,
    in its transaction (ACC-01). Registering twice is once.
    """
    if listener not in _coming:
        _coming.append(listener)


def on_join_requests_changed(listener: JoinRequestListener) -> None:
    """Call ``listener(tx, club_id, request_ids)`` after each insert or change, in its transaction and with
    the rows locked by it. Registering twice is once.
    """
    if listener not in _listeners:
        _listeners.append(listener)


def on_join_requests_going(listener: JoinRequestListener) -> None:
    """Call ``listener(tx, club_id, request_ids)`` before requests are deleted, in its transaction (ACC-16).
    Registering twice is once.
    """
    if listener not in _going:
        _going.append(listener)


async def join_request_coming(tx: Transaction, club_id: UUID, activity_at: datetime) -> None:
    """Tell every listener that a request is about to be inserted."""
    for listener in _coming:
        await listener(tx, club_id, activity_at)


async def join_requests_changed(tx: Transaction, club_id: UUID, request_ids: Sequence[UUID]) -> None:
    """Tell every listener. A listener that raises undoes the change: neither stands without the other."""
    for listener in _listeners:
        await listener(tx, club_id, request_ids)


async def join_requests_going(tx: Transaction, club_id: UUID, request_ids: Sequence[UUID]) -> None:
    """Tell every listener that these requests are about to be deleted."""
    for listener in _going:
        await listener(tx, club_id, request_ids)
