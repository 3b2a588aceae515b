"""What the inbox shows: one item with what may be done to it, a page of them, and how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from lastcall.db.cursor import Cursor
from lastcall.decisions.inbox.source import Shown, Source
from lastcall.decisions.retention.explain import Outlook
from lastcall.decisions.retention.view import RetentionView

MOST_COUNTED = 100
"""A count stops here: whoever has a hundred waiting needs no exact number, and counting would cost as much as there
is."""


class Shelf(StrEnum):
    """Where an item stands. ``TODAY``, ``EARLIER`` and ``AGEING`` together are ``WAITING``."""

    WAITING = "waiting"
    TODAY = "today"
    EARLIER = "earlier"
    AGEING = "ageing"
    ARCHIVED = "archived"
    AWAY = "away"

    @property
    def label(self) -> str:
        """What people read."""
        return _LABELS[self]


_LABELS = {
    Shelf.WAITING: "Decide now",
    Shelf.TODAY: "Today",
    Shelf.EARLIER: "Earlier",
    Shelf.AGEING: "Ageing",
    Shelf.ARCHIVED: "Archived",
    Shelf.AWAY: "Put away",
}


class Act(StrEnum):
    """What a person may do to an item from the list. The server offers them; pages never guess."""

    APPROVE = "approve"
    REJECT = "reject"
    KEEP = "keep"
    UNKEEP = "unkeep"
    ARCHIVE = "archive"
    REVIVE = "revive"
    SNOOZE = "snooze"
    DISMISS = "dismiss"
    SHOW = "show"


@dataclass(frozen=True)
class ItemClub:
    """The club an item belongs to."""

    id: UUID
    name: str
    slug: str


@dataclass(frozen=True)
class Away:
    """The reader put the item out of their own sight: until a time, or (null) until something happens to it."""

    until: datetime | None


@dataclass(frozen=True)
class Item:
    """One thing that waits. ``seen`` is the version that a decision is compared with, and ``retention.version`` that of
    keep, archive and revive (DEC-05). ``outlook`` and ``due_at`` say when it is archived by itself, where it ever is.
    ``actions`` are what this reader may do.
    """

    source: Source
    club: ItemClub
    id: UUID
    activity_at: datetime
    shown: Shown
    seen: int
    retention: RetentionView | None
    outlook: Outlook | None
    due_at: datetime | None
    away: Away | None
    actions: frozenset[Act]

    @property
    def cursor(self) -> Cursor:
        """Where the next page begins; it holds though the item itself is gone by then."""
        return Cursor(self.activity_at, self.id)


@dataclass(frozen=True)
class Count:
    """How many items a shelf shows, exact below ``MOST_COUNTED``; from there on there are that many or more."""

    number: int

    @property
    def words(self) -> str:
        """What a badge says."""
        return str(self.number) if self.number < MOST_COUNTED else f"{MOST_COUNTED - 1}+"


@dataclass(frozen=True)
class Counts:
    """By shelf and source, from the same fragments as the lists: equal to them by construction (DEC-06)."""

    by_source: dict[tuple[Shelf, str], int]

    def of(self, shelf: Shelf, *names: str) -> Count:
        """A shelf's count, or that of some of its sources."""
        found = sum(
            number
            for (at, name), number in self.by_source.items()
            if at is shelf and (not names or name in names)
        )
        return Count(min(found, MOST_COUNTED))
