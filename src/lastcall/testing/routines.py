"""Put another piece into a routine of a test's database: the twin of a guard that lives in SQL."""

from __future__ import annotations

from lastcall.db.database import Database


async def replace_routine(db: Database, name: str, old: str, new: str) -> None:
    """The routine, with ``new`` wherever it says ``old``. ``AssertionError`` when it does not say that."""
    source: str = await db.pool.fetchval("select pg_get_functiondef($1::regproc)", name)
    assert old in source, old
    await db.pool.execute(source.replace(old, new))
