"""Owners that follow a script instead of a database, and a scheduler on a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

from lastcall.db.bus import PostCommitBus
from lastcall.deadlines.owner import Done, Owner, PassResult, Position, Reading, Stop
from lastcall.deadlines.scheduler import Scheduler
from lastcall.testing.fake_clock import FakeClock


@dataclass
class FakeServer:
    """What the scheduler needs of a database: its bus, and a clock that is not the process's own."""

    clock: FakeClock
    ahead: timedelta = timedelta(0)
    bus: PostCommitBus = field(default_factory=PostCommitBus)

    @property
    def now(self) -> datetime:
        return self.clock.wall() + self.ahead


class ScriptedOwner:
    """Rows are due times in a list. Counts its reads and passes and remembers when they happened."""

    def __init__(self, server: FakeServer, name: str = "owner", due: Sequence[datetime] = ()) -> None:
        self.name = name
        self.server = server
        self.due = list(due)
        self.reads: list[datetime] = []
        self.passes: list[datetime] = []
        self.settled: list[tuple[datetime, datetime]] = []
        self.read_fails = False
        self.results: list[PassResult | Exception] = []
        self.during_read: Callable[[], Any] | None = None
        self.hold: asyncio.Event | None = None
        self.beyonds: list[Position | None] = []

    async def next_deadline(self, beyond: Position | None = None) -> Reading:
        self.reads.append(self.server.now)
        self.beyonds.append(beyond)
        if self.read_fails:
            raise ConnectionError("the server is away")
        due = [row for row in self.due if beyond is None or row > beyond.time]
        reading = Reading(self.server.now, min(due, default=None))
        if self.during_read is not None:
            self.during_read()
        return reading

    async def run_pass(self, stop: Stop) -> PassResult:
        now = self.server.now
        self.passes.append(now)
        if self.hold is not None:
            await self.hold.wait()
        if self.results:
            result = self.results.pop(0)
            if isinstance(result, Exception):
                raise result
            return result
        ready = [row for row in self.due if row <= now]
        self.settled += [(row, now) for row in ready]
        self.due = [row for row in self.due if row > now]
        return Done(len(ready))


@asynccontextmanager
async def running(server: FakeServer, *owners: Owner) -> AsyncIterator[Scheduler]:
    """A started scheduler whose first reads are over; stopped at the end."""
    scheduler = Scheduler(cast("Any", server), owners, server.clock)
    await scheduler.start()
    await server.clock.rest()
    try:
        yield scheduler
    finally:
        await scheduler.stop()
