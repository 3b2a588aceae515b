"""Raw connections for hot steps: opened when they are needed, kept, and lent for one call or for a block."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg

from lastcall.db.connect import Connection

Record = asyncpg.Record


class ConnectionPool:
    """Up to ``size`` connections. Whoever finds none free waits, in the order of asking.

    asyncpg's own pool makes a task and a proxy for each use; that took longer (0.07 ms) than sending a short
    statement. A connection whose call was cancelled or broke off is not used again.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int) -> None:
        self._connect = connect
        self._size = size
        self._idle: list[Connection] = []
        self._lent: set[Connection] = set()
        self._opening = 0
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        self._retiring: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self._all_back = asyncio.Event()

    async def fetch(self, statement: str, *arguments: object) -> list[Record]:
        """All rows."""
        connection = await self._take()
        try:
            rows: list[Record] = await connection.fetch(statement, *arguments)
        except BaseException as error:
            self._give_after(connection, error)
            raise
        self._give(connection)
        return rows

    async def fetchrow(self, statement: str, *arguments: object) -> Record | None:
        """The first row, or None."""
        connection = await self._take()
        try:
            row: Record | None = await connection.fetchrow(statement, *arguments)
        except BaseException as error:
            self._give_after(connection, error)
            raise
        self._give(connection)
        return row

    async def fetchval(self, statement: str, *arguments: object) -> Any:
        """The first column of the first row, or None."""
        row = await self.fetchrow(statement, *arguments)
        return None if row is None else row[0]

    async def execute(self, statement: str, *arguments: object) -> str:
        """The command tag of the last statement."""
        connection = await self._take()
        try:
            tag: str = await connection.execute(statement, *arguments)
        except BaseException as error:
            self._give_after(connection, error)
            raise
        self._give(connection)
        return tag

    @contextlib.asynccontextmanager
    async def acquire(self) -> AsyncIterator[Connection]:
        """A connection for a block; a transaction left open in it is rolled back."""
        connection = await self._take()
        try:
            yield connection
            await connection.reset()
        except BaseException as error:
            self._give_after(connection, error)
            raise
        self._give(connection)

    async def close(self) -> None:
        """Refuse new calls, wait for those under way, close everything."""
        self._is_closing = True
        while self._waiting:
            self._pass_on(None)
        if self._lent or self._opening:
            await self._all_back.wait()
        while self._idle:
            await self._idle.pop().close()
        await asyncio.gather(*self._retiring)

    def terminate(self) -> None:
        """Cut every connection at once."""
        self._is_closing = True
        for connection in (*self._lent, *self._idle):
            connection.terminate()
        self._idle.clear()

    async def _take(self) -> Connection:
        while True:
            if self._is_closing:
                raise asyncpg.InterfaceError("The database was closed.")
            while self._idle:
                connection = self._idle.pop()
                if not connection.is_closed():
                    self._lent.add(connection)
                    return connection
            if len(self._lent) + self._opening + len(self._retiring) < self._size:
                return await self._open()
            handed = await self._wait()
            if handed is not None:
                return handed

    async def _open(self) -> Connection:
        self._opening += 1
        try:
            connection = await self._connect()
        except BaseException:
            self._opening -= 1
            self._room_made()
            raise
        self._opening -= 1
        self._lent.add(connection)
        return connection

    async def _wait(self) -> Connection | None:
        """A connection, still counted as lent; None: look again."""
        place: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            return await place
        except asyncio.CancelledError:
            if place.cancelled():
                with contextlib.suppress(ValueError):  # passed over already
                    self._waiting.remove(place)
            elif (handed := place.result()) is not None:
                self._give(handed)
            else:
                self._room_made()
            raise

    def _give(self, connection: Connection) -> None:
        if connection.is_closed():
            self._lent.discard(connection)
            self._room_made()
        elif not self._pass_on(connection):
            self._lent.discard(connection)
            self._idle.append(connection)
            self._note_all_back()

    def _give_after(self, connection: Connection, error: BaseException) -> None:
        """The server's own errors leave the connection as it was; after all others nobody knows what is still
        under way on it."""
        if isinstance(error, asyncpg.PostgresError) and not connection.is_in_transaction():
            self._give(connection)
            return
        self._lent.discard(connection)
        task = asyncio.get_running_loop().create_task(_retire(connection))
        self._retiring.add(task)
        task.add_done_callback(self._retired)
        self._note_all_back()

    def _retired(self, task: asyncio.Task[None]) -> None:
        self._retiring.discard(task)
        self._room_made()

    def _room_made(self) -> None:
        self._pass_on(None)
        self._note_all_back()

    def _note_all_back(self) -> None:
        if self._is_closing and not self._lent and not self._opening:
            self._all_back.set()

    def _pass_on(self, connection: Connection | None) -> bool:
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(connection)
                return True
        return False


async def _retire(connection: Connection) -> None:
    """Let the server stop what was cancelled, then close; cut when that takes long."""
    try:
        await connection.close(timeout=5)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
        connection.terminate()
