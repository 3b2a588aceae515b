"""Clubs that close for good, and what is left of them."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from tests.operations.operations_world import World

import lastcall
from lastcall.clubs.deletion import club_deletion_owner
from lastcall.clubs.life import archive_club, delete_club
from lastcall.db.database import Database
from lastcall.deadlines.owner import Done, More, Stop

SOURCE = Path(lastcall.__file__).parents[1]
TENANT_TABLES = """
    select c.relname from pg_attribute a join pg_class c on c.oid = a.attrelid
    join pg_namespace n on n.oid = c.relnamespace
    where a.attname = 'club_id' and not a.attisdropped and c.relkind in ('r', 'p') and n.nspname = 'public'
    order by 1
"""
ALL_TABLES = "select tablename from pg_tables where schemaname = 'public' order by 1"


async def close_for_good(world: World) -> None:
    await archive_club(world.db, None, world.club_id)
    await delete_club(world.db, None, world.club_id, confirm_slug="club")


async def remove_all(db: Database) -> int:
    """Passes until none is left; how many steps were taken."""
    owner, steps = club_deletion_owner(db), 0
    while True:
        match await owner.run_pass(Stop()):
            case More(done=done):
                steps += done
            case Done(done=done):
                return steps + done
            case other:
                raise AssertionError(other)


async def rows_of(db: Database, club_id: UUID) -> dict[str, int]:
    """How many rows of each table name the club, by the database's own catalog."""
    tables = [row["relname"] for row in await db.pool.fetch(TENANT_TABLES)]
    counts = {
        table: await db.pool.fetchval(f"select count(*) from {table} where club_id = $1", club_id)
        for table in tables
    }
    counts["clubs"] = await db.pool.fetchval("select count(*) from clubs where id = $1", club_id)
    return {table: count for table, count in counts.items() if count}
