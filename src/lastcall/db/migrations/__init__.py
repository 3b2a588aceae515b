"""Migrations: one linear chain in ``versions/``, forward only, then the routines.

Alembic runs them in one transaction each. Two processes that start at once take turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection as SyncConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from lastcall.db.connect import PATIENT, connect
from lastcall.db.routines import Schema, apply_routines
from lastcall.errors import Unavailable

LOCK_KEY = 0x4C61737463616C6C
"""The advisory lock that a migrating process holds; the number spells *Lastcall*."""

TURN_TIMEOUT = 600.0
"""Seconds a process waits for another one's migration."""

_POLL = 0.1


async def migrate(url: str, schema: Schema, *, to: str = "head") -> None:
    """Bring the database up to this version: revisions, then routines. Safe to repeat and to run twice at
    once."""
    async with _turn(url):
        async with _engine(url) as engine, engine.connect() as connection:
            await connection.run_sync(_upgrade, schema, to)
        if to == "head":
            raw = await connect(url, limits=PATIENT)
            try:
                await apply_routines(raw, schema)
            finally:
                await raw.close()


async def current(url: str) -> str | None:
    """The revision the database is at; ``None`` for an empty database."""
    async with _engine(url) as engine, engine.connect() as connection:
        return await connection.run_sync(lambda sync: MigrationContext.configure(sync).get_current_revision())


def head() -> str | None:
    """The revision this version of the code needs."""
    return ScriptDirectory.from_config(_config()).get_current_head()


def _upgrade(connection: SyncConnection, schema: Schema, to: str) -> None:
    config = _config()
    config.attributes["connection"] = connection
    config.attributes["metadata"] = schema.metadata
    command.upgrade(config, to)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


@asynccontextmanager
async def _engine(url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=lambda: connect(url, limits=PATIENT),
        poolclass=NullPool,
    )
    try:
        yield engine
    finally:
        await engine.dispose()


@asynccontextmanager
async def _turn(url: str) -> AsyncIterator[None]:
    """Hold the advisory lock on a connection of its own.

    It is tried again and again instead of waited for: a waiting statement holds a snapshot, for which the
    other process's ``create index concurrently`` would wait for ever.
    """
    connection = await connect(url, limits=PATIENT)
    try:
        async with asyncio.timeout(TURN_TIMEOUT):
            while not await connection.fetchval("select pg_try_advisory_lock($1)", LOCK_KEY):  # noqa: ASYNC110
                await asyncio.sleep(_POLL)
        yield
    except TimeoutError:
        raise Unavailable(
            "migration_busy",
            f"Another process has been migrating this database for {TURN_TIMEOUT / 60:.0f} minutes.",
            advice="Look at it before you start another.",
        ) from None
    finally:
        await connection.close()
