"""One clock for several real processes, in a file that a test holds: it can be moved on and run faster.

``lastcall.testing.clock.TestClock`` does the same for ``lastcall_now()`` in a database; ``SharedTime`` moves
both.
"""

from __future__ import annotations

import asyncio
import os
import struct
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lastcall.testing.clock import TestClock

_LAYOUT = struct.Struct("<ddd")
"""The real monotonic time of the anchor, the clock's own time at it, and the rate."""

_LOOK_AGAIN = 0.02
"""Real seconds after which a sleeper looks whether the clock was moved."""


class SharedClock:
    """The clock in ``path``, as every process on it sees it. Its boot time is its time since 1970."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def boot(self) -> float:
        """Seconds; moves on when the test moves it."""
        real_anchor, anchor, rate = _LAYOUT.unpack(os.pread(self._descriptor, _LAYOUT.size, 0))
        moved: float = anchor + (time.monotonic() - real_anchor) * rate
        return moved

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
    """Moves the clock in ``path``, and that of a database with it where one is given. Starts as the real
    time.
    """

    def __init__(self, path: Path, database_clock: TestClock | None = None) -> None:
        self._path = path
        self._database_clock = database_clock
        self._rate = 1.0
        self._write(time.time(), 1.0)
        self.clock = SharedClock(path)

    async def advance(self, by: timedelta) -> None:
        """Let ``by`` pass at once."""
        self._write(self.clock.boot() + by.total_seconds(), self._rate)
        if self._database_clock is not None:
            await self._database_clock.advance(by)

    async def run_at(self, rate: float) -> None:
        """From now on the clock runs at ``rate`` times the real one."""
        self._rate = rate
        self._write(self.clock.boot(), rate)
        if self._database_clock is not None:
            await self._database_clock.run_at(rate)

    def _write(self, moment: float, rate: float) -> None:
        content = _LAYOUT.pack(time.monotonic(), moment, rate)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, content, 0)
        finally:
            os.close(descriptor)
