"""What becomes of items over thousands of days, in plain words of Python: no SQL, no signals, no scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

MILLISECOND = timedelta(milliseconds=1)


@dataclass
class Item:
    """One join request or approval. ``archived_at`` is when it was archived, by itself or by hand."""

    id: UUID
    kind: str
    activity_at: datetime
    is_decided: bool = False
    is_kept: bool = False
    is_broken: bool = False
    archived_at: datetime | None = None
    revived_at: datetime | None = None
    version: int = 0
    archives: int = 0

    def due_at(self, days: int | None) -> datetime | None:
        """When it is archived by itself in an active club; None: never, as things stand."""
        if self.is_decided or self.is_kept or self.archived_at is not None or days is None:
            return None
        return max(self.activity_at, self.revived_at or self.activity_at) + timedelta(days=days)


@dataclass
class Model:
    """The club and its items. ``since`` is when something happened last: all that was due by then is archived."""

    since: datetime
    days: int | None = 90
    is_active: bool = True
    is_up: bool = True
    items: dict[UUID, Item] = field(default_factory=dict)

    def due_at(self, item: Item) -> datetime | None:
        return item.due_at(self.days) if self.is_active else None

    def go_to(self, now: datetime) -> int:
        """Time goes on to ``now``; how many items were archived by themselves on the way."""
        archived = 0
        for item in self.items.values():
            due = self.due_at(item)
            if due is not None and self.is_up and not item.is_broken and ceil(due) <= now:
                item.archived_at = max(ceil(due), self.since)
                item.version += 1
                item.archives += 1
                archived += 1
        self.since = now
        return archived


def ceil(moment: datetime) -> datetime:
    """The next whole millisecond: what a scheduler wakes at."""
    over = timedelta(microseconds=moment.microsecond % 1000)
    return moment - over + MILLISECOND if over else moment
