"""Raw connections for hot steps: opened when they are needed, kept, and lent for one call or for a block."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg

from lastcall.db.connect import DRIVER_ERRORS, Connection

CLOSING = 2.0
"""Seconds that the server gets to stop what was cancelled, before its connection is cut."""


class RawPool:
    """Up to ``size`` connections. Whoever finds none free waits, in the order of asking.

    asyncpg's own pool makes a task and a proxy for each use, which takes longer (0.07 ms) than sending a statement of
    a hot step and reading its answer. This one lends a connection as it is, so whoever borrows one for a block leaves
    nothing set on it. A call on a closed pool raises asyncpg's ``InterfaceError``.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int) -> None:
        self._connect = connect
        self._size = size
        self._places = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._is_closed = False

    def acquire(self) -> Loan:
        """``async with pool.acquire() as connection``; a transaction left open in the block is rolled back."""
        return Loan(self)

    async def fetch(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        """All rows."""
        async with self.acquire() as connection:
            rows: list[asyncpg.Record] = await connection.fetch(statement, *arguments)
            return rows

    async def fetchrow(self, statement: str, *arguments: object) -> asyncpg.Record | None:
        """The first row, or None."""
        async with self.acquire() as connection:
            row: asyncpg.Record | None = await connection.fetchrow(statement, *arguments)
            return row

    async def fetchval(self, statement: str, *arguments: object) -> Any:
        """The first column of the first row, or None."""
        async with self.acquire() as connection:
            return await connection.fetchval(statement, *arguments)

    async def execute(self, statement: str, *arguments: object) -> str:
        """The command tag of the last statement."""
        async with self.acquire() as connection:
            tag: str = await connection.execute(statement, *arguments)
            return tag

    async def close(self) -> None:
        """Refuse new calls, wait for those under way, close everything."""
        self._is_closed = True
        for _ in range(self._size):
            await self._places.acquire()
        while self._idle:
            connection = self._idle.pop()
            self._open.discard(connection)
            await _close(connection)
        for _ in range(self._size):
            self._places.release()

    def terminate(self) -> None:
        """Cut every connection at once."""
        self._is_closed = True
        for connection in self._open:
            connection.terminate()

    async def take(self) -> Connection:
        """Borrow a connection; for ``Loan``, which gives it back."""
        self._refuse_when_closed()
        await self._places.acquire()
        try:
            self._refuse_when_closed()
            while self._idle:
                connection = self._idle.pop()
                if not connection.is_closed():
                    return connection
                self._open.discard(connection)
            connection = await self._connect()
        except BaseException:
            self._places.release()
            raise
        self._open.add(connection)
        return connection

    async def give(self, connection: Connection, *, is_clean: bool) -> None:
        """Take a borrowed connection back. Not clean: nobody knows what is still under way on it."""
        try:
            is_reusable = is_clean and not connection.is_closed() and not connection.is_in_transaction()
            if is_reusable and not self._is_closed:
                self._idle.append(connection)
            else:
                self._open.discard(connection)
                await asyncio.shield(_close(connection))
        finally:
            self._places.release()

    def _refuse_when_closed(self) -> None:
        if self._is_closed:
            raise asyncpg.InterfaceError("The database was closed.")


class Loan:
    """A connection for a block. (A class, because a generator's context costs a tenth of a call.)"""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: RawPool) -> None:
        self._pool = pool
        self._connection: Connection

    async def __aenter__(self) -> Connection:
        self._connection = await self._pool.take()
        return self._connection

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an error of the server it is ready for the next statement; after all others, who knows.
        is_clean = kind is None or issubclass(kind, asyncpg.PostgresError)
        await self._pool.give(self._connection, is_clean=is_clean)


async def _close(connection: Connection) -> None:
    try:
        await connection.close(timeout=CLOSING)
    except DRIVER_ERRORS:
        connection.terminate()
