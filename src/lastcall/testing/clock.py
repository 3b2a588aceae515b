"""The database's clock in the hands of a test.

In a test database ``lastcall_now()`` reads one row, so that every process on that database sees the same
time: ``anchor + offset + (real time since real_anchor) * rate``.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import asyncpg

from lastcall.db.connect import connect

INSTALL = """
create schema lastcall_testing;
create table lastcall_testing.test_clock (
    is_only boolean primary key default true check (is_only),
    anchor timestamptz not null,
    real_anchor timestamptz not null,
    rate float8 not null,
    "offset" interval not null
);
insert into lastcall_testing.test_clock values (true, clock_timestamp(), clock_timestamp(), 1, '0');
create or replace function public.lastcall_now() returns timestamptz language sql volatile as $$
    select anchor + "offset" + (clock_timestamp() - real_anchor) * rate from lastcall_testing.test_clock
$$;
"""
"""Run once, in the template of the test databases."""


class TestClock:
    """Sets the time that ``lastcall_now()`` answers. Starts as the real time, at its real rate.

    Each change is committed at once, on a connection of its own: open transactions see it too.
    """

    __test__ = False

    def __init__(self, url: str) -> None:
        self._url = url

    async def now(self) -> datetime:
        """What the database takes for the present."""
        moment = await self._run("select lastcall_now()")
        assert isinstance(moment, datetime)
        return moment

    async def set(self, moment: datetime) -> None:
        """It is ``moment`` (aware) now; the rate stays."""
        await self._run(
            """update lastcall_testing.test_clock
               set anchor = $1, real_anchor = clock_timestamp(), "offset" = '0' returning anchor""",
            moment,
        )

    async def advance(self, by: timedelta) -> None:
        """Let ``by`` pass at once."""
        await self._run(
            """update lastcall_testing.test_clock set "offset" = "offset" + $1 returning anchor""", by
        )

    async def run_at(self, rate: float) -> None:
        """From now on the clock runs at ``rate`` times the real one; 0 stops it."""
        await self._run(
            """update lastcall_testing.test_clock
               set anchor = lastcall_now(), real_anchor = clock_timestamp(), "offset" = '0', rate = $1
               returning anchor""",
            rate,
        )

    async def freeze(self, moment: datetime | None = None) -> datetime:
        """Stop the clock, at ``moment`` or where it is; returns that time."""
        await self.run_at(0)
        if moment is not None:
            await self.set(moment)
        return await self.now()

    async def _run(self, statement: str, *arguments: object) -> object:
        connection: asyncpg.Connection[asyncpg.Record] = await connect(self._url)
        try:
            value: object = await connection.fetchval(statement, *arguments)
        finally:
            await connection.close()
        return value
