"""One clock for several real processes and their database: it can be moved on and run faster.

The processes read it from a file, ``lastcall_now()`` from a table. Both hold the clock before and after one moment of
the host's clock, which lies a little ahead when it is written: so the clock moves everywhere at once, and nobody ever
sees the database and a process apart.
"""

from __future__ import annotations

import asyncio
import os
import struct
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lastcall.db.connect import connect

_LAYOUT = struct.Struct("<6d")
"""Twice, before and after the change: a real time, the clock's own time at it, the rate. The second real time is the
moment of the change. All in seconds since 1970."""

_AHEAD = 0.4
"""Real seconds between the decision and the change: both copies are written by then, also on a busy machine."""

_LOOK_AGAIN = 0.02
"""Real seconds after which a sleeper looks whether the clock was moved."""

_INSTALL = """
create schema if not exists lastcall_testing;
create table if not exists lastcall_testing.shared_clock (
    is_only boolean primary key default true check (is_only),
    real_before timestamptz, before timestamptz, rate_before float8,
    real_after timestamptz, after timestamptz, rate_after float8
);
insert into lastcall_testing.shared_clock values (true) on conflict do nothing;
create or replace function public.lastcall_now() returns timestamptz language plpgsql volatile as $$
declare
    v_real constant timestamptz := clock_timestamp();
begin
    return (
        select case
                   when v_real < c.real_after then c.before + (v_real - c.real_before) * c.rate_before
                   else c.after + (v_real - c.real_after) * c.rate_after
               end
          from lastcall_testing.shared_clock c);
end
$$;
"""

_WRITE = """
update lastcall_testing.shared_clock
   set real_before = to_timestamp($1), before = to_timestamp($2), rate_before = $3,
       real_after = to_timestamp($4), after = to_timestamp($5), rate_after = $6
"""


class SharedClock:
    """The clock in ``path``, as every process on it sees it. Its boot time is its time since 1970."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def boot(self) -> float:
        """Seconds; moves on when the test moves it."""
        return self.at(time.time())[0]

    def at(self, real: float) -> tuple[float, float]:
        """The clock's time and its rate at this time of the host's clock."""
        content = os.pread(self._descriptor, _LAYOUT.size, 0)
        real_before, before, rate_before, real_after, after, rate_after = _LAYOUT.unpack(content)
        if real < real_after:
            return before + (real - real_before) * rate_before, rate_before
        return after + (real - real_after) * rate_after, rate_after

    def wall(self) -> datetime:
        """The same time as a date."""
        return datetime.fromtimestamp(self.boot(), UTC)

    async def sleep(self, delay: timedelta) -> None:
        """Return once ``delay`` has passed on this clock, however it passed."""
        until = self.boot() + delay.total_seconds()
        while self.boot() < until:  # noqa: ASYNC110 - the test that moves the clock is another process
            await asyncio.sleep(_LOOK_AGAIN)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class SharedTime:
    """Moves the clock in ``path``, and that of the database at ``url`` where one is given.

    It starts as the real time. A database has to be put on it by ``install`` first.
    """

    def __init__(self, path: Path, url: str | None = None) -> None:
        now = time.time()
        self._path = path
        self._url = url
        self._content = (now, now, 1.0, now, now, 1.0)
        self._write()
        self.clock = SharedClock(path)

    async def install(self) -> None:
        """Make ``lastcall_now()`` of the database read this clock."""
        await self._execute(_INSTALL)
        await self._execute(_WRITE, *self._content)

    async def advance(self, by: timedelta) -> None:
        """Let ``by`` pass at once."""
        await self._change(by.total_seconds(), None)

    async def run_at(self, rate: float) -> None:
        """From now on the clock runs at ``rate`` times the real one."""
        await self._change(0.0, rate)

    async def _change(self, by: float, rate: float | None) -> None:
        now, then = time.time(), time.time() + (_AHEAD if self._url is not None else 0.0)
        (before, rate_before), (after, _) = self.clock.at(now), self.clock.at(then)
        self._content = (now, before, rate_before, then, after + by, rate_before if rate is None else rate)
        if self._url is not None:
            await self._execute(_WRITE, *self._content)
        self._write()
        await asyncio.sleep(max(0.0, then - time.time()))

    async def _execute(self, statement: str, *arguments: float) -> None:
        if self._url is None:
            raise RuntimeError("this clock has no database")
        connection = await connect(self._url)
        try:
            await connection.execute(statement, *arguments)
        finally:
            await connection.close()

    def _write(self) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, _LAYOUT.pack(*self._content), 0)
        finally:
            os.close(descriptor)
