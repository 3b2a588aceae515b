"""Everything that a club holds, table by table from the schema, as JSON lines: for its owner to take along.

What is secret stays: hashes, nonces and tokens are left out by their names, so that a new column of that kind does not
need somebody to think of this file. So does what is one person's own and not the club's, which its table says.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from sqlalchemy import Column, Table, select, tuple_

from lastcall.clubs.activity import COMMAND_LINE, log
from lastcall.clubs.policy import require_owner
from lastcall.clubs.queries import read_settings
from lastcall.clubs.tables import Club, tables_of_clubs
from lastcall.db.base import PRIVATE, Base
from lastcall.db.database import Database
from lastcall.db.transaction import Reader
from lastcall.people.actor import Actor
from lastcall.people.erasing import json_line
from lastcall.people.scopes import Scope

PAGE = 500  # rows a statement
SECRET = re.compile(r"hash|nonce|secret|token|digest")
"""Names of columns that leave the house with nobody."""


async def export_club(db: Database, actor: Actor | None, club_id: UUID) -> AsyncIterator[bytes]:
    """The club's rows as JSON lines ``{"table": …, …}``, in pages, each in a read of its own: what changes meanwhile is
    seen or not, row by row. For the owner, or the host's command line (no ``actor``). Recorded in the activity log.
    Each page asks again who owns the club: an export that began before that changed ends at it.
    """
    async with db.transaction() as tx:
        if actor is not None:
            await require_owner(tx, actor, club_id, scope=Scope.CLUBS)
        else:
            await read_settings(tx, club_id)
        await log(tx, club_id, actor or COMMAND_LINE, "club.exported", "club", club_id)
    for table in (Base.metadata.tables[Club.__tablename__], *tables_of_clubs()):
        async for row in _rows(db, actor, table, club_id):
            yield json_line({"table": str(table.name), **row})


async def _rows(
    db: Database, actor: Actor | None, table: Table, club_id: UUID
) -> AsyncIterator[dict[str, Any]]:
    shown = [column for column in table.columns if _leaves(column)]
    key = list(table.primary_key.columns)
    after: tuple[Any, ...] | None = None
    is_more = True
    while is_more:
        async with db.read() as tx:
            if actor is not None:
                await require_owner(tx, actor, club_id, scope=Scope.CLUBS)
            rows = await _page(tx, table, club_id, [*shown, *key], after)
        is_more = len(rows) == PAGE
        for row in rows:
            after = row[len(shown) :]
            yield dict(zip((str(column.name) for column in shown), row, strict=False))


def _leaves(column: Column[Any]) -> bool:
    return SECRET.search(column.name) is None and not _is_key(column) and not column.info.get(PRIVATE)


def _is_key(column: Column[Any]) -> bool:
    """The directory's key of an invite is the hash of its token."""
    return column.table.name == "directory" and column.name == "key"


async def _page(
    tx: Reader, table: Table, club_id: UUID, columns: list[Column[Any]], after: tuple[Any, ...] | None
) -> list[tuple[Any, ...]]:
    mine = table.columns["id" if table is Club.__table__ else "club_id"]
    key = list(table.primary_key.columns)
    statement = (
        select(*(column.label(f"c{n}") for n, column in enumerate(columns)))
        .where(mine == club_id)
        .order_by(*key)
        .limit(PAGE)
    )
    if after is not None:
        statement = statement.where(tuple_(*key) > tuple_(*after))
    return [tuple(row) for row in (await tx.execute(statement)).all()]
