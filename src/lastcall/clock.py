"""The process's own clock. It is only ever a wait: what is due, late or expired is judged by the database's clock.

Waits run on a boot-time clock, which goes on while the host sleeps and never jumps with the wall clock. Everything
that waits takes a ``Clock``, so that the test kit can run all processes on one clock of its own.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

GLANCE = timedelta(seconds=5)
"""How often a wait looks at its clock: the timers of an event loop stand still while the host sleeps, so this is how
late, at most, a wait ends that came due meanwhile."""


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
    """The host's clocks: ``CLOCK_BOOTTIME``, or ``CLOCK_MONOTONIC`` on systems whose own counts sleep (macOS)."""

    _boot_id = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def boot(self) -> float:
        return time.clock_gettime(self._boot_id)

    def wall(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, delay: timedelta) -> None:
        until = self.boot() + delay.total_seconds()
        await asyncio.sleep(0)
        while (left := until - self.boot()) > 0:  # noqa: ASYNC110 - waking from sleep sends no event
            await asyncio.sleep(min(left, GLANCE.total_seconds()))


SYSTEM_CLOCK = SystemClock()
