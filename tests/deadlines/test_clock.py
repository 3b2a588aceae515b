"""The real clock: a wait on it ends by the time that passed, also the time that the host slept."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

import lastcall.clock
from lastcall.clock import SystemClock
from lastcall.testing.waiting import WITHIN

DAY = timedelta(days=1)


class Host(SystemClock):
    """A host that can be sent to sleep: its clock goes on, the event loop's timers do not."""

    slept = 0.0

    def boot(self) -> float:
        return super().boot() + self.slept


async def wait_across_a_sleep(within: float) -> bool:
    """Whether a wait of a day has ended so many seconds after the host woke from a sleep of two."""
    host = Host()
    waiting = asyncio.create_task(host.sleep(DAY))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    host.slept = 2 * DAY.total_seconds()
    done, _ = await asyncio.wait({waiting}, timeout=within)
    waiting.cancel()
    return bool(done)


@pytest.mark.clause("SCH-06")
async def test_a_wait_ends_soon_after_the_host_woke(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lastcall.clock, "GLANCE", timedelta(milliseconds=20))
    assert await wait_across_a_sleep(WITHIN)


async def test_twin_a_wait_that_does_not_look_at_its_clock_sleeps_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lastcall.clock, "GLANCE", 2 * DAY)
    assert not await wait_across_a_sleep(0.5)


async def test_a_wait_is_never_shorter_than_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lastcall.clock, "GLANCE", timedelta(milliseconds=3))
    clock = SystemClock()
    for delay in (timedelta(0), timedelta(milliseconds=1), timedelta(milliseconds=10)):
        before = clock.boot()
        await clock.sleep(delay)
        assert clock.boot() - before >= delay.total_seconds()
