"""What retention knows of a kind of item: everything else about the item stays with its own room (RET-15)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import Table

from lastcall.db.transaction import Reader
from lastcall.deadlines.due_rows import Order
from lastcall.errors import NotFound
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope


class ReadRule(Protocol):
    """Raises the kind's ``NotFound`` for whoever may not see items of this kind (RET-19)."""

    async def __call__(self, tx: Reader, actor: Actor, club_id: UUID, *, scope: Scope) -> Any: ...


@dataclass(frozen=True)
class Kind:
    """One kind of item. ``name`` is what the activity log, the API and the routines call it: ``<name>_due`` holds its
    candidate rule, ``refresh_<name>`` derives what is due when, and ``settle_<name>`` archives one that is due.

    ``owner`` is the deadline owner that signals name. ``table`` has ``club_id``, ``id``, ``status``, ``activity_at``
    and the derived ``archive_due_at`` and ``is_archived``; ``pending`` is the status of what can be a candidate.
    ``unknown`` makes the one answer for an item that is not there and for one that is hidden; ``scope`` is what a
    token needs to act on items of this kind, and ``topic`` that of the hints for pages that show them.
    """

    name: str
    owner: str
    table: Table
    pending: str
    scope: Scope
    topic: str
    unknown: Callable[[], NotFound]
    require_readable: ReadRule

    @property
    def order(self) -> Order:
        """What is due some day and nothing else, by when: one partial index (RET-05)."""
        return Order(
            self.table.name,
            "archive_due_at",
            f"status = '{self.pending}'",
            deadline="ceil_to_millisecond(archive_due_at)",
            is_nullable=True,
        )
