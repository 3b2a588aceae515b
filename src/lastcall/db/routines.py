"""Routines: the PL/pgSQL functions of hot steps, kept as ``<room>/sql/*.sql`` and applied again when they
change.

Each file holds ``create or replace function`` statements. A new argument list makes a second function, so the
file that changes one starts with ``drop function if exists`` of the old.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from sqlalchemy import MetaData

_ALLOWED_START = re.compile(
    r"\A(?:\s|--[^\n]*\n)*(create\s+or\s+replace|drop)\s+(function|procedure)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Schema:
    """What a database of this version holds: all models, and the folders of routines in the order to apply
    them."""

    metadata: MetaData
    routine_folders: tuple[Path, ...]


@dataclass(frozen=True)
class Routine:
    """One file: ``name`` is room and file name, ``digest`` decides whether it must be applied again."""

    name: str
    sql: str

    @property
    def digest(self) -> str:
        return hashlib.md5(self.sql.encode(), usedforsecurity=False).hexdigest()


def read_routines(schema: Schema) -> list[Routine]:
    """All routines in order. Raises ``ValueError`` for a file that is not made of routines."""
    routines = []
    for folder in schema.routine_folders:
        for path in sorted(folder.glob("*.sql")):
            sql = path.read_text(encoding="utf-8")
            if not _ALLOWED_START.match(sql):
                raise ValueError(f"{path} must begin with 'create or replace function' or 'drop function'.")
            routines.append(Routine(name=f"{folder.parent.name}/{path.name}", sql=sql))
    return routines


async def apply_routines(connection: asyncpg.Connection[asyncpg.Record], schema: Schema) -> list[str]:
    """Apply what is new or changed, all or nothing; returns the names of what was applied."""
    routines = read_routines(schema)
    async with connection.transaction():
        rows = await connection.fetch("select name, digest from routine_versions")
        applied = {row["name"]: row["digest"] for row in rows}
        changed = [routine for routine in routines if applied.get(routine.name) != routine.digest]
        for routine in changed:
            await connection.execute(routine.sql)
            await connection.execute(
                """
                insert into routine_versions (name, digest) values ($1, $2)
                on conflict (name) do update set digest = excluded.digest, applied_at = lastcall_now()
                """,
                routine.name,
                routine.digest,
            )
        gone = [name for name in applied if name not in {routine.name for routine in routines}]
        await connection.execute("delete from routine_versions where name = any($1::text[])", gone)
    return [routine.name for routine in changed]
