"""The process's own clock. It is only ever a wait: what is due, late or expired is judged by the database's clock.

Waits run on a boot-time clock, which goes on while the host sleeps and never jumps with the wall clock. Everything
that waits takes a ``Clock``, so that the test kit can run all processes on one clock of its own.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What a wait needs: two readings and a sleep, all in this clock's own seconds."""

    def boot(self) -> float:
        """Seconds since an arbitrary start; never steps back, and counts time that the host slept."""
        ...

    def wall(self) -> datetime:
        """The host's idea of the time (aware, UTC). It may jump; use it to show and to compare, never to judge."""
        ...

    async def sleep(self, delay: timedelta) -> None:
        """Return after ``delay`` of this clock's time. Cancellable."""
        ...


class SystemClock:
    """The host's clocks: ``CLOCK_BOOTTIME`` where there is one, else the monotonic clock."""

    _boot_id = getattr(time, "CLOCK_BOOTTIME", None)

    def boot(self) -> float:
        if self._boot_id is not None:
            return time.clock_gettime(self._boot_id)
        return time.monotonic()

    def wall(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(max(0.0, delay.total_seconds()))


SYSTEM_CLOCK = SystemClock()
