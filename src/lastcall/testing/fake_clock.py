"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from itertools import count

from lastcall.clock import GLANCE

QUIET_TURNS = 40
"""Turns of the event loop after which tasks that wait for nothing real have come to rest."""

START = datetime(2030, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class FakeClock:
    """A ``Clock`` whose sleepers wake in order, each at exactly its moment, when the test advances it.

    Kept in whole microseconds. ``advance`` moves all of its time; ``set_wall`` moves the wall clock alone, as
    an operator or a time server does; ``suspend`` lets the host sleep: time goes on, and sleepers notice when
    they next look at the clock, as late as the real clock allows.
    """

    def __init__(self, start: datetime = START, uptime: timedelta = timedelta(hours=5)) -> None:
        self._wall = start
        self._boot = uptime // MICROSECOND
        self._timer = 0
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()
        self.sleeps = 0
        """How many sleeps were begun: what waits without spinning begins few."""

    def boot(self) -> float:
        return self._boot / 1_000_000

    def wall(self) -> datetime:
        return self._wall

    async def sleep(self, delay: timedelta) -> None:
        self.sleeps += 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        due = self._timer + max(0, delay // MICROSECOND)
        if due <= self._timer:
            await asyncio.sleep(0)
            return
        heapq.heappush(self._sleepers, (due, next(self._order), future))
        await future

    async def advance(self, delay: timedelta) -> None:
        """Move on by ``delay``, stopping at each sleeper's moment until what it woke has come to rest."""
        target = self._timer + delay // MICROSECOND
        await self.rest()
        while self._sleepers and self._sleepers[0][0] <= target:
            due, _, future = heapq.heappop(self._sleepers)
            if future.done():
                continue
            self._move(due - self._timer)
            future.set_result(None)
            await self.rest()
        self._move(target - self._timer)
        await self.rest()

    async def rest(self) -> None:
        """Let every task run on until it waits for this clock, or for something outside of the process."""
        for _ in range(QUIET_TURNS):
            await asyncio.sleep(0)

    def set_wall(self, moment: datetime) -> None:
        """The wall clock is set; boot-time clock and sleepers go on as they were."""
        self._wall = moment

    def suspend(self, delay: timedelta) -> None:
        """The host slept for ``delay``: both clocks moved, the sleepers' timers did not."""
        slept = delay // MICROSECOND
        self._boot += slept
        self._wall += delay
        glance = self._timer + GLANCE // MICROSECOND
        self._sleepers = [
            (min(due, max(due - slept, glance)), order, future) for due, order, future in self._sleepers
        ]
        heapq.heapify(self._sleepers)

    @property
    def next_sleeper(self) -> timedelta | None:
        """How long until the first sleeper wakes; None when nobody sleeps."""
        pending = [due for due, _, future in self._sleepers if not future.done()]
        return (min(pending) - self._timer) * MICROSECOND if pending else None

    def _move(self, microseconds: int) -> None:
        self._timer += microseconds
        self._boot += microseconds
        self._wall += microseconds * MICROSECOND
