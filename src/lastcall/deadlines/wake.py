"""The wake channel: what one process says after its commits, repeated to the others. Off unless it is
started.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import asyncpg
import structlog

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.db.bus import CacheDrop, Hint
from lastcall.db.connect import DRIVER_ERRORS, Connection
from lastcall.db.database import Database
from lastcall.deadlines.outbox import Message, Outbox, UnclearSignal, payloads, read_payload
from lastcall.deadlines.owner import RETRY, describe
from lastcall.deadlines.signals import Missed, Signal
from lastcall.errors import LastcallError

CHANNEL = "lastcall"

FIRST_PAUSE = timedelta(seconds=1)
"""Before the first attempt to connect again; it doubles up to ``RETRY``."""

REREAD_EVERY = timedelta(days=1)
"""Bounds what a process that died between its commit and its NOTIFY can cause."""

SEND_TIMEOUT = 10.0
"""Seconds for one NOTIFY, which never waits for anything but its flush."""

_SAY = "select pg_notify($1, $2)"

log = structlog.get_logger()


class WakeChannel:
    """Signals, cache drops and hints between processes, by LISTEN and NOTIFY on one connection a process.

    NOTIFY goes out after the commit it speaks of, in a transaction of its own: inside of a writer's
    transaction it takes a lock that all writers of the server share. Messages that come up while one is under
    way travel together. Each time the channel comes up, ``Missed`` is delivered here, since nobody knows what
    was said meanwhile.
    """

    def __init__(self, db: Database, clock: Clock = SYSTEM_CLOCK) -> None:
        self._db = db
        self._clock = clock
        self._outbox = Outbox()
        self._changed = asyncio.Event()
        self._is_receiving = False
        self._is_stopping = False
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self.is_up = False
        db.bus.subscribe(Signal, self._tell)
        db.bus.subscribe(CacheDrop, self._tell)
        db.bus.subscribe(Hint, self._tell)
        db.bus.subscribe_unclear(self._tell_unclear)

    async def start(self) -> None:
        """Begin to connect; does not wait for it, since a server that is away comes back."""
        self._tasks = (
            asyncio.create_task(self._run(), name="wake channel"),
            asyncio.create_task(self._reread_daily(), name="wake channel, daily"),
        )

    async def stop(self) -> None:
        """Send what waits if the channel is up, then close it."""
        self._is_stopping = True
        self._changed.set()
        if not self._tasks:
            return
        run, daily = self._tasks
        daily.cancel()
        if not self.is_up:
            run.cancel()
        await asyncio.gather(run, daily, return_exceptions=True)

    async def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._is_stopping:
            try:
                connection = await self._db.connect()
            except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again
                log.warning("wake channel cannot connect", error=describe(error))
            else:
                pause = FIRST_PAUSE
                await self._serve(connection)
            if not self._is_stopping:
                await self._clock.sleep(pause)
                pause = min(2 * pause, RETRY)

    async def _serve(self, connection: Connection) -> None:
        """Listen and send on this connection until it breaks or the channel stops."""
        connection.add_termination_listener(lambda _: self._changed.set())
        try:
            await connection.add_listener(CHANNEL, self._receive)
            self.is_up = True
            self._deliver([Missed()])
            while not connection.is_closed():
                self._changed.clear()
                if messages := self._outbox.take():
                    await self._send(connection, messages)
                elif self._is_stopping:
                    break
                else:
                    await self._changed.wait()
        except Exception as error:  # noqa: BLE001 - whatever it was, the channel comes up again
            log.warning("wake channel broke", error=describe(error))
        finally:
            self.is_up = False
            with contextlib.suppress(Exception):
                await connection.close(timeout=1)

    async def _send(self, connection: Connection, messages: Sequence[Message]) -> None:
        try:
            for payload in payloads(messages):
                await connection.execute(_SAY, CHANNEL, payload, timeout=SEND_TIMEOUT)
        except BaseException:
            self._outbox.add(messages)
            raise

    def _receive(self, connection: object, pid: int, _channel: str, payload: object) -> None:
        is_own = isinstance(connection, asyncpg.Connection) and pid == connection.get_server_pid()
        if not is_own:
            self._deliver(read_payload(str(payload)))

    def _deliver(self, messages: Sequence[Message]) -> None:
        """Hand on what others said; it is not repeated to them."""
        self._is_receiving = True
        try:
            for message in messages:
                if isinstance(message, UnclearSignal):
                    self._db.bus.unclear([Signal(message.owner)], message.xid)
                else:
                    self._db.bus.deliver([message])
        finally:
            self._is_receiving = False

    def _tell(self, message: Message) -> None:
        if not self._is_receiving and not self._is_stopping:
            self._outbox.add([message])
            self._changed.set()

    def _tell_unclear(self, messages: Sequence[object], xid: int) -> None:
        for message in messages:
            if isinstance(message, Signal | CacheDrop | Hint):
                self._tell(message)
            if isinstance(message, Signal):
                self._tell(UnclearSignal(message.owner, xid))

    async def _reread_daily(self) -> None:
        while True:
            await self._clock.sleep(REREAD_EVERY)
            if self.is_up:
                self._deliver([Missed()])


@contextlib.asynccontextmanager
async def telling(db: Database) -> AsyncIterator[None]:
    """For a process that ends soon and hears nobody, a command of the host: what it commits meanwhile is told at the
    end to the processes that listen."""
    outbox = Outbox()

    def add(message: Message) -> None:
        outbox.add([message])

    db.bus.subscribe(Signal, add)
    db.bus.subscribe(CacheDrop, add)
    db.bus.subscribe(Hint, add)
    try:
        yield
    finally:
        try:
            for payload in payloads(outbox.take()):
                await db.pool.execute(_SAY, CHANNEL, payload)
        except (LastcallError, *DRIVER_ERRORS) as error:
            log.warning("the server was not told", error=describe(error))
