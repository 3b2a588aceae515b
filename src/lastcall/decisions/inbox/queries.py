"""Reads of the inbox: a page of a shelf, and the counts. Nothing here writes, and no row is read that is not shown."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from lastcall.clubs.permissions import Permission
from lastcall.db.cursor import Cursor
from lastcall.db.transaction import Reader
from lastcall.decisions.inbox.item import Act, Away, Counts, Item, ItemClub, Shelf
from lastcall.decisions.inbox.reach import Reach
from lastcall.decisions.inbox.source import Source, source_named, sources
from lastcall.decisions.inbox.statements import count_statement, page_statement
from lastcall.decisions.retention.explain import AGEING, Outlook, outlook_of
from lastcall.decisions.retention.view import RetentionView, view

LISTING = "inbox"
PAGE_MOST = 100


@dataclass(frozen=True)
class Wanted:
    """What a reader asks for. ``now`` is the database's moment of the page, ``today`` when the reader's day began;
    ``kinds`` are names of sources, none for all."""

    now: datetime
    today: datetime
    shelf: Shelf = Shelf.WAITING
    kinds: frozenset[str] = frozenset()


@dataclass(frozen=True)
class InboxPage:
    """Items, the newest activity first, and where the next page begins."""

    items: tuple[Item, ...]
    next: Cursor | None


async def inbox_page(
    tx: Reader, reach: Reach, wanted: Wanted, *, after: Cursor | None = None, limit: int = 50
) -> InboxPage:
    """One page of a shelf in one statement. It goes on from a place, not from a row: that the last item of the page
    before was decided meanwhile skips and repeats nothing."""
    limit = min(limit, PAGE_MOST)
    asked = _asked(wanted.kinds)
    if not asked:
        return InboxPage((), None)
    statement = page_statement(
        asked, wanted.shelf, for_person=reach.person_id is not None, is_first=after is None
    )
    values = _values(reach, asked, wanted) | {"limit": limit + 1}
    if after is not None:
        values |= {"after_time": after.time, "after_id": after.id}
    rows = (await tx.execute(statement, values)).all()
    items = tuple(_item(reach, row, wanted.now) for row in rows[:limit])
    return InboxPage(items, items[-1].cursor if len(rows) > limit else None)


async def inbox_counts(
    tx: Reader, reach: Reach, wanted: Wanted, shelves: Collection[Shelf] = tuple(Shelf)
) -> Counts:
    """How many items each shelf shows this reader, by source, in one statement; ``wanted.kinds`` and
    ``wanted.shelf`` play no part."""
    asked = sources()
    if not asked:
        return Counts({})
    statement = count_statement(asked, tuple(shelves), for_person=reach.person_id is not None)
    rows = (await tx.execute(statement, _values(reach, asked, wanted))).all()
    return Counts({(Shelf(row.shelf), row.source): row.number for row in rows})


def _asked(kinds: frozenset[str]) -> tuple[Source, ...]:
    return tuple(source for source in sources() if not kinds or source.name in kinds)


def _values(reach: Reach, asked: Collection[Source], wanted: Wanted) -> dict[str, Any]:
    clubs: dict[str, Any] = {f"clubs_{source.name}": reach.clubs_for(source) for source in asked}
    times = {"now": wanted.now, "today": wanted.today, "ageing": wanted.now - AGEING}
    return clubs | times | {"person": reach.person_id}


def _item(reach: Reach, row: Row[Any], now: datetime) -> Item:
    source = source_named(row.source)
    said: dict[str, Any] = row.said
    words = source.words if reach.person_id is not None else source.agents_read
    if words is None:
        raise RuntimeError(f"{source.name} is not for agents")
    away = Away(row.away_until) if row.is_away else None
    retention = view(row if row.is_noted else None) if source.kind is not None else None
    due_at = datetime.fromisoformat(said["due_at"]) if said["due_at"] else None
    return Item(
        source=source,
        club=ItemClub(row.club_id, row.club_name, row.club_slug),
        id=row.id,
        activity_at=row.activity_at,
        shown=words(said["facts"]),
        seen=said["seen"],
        retention=retention,
        outlook=None if retention is None else _outlook(row, retention, due_at, now),
        due_at=due_at,
        away=away,
        actions=_actions(reach, row.club_id, said["verdicts"], retention, away),
    )


def _outlook(row: Row[Any], retention: RetentionView, due_at: datetime | None, now: datetime) -> Outlook:
    is_due = due_at is not None and due_at <= now
    return outlook_of(retention, row.club_state, is_never=row.retention_days is None, is_due=is_due)


def _actions(
    reach: Reach, club_id: UUID, verdicts: list[str], retention: RetentionView | None, away: Away | None
) -> frozenset[Act]:
    if reach.person_id is None:
        return frozenset()
    found = {Act.SHOW} if away is not None else {Act.SNOOZE, Act.DISMISS}
    found |= {Act(verdict) for verdict in verdicts}
    if retention is not None and reach.holds(club_id, Permission.MANAGE_RETENTION):
        found.add(Act.UNKEEP if retention.keep else Act.KEEP)
        if retention.archived_at is None:
            found.add(Act.ARCHIVE)
        else:
            found = (found - {Act.SNOOZE, Act.DISMISS}) | {Act.REVIVE}
    return frozenset(found)
