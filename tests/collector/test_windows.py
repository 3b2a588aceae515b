"""In any sixty seconds of the boot clock no more requests leave than the limit allows."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.collector.windows import Window, Windows


class StepClock:
    """A clock whose sleeps pass at once."""

    def __init__(self) -> None:
        self.now = 1000.0

    def boot(self) -> float:
        return self.now

    def wall(self) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(0)
        self.now += delay.total_seconds()


def most_in_any_minute(times: list[float]) -> int:
    return max(
        (sum(1 for other in times if start <= other <= start + 60.0) for start in times),
        default=0,
    )


@settings(deadline=None, max_examples=80)
@given(
    limit=st.integers(1, 6),
    work=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3), st.floats(0, 45)), max_size=25),
)
def test_never_more_than_the_limit_in_any_minute(limit: int, work: list[tuple[int, int, float]]) -> None:
    async def run() -> list[float]:
        clock = StepClock()
        windows = Windows(clock, limit, asyncio.Event())
        connection = Window(clock, limit)
        sent: list[float] = []
        for amount, used, pause in work:
            slots = await windows.hold(amount, windows.account, connection, within=200)
            if slots is None:
                assert amount > limit
                continue
            for _ in range(min(used, amount)):
                slots.charge()
                sent.append(clock.now)
                clock.now += pause
            slots.release()
        return sent

    assert most_in_any_minute(asyncio.run(run())) <= limit


async def test_a_held_slot_is_not_given_twice_and_comes_back_when_released() -> None:
    clock = StepClock()
    windows = Windows(clock, 3, asyncio.Event())
    first = await windows.hold(2, windows.account, within=0)
    assert first is not None
    assert await windows.hold(2, windows.account, within=0) is None
    first.charge()
    first.release()
    second = await windows.hold(2, windows.account, within=0)
    assert second is not None
    with pytest.raises(RuntimeError, match="no slot"):
        first.charge()


async def test_who_waits_for_a_slot_gets_it_when_another_gives_it_back() -> None:
    class StillClock(StepClock):
        async def sleep(self, delay: timedelta) -> None:
            await asyncio.Event().wait()

    windows = Windows(StillClock(), 2, asyncio.Event())
    first = await windows.hold(2, windows.account, within=30)
    assert first is not None
    waiting = asyncio.create_task(windows.hold(1, windows.account, within=30))
    await asyncio.sleep(0)
    assert not waiting.done()
    first.release()
    assert await asyncio.wait_for(waiting, 5) is not None


async def test_a_limit_below_the_amount_is_no_reason_to_wait() -> None:
    clock = StepClock()
    windows = Windows(clock, 30, asyncio.Event())
    assert await windows.hold(2, windows.account, Window(clock, 1), within=1e9) is None
    assert clock.now == 1000.0


def test_a_lowered_limit_counts_what_was_sent_before() -> None:
    clock = StepClock()
    window = Window(clock, 4)
    window.hold(2)
    window.charge()
    window.charge()
    window.limit = 2
    assert not window.has_room(1)
    clock.now += 60.0
    assert not window.has_room(1), "the sixtieth second still counts"
    clock.now += 0.001
    assert window.has_room(2)
