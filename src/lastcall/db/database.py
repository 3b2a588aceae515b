"""The database as a process holds it: two pools, the post-commit bus and a count of what was sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import asyncpg
from sqlalchemy import event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from lastcall.db.bus import PostCommitBus, XidStatus, as_xid_status
from lastcall.db.connect import APPLICATION_NAME, Connection, StatementCounter, TimeLimits, connect
from lastcall.db.pool import RawPool
from lastcall.db.transaction import OpenTransactions, Reader, Transaction
from lastcall.errors import Unavailable

POOL_WAIT = 10.0
"""Seconds a service waits for a free connection before it gives up."""


class Database:
    """Opened once by each process. ``transaction()`` for services, ``pool`` for hot steps (raw asyncpg)."""

    def __init__(self, url: str, limits: TimeLimits, application_name: str) -> None:
        self.url = url
        self.limits = limits
        self.bus = PostCommitBus()
        self._application_name = application_name
        self._counter = StatementCounter()
        self._open = OpenTransactions()
        self._engine: AsyncEngine
        self._pool: RawPool

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        pool_size: int = 10,
        limits: TimeLimits | None = None,
        application_name: str = APPLICATION_NAME,
    ) -> Database:
        """Connect, or say in one sentence why not (``Invalid``, ``Unavailable``).

        Each of the two pools holds up to ``pool_size`` connections, opened when they are needed.
        """
        database = cls(url, limits or TimeLimits(), application_name)
        await database._start(pool_size)
        return database

    async def _start(self, pool_size: int) -> None:
        self._pool = RawPool(self.connect, pool_size)
        self._engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=self.connect,
            # Transaction commands are ours (transaction.py), because the tag of COMMIT must be read.
            isolation_level="AUTOCOMMIT",
            # An error's text ends in a log, where an address or a hash has no business.
            hide_parameters=True,
            poolclass=AsyncAdaptedQueuePool,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=POOL_WAIT,
        )
        event.listen(self._engine.sync_engine, "before_cursor_execute", self._count)
        event.listen(self._engine.sync_engine, "checkout", _refuse_closed)
        try:
            # The first connection asks the server about itself; later quiet must not include that.
            async with self._engine.connect():
                pass
        except BaseException:
            await self._engine.dispose()
            raise

    async def close(self) -> None:
        """Close both pools; connections still in use are cut after five seconds."""
        try:
            async with asyncio.timeout(5):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()
        await self._engine.dispose()

    @property
    def pool(self) -> RawPool:
        """Raw connections for hot steps. A call on it is its own transaction and sends no messages."""
        return self._pool

    @property
    def statements(self) -> int:
        """Statements this process sent through either pool; BEGIN, COMMIT and savepoints count as well."""
        return self._counter.value

    async def connect(self) -> Connection:
        """A connection of its own, outside the pools (a listener, a session lock). The caller closes it."""
        return await connect(
            self.url,
            limits=self.limits,
            application_name=self._application_name,
            counter=self._counter,
        )

    def transaction(self, *, outermost: bool = False) -> AbstractAsyncContextManager[Transaction]:
        """``async with db.transaction() as tx``: commit at the end, roll back when the body raises.

        Within a transaction of the same task it is a savepoint of that one. ``outermost=True`` refuses that
        instead (ACC-17: what accepts, approves or rejects must not depend on a caller that may still roll
        back).
        """
        return self._open.transaction(self, outermost=outermost)

    def read(self) -> AbstractAsyncContextManager[Reader]:
        """Read-only statements, each seeing what is committed when it starts; within a transaction they join
        it."""
        return self._open.read(self)

    @asynccontextmanager
    async def checkout(self) -> AsyncIterator[tuple[Any, Connection]]:
        """A SQLAlchemy connection and the driver's connection under it, with no transaction open."""
        try:
            connection = await self._engine.connect()
        except PoolTimeoutError as error:
            raise Unavailable(
                "database_busy",
                f"All of this process's database connections were in use for {POOL_WAIT:.0f} seconds.",
                advice="Try again in a moment; if this goes on, run more processes.",
            ) from error
        try:
            raw = cast("Connection", (await connection.get_raw_connection()).driver_connection)
            try:
                yield connection, raw
            finally:
                if raw.is_closed() and not connection.invalidated:
                    await connection.invalidate()
        finally:
            await asyncio.shield(connection.close())

    def _count(self, *_: object) -> None:
        self._counter.value += 1


async def xid_status(database: Database, xid: int) -> XidStatus:
    """What became of transaction ``xid``; all but ``in progress`` is final.

    A transaction the server never reached (it was restored, or another one took over) counts as aborted.
    """
    try:
        text = await database.pool.fetchval("select pg_xact_status($1::text::xid8)", str(xid))
    except asyncpg.InvalidParameterValueError:
        return "aborted"
    return as_xid_status(text)


def _refuse_closed(connection: Any, *_: object) -> None:
    """Notices a connection that died in the pool without asking the server (which a ping would)."""
    if connection.driver_connection.is_closed():
        raise DisconnectionError
