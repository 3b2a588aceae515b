"""Transactions that say afterwards what happened in them.

Messages published in a transaction leave on the database's bus after the outermost COMMIT, and not at all
after a rollback. When nobody can tell which of the two it was (the connection broke during COMMIT, COMMIT
took too long, the process is going down), they go to the bus as *unclear*, with the transaction's id, and
whoever settles that asks ``xid_status`` until it is final.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg
import structlog
from sqlalchemy import CursorResult, Executable
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from lastcall.db.connect import DRIVER_ERRORS, Connection
from lastcall.errors import Unavailable

if TYPE_CHECKING:
    from lastcall.db.database import Database

COMMIT_TIMEOUT = timedelta(seconds=35)
"""How long COMMIT may take before its outcome is called unclear: a little more than ``statement_timeout``, so
that the server speaks first."""

ROLLBACK_TIMEOUT = timedelta(seconds=5)

_LOSSES = (*DRIVER_ERRORS, DBAPIError)
"""What a statement on a lost connection ends with."""

Result = TypeVar("Result")
log = structlog.get_logger()


class Reader:
    """Statements on one connection. Not for use by two tasks at once."""

    def __init__(self, connection: AsyncConnection, raw: Connection) -> None:
        self.connection = connection
        self.raw = raw

    async def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        """Run a SQLAlchemy Core statement; a list of parameters runs it for each."""
        return await self.connection.execute(statement, parameters)

    async def scalar(self, statement: Executable, parameters: Any = None) -> Any:
        """The first column of the first row, or ``None``."""
        return await self.connection.scalar(statement, parameters)


class Transaction(Reader):
    """One open transaction, or a savepoint of one."""

    def __init__(self, connection: AsyncConnection, raw: Connection, depth: int) -> None:
        super().__init__(connection, raw)
        self.depth = depth
        self.messages: list[object] = []

    def publish(self, message: object) -> None:
        """Say ``message`` on the bus once all of this is committed."""
        self.messages.append(message)


class OpenTransactions:
    """Which task has which transaction open. A child task has none: they would share a connection."""

    def __init__(self) -> None:
        self._stacks: dict[asyncio.Task[Any], list[Reader]] = {}

    @asynccontextmanager
    async def transaction(self, database: Database, *, outermost: bool) -> AsyncIterator[Transaction]:
        task = _current_task()
        stack = self._stacks.get(task)
        if stack is None:
            async with self._outermost(database, task) as tx:
                yield tx
            return
        if outermost:
            raise RuntimeError("This opens its own transaction and cannot run inside another (ACC-17).")
        match stack[-1]:
            case Transaction() as parent:
                pass
            case _:
                raise RuntimeError("A transaction cannot begin inside db.read(): open it around the read.")
        async with _savepoint(parent) as tx:
            stack.append(tx)
            try:
                yield tx
            finally:
                stack.pop()

    @asynccontextmanager
    async def read(self, database: Database) -> AsyncIterator[Reader]:
        task = _current_task()
        stack = self._stacks.get(task)
        if stack is not None:
            yield stack[-1]
            return
        async with database.checkout() as (connection, raw):
            self._stacks[task] = [reader := Reader(connection, raw)]
            try:
                # In here, because a cancelled one may have begun all the same.
                await raw.execute("begin read only")
                yield reader
            except BaseException as error:
                _explain_loss(raw, error)
                raise
            finally:
                del self._stacks[task]
                await _finish(_roll_back(raw))

    @asynccontextmanager
    async def _outermost(self, database: Database, task: asyncio.Task[Any]) -> AsyncIterator[Transaction]:
        async with database.checkout() as (connection, raw):
            tx = Transaction(connection, raw, depth=0)
            self._stacks[task] = [tx]
            try:
                # In here, because a cancelled one may have begun all the same.
                await raw.execute("begin")
                yield tx
                # Asked for only when somebody will want to know: it makes an id even for a transaction that
                # wrote nothing. It also fails, as it should, when an error inside was swallowed.
                xid = int(await raw.fetchval("select pg_current_xact_id()::text")) if tx.messages else None
            except BaseException as error:
                await _finish(_roll_back(raw))
                _explain_loss(raw, error)
                raise
            finally:
                del self._stacks[task]
            await _finish(_commit(database, tx, xid))


@asynccontextmanager
async def _savepoint(parent: Transaction) -> AsyncIterator[Transaction]:
    raw = parent.raw
    tx = Transaction(parent.connection, raw, depth=parent.depth + 1)
    name = f"lastcall_{tx.depth}"
    await raw.execute(f"savepoint {name}")
    try:
        yield tx
        await raw.execute(f"release savepoint {name}")
    except BaseException:
        if not raw.is_closed():
            await _finish(_undo(raw, f"rollback to savepoint {name}; release savepoint {name}"))
        raise
    parent.messages += tx.messages


async def _commit(database: Database, tx: Transaction, xid: int | None) -> None:
    try:
        async with asyncio.timeout(COMMIT_TIMEOUT.total_seconds()):
            tag = await tx.raw.execute("commit")
    except BaseException as error:
        if _server_said_no(error) and not tx.raw.is_closed():
            raise
        tx.raw.terminate()
        if xid is not None:
            database.bus.unclear(tuple(tx.messages), xid)
        if not isinstance(error, Exception):
            raise
        log.warning("outcome of COMMIT is unclear", xid=xid, error=repr(error))
        raise Unavailable(
            "commit_unclear",
            "The database did not confirm this; it may or may not have been saved.",
            advice="Look before you try again.",
        ) from error
    if tag != "COMMIT":
        # The server answers COMMIT of a failed transaction with ROLLBACK and no error.
        raise RuntimeError("A failed statement was ignored, so the whole transaction was rolled back.")
    database.bus.deliver(tx.messages)


def _server_said_no(error: BaseException) -> bool:
    """An ERROR in answer to COMMIT (a deferred constraint) rolled back; FATAL may come after the commit
    itself."""
    return isinstance(error, asyncpg.PostgresError) and getattr(error, "severity_en", None) == "ERROR"


def _explain_loss(raw: Connection, error: BaseException) -> None:
    """A connection lost before COMMIT was sent: the server rolls back, and a person should hear just that."""
    if raw.is_closed() and isinstance(error, _LOSSES):
        raise Unavailable(
            "database_lost",
            "The connection to the database was lost, and nothing was saved.",
            advice="Try again in a moment.",
        ) from error


async def _roll_back(raw: Connection) -> None:
    if not raw.is_closed():
        await _undo(raw, "rollback")


async def _undo(raw: Connection, statement: str) -> None:
    """Run a rollback; a connection on which that fails is cut, and the server rolls back."""
    try:
        async with asyncio.timeout(ROLLBACK_TIMEOUT.total_seconds()):
            await raw.execute(statement)
    except DRIVER_ERRORS:
        raw.terminate()


async def _finish(work: Coroutine[Any, Any, Result]) -> Result:
    """Run ``work`` to its end even if the caller is cancelled meanwhile; the cancellation then goes on."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except BaseException:  # noqa: BLE001 - task.result() below raises it
            break
    if cancelled is not None:
        with contextlib.suppress(Exception):
            task.result()
        raise cancelled
    return task.result()


def _current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("A transaction needs a running task.")
    return task
