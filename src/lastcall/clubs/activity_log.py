"""Reading the club's activity log: pages by key, filters, and the whole of it as a file.

The owner sees every entry. Others need ``manage_staff`` and see what is about the club and its staff
(``STAFF_FAMILIES``): an entry about a join request or an action would tell of things that not every one of them
may see.
"""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.db.cursor import LAST, Cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.db.transaction import Reader
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

STAFF_FAMILIES = ("club", "staff", "invite", "visibility")
"""The families of actions (the part before the dot) that holders of ``manage_staff`` see."""
PAGE_MOST = 200
"""Entries of one page at most."""
EXAMINED_MOST = 2000
"""Entries that one page of a filtered log looks at; a page may be short or empty and yet have a next one."""
EXPORT_PAGE = 500
"""Entries that one step of an export reads."""


@dataclass(frozen=True)
class ActivityFilters:
    """What a reader looks for; all that are given must fit. ``family`` is the part of the action before the
    dot; ``since`` is inclusive, ``until`` is not."""

    actor_id: UUID | None = None
    family: str | None = None
    action: str | None = None
    entity_type: str | None = None
    entity_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


ALL = ActivityFilters()


@dataclass(frozen=True)
class ActivityView:
    """One entry. ``actor_name`` and ``entity_name`` are of today: a person who was erased has theirs no more."""

    id: UUID
    created_at: datetime
    actor_kind: str
    actor_id: UUID | None
    actor_name: str
    action: str
    entity_type: str
    entity_id: UUID
    entity_name: str | None
    details: dict[str, Any]


@dataclass(frozen=True)
class ActivityPage:
    """Entries, the newest first. ``next`` is the last entry that was looked at; None at the log's end."""

    entries: tuple[ActivityView, ...]
    next: Cursor | None


class ExportForm(StrEnum):
    """How an export is written."""

    JSON_LINES = "jsonl"
    CSV = "csv"


_PAGE = """
    with examined as materialized (
        select a.*, row_number() over (order by a.created_at desc, a.id desc) as n
          from (select * from activity_log e
                 where e.club_id = $1 and (e.created_at, e.id) < ($2, $3)
                   and ($10::timestamptz is null or e.created_at >= $10)
                 order by e.created_at desc, e.id desc
                 limit $4) as a
    ), fitting as (
        select x.*, (select max(n) from examined) as examined_count,
               ($5::text[] is null or split_part(x.action, '.', 1) = any ($5))
               and ($6::uuid is null or x.actor_id = $6)
               and ($7::text is null or x.action = $7)
               and ($8::text is null or x.entity_type = $8)
               and ($9::uuid is null or x.entity_id = $9) as does_fit
          from examined x
    )
    select f.id, f.created_at, f.actor_kind, f.actor_id, coalesce(p.display_name, f.actor_name, '') as actor_name,
           f.action, f.entity_type, f.entity_id, coalesce(subject.display_name, r.name) as entity_name,
           f.details::text as details, f.does_fit, f.n, f.examined_count
      from fitting f
      left join people p on p.id = f.actor_id
      left join people subject on f.entity_type = 'person' and subject.id = f.entity_id
      left join staff_roles r on f.entity_type = 'staff_role' and r.club_id = f.club_id and r.id = f.entity_id
     where f.does_fit or f.n = f.examined_count
     order by f.n
     limit $11
"""


async def activity_page(
    tx: Reader,
    actor: Actor,
    club_id: UUID,
    filters: ActivityFilters = ALL,
    *,
    after: Cursor | None = None,
    limit: int = 50,
) -> ActivityPage:
    """Entries that fit, the newest first, behind ``after``. ``NotFound`` off the staff, ``NotAllowed`` on it
    without ``manage_staff``."""
    return await _read_page(tx, actor, club_id, filters, after, min(limit, PAGE_MOST))


async def _read_page(
    tx: Reader, actor: Actor, club_id: UUID, filters: ActivityFilters, after: Cursor | None, limit: int
) -> ActivityPage:
    found = await require(tx, actor, club_id, Permission.MANAGE_STAFF, scope=Scope.READ)
    families = None if found.is_owner else list(STAFF_FAMILIES)
    if filters.family is not None:
        families = [filters.family] if families is None or filters.family in families else []
    start = after or LAST
    if filters.until is not None and filters.until <= start.time:
        start = Cursor(filters.until, UUID(int=0))
    rows = await tx.raw.fetch(
        _PAGE,
        club_id,
        start.time,
        start.id,
        EXAMINED_MOST,
        families,
        filters.actor_id,
        filters.action,
        filters.entity_type,
        filters.entity_id,
        filters.since,
        limit + 1,
    )
    return _page(rows, limit)


async def export_activity(
    db: Database, actor: Actor, club_id: UUID, form: ExportForm, filters: ActivityFilters = ALL
) -> AsyncIterator[bytes]:
    """The entries that fit as a file, in pieces. Errors as for ``activity_page``, before the first piece.

    Each piece asks again who may read: an export that began before a revocation ends at it. A cell of the CSV
    that a spreadsheet would take for a formula begins with an apostrophe.
    """
    first = await _export_page(db, actor, club_id, filters, None)
    return _pieces(db, actor, club_id, form, filters, first)


async def _pieces(
    db: Database,
    actor: Actor,
    club_id: UUID,
    form: ExportForm,
    filters: ActivityFilters,
    page: ActivityPage,
) -> AsyncIterator[bytes]:
    if form is ExportForm.CSV:
        yield _csv([_COLUMNS])
    while True:
        if page.entries:
            yield _written(form, page.entries)
        if page.next is None:
            return
        page = await _export_page(db, actor, club_id, filters, page.next)


async def _export_page(
    db: Database, actor: Actor, club_id: UUID, filters: ActivityFilters, after: Cursor | None
) -> ActivityPage:
    async with db.read() as tx:
        return await _read_page(tx, actor, club_id, filters, after, EXPORT_PAGE)


_COLUMNS = ["time", "actor", "actorId", "action", "entityType", "entityId", "entity", "details"]


def _written(form: ExportForm, entries: tuple[ActivityView, ...]) -> bytes:
    cells = [
        (
            entry.created_at.isoformat(),
            entry.actor_name,
            None if entry.actor_id is None else encode_id(entry.actor_id),
            entry.action,
            entry.entity_type,
            encode_id(entry.entity_id),
            entry.entity_name,
            entry.details,
        )
        for entry in entries
    ]
    if form is ExportForm.CSV:
        return _csv([[*row[:-1], msgspec.json.encode(row[-1]).decode()] for row in cells])
    return b"".join(msgspec.json.encode(dict(zip(_COLUMNS, row, strict=True))) + b"\n" for row in cells)


def _csv(rows: list[list[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows([[_plain(cell) for cell in row] for row in rows])
    return text.getvalue().encode()


def _plain(cell: str | None) -> str:
    cell = cell or ""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def _page(rows: list[asyncpg.Record], limit: int) -> ActivityPage:
    fitting = [row for row in rows if row["does_fit"]]
    shown = fitting[:limit]
    if len(fitting) > limit:
        last = shown[-1]
    elif rows and rows[-1]["examined_count"] == EXAMINED_MOST:
        last = rows[-1]
    else:
        last = None
    return ActivityPage(
        entries=tuple(_view(row) for row in shown),
        next=None if last is None else Cursor(last["created_at"], last["id"]),
    )


def _view(row: asyncpg.Record) -> ActivityView:
    return ActivityView(
        id=row["id"],
        created_at=row["created_at"],
        actor_kind=row["actor_kind"],
        actor_id=row["actor_id"],
        actor_name=row["actor_name"],
        action=row["action"],
        entity_type=row["entity_type"],
        entity_id=row["entity_id"],
        entity_name=row["entity_name"],
        details=msgspec.json.decode(row["details"]),
    )
