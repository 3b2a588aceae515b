"""Looks lie all over the minute: no second of it holds more than twice its share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.connections.spreading import Spreading, phases
from lastcall.protocol.constants import ACTIVE_LOOK, QUIET_LOOK, WAITING_LOOK

CONNECTIONS = 500
NOW = datetime(2026, 3, 1, 20, 0, 0, tzinfo=UTC)
SPANS = [ACTIVE_LOOK, QUIET_LOOK, (WAITING_LOOK, WAITING_LOOK * 5 / 3)]


def busiest_second(spread: Iterator[float], count: int) -> int:
    return max(Counter(int(phase * 60) for phase in islice(spread, count)).values())


@given(st.floats(0, 1), st.integers(0, 5_000), st.integers(CONNECTIONS, 2_000))
def test_no_second_of_the_minute_holds_twice_its_share_wherever_the_looks_begin(start, skipped, count):
    spread = phases(start)
    next(islice(spread, skipped, skipped), None)
    assert busiest_second(spread, count) <= 2 * count / 60


@given(st.floats(0, 1), st.floats(0, 1))
def test_two_processes_side_by_side_keep_the_share(first, second):
    both = [*islice(phases(first), CONNECTIONS // 2), *islice(phases(second), CONNECTIONS // 2)]
    assert busiest_second(iter(both), CONNECTIONS) <= 2 * CONNECTIONS / 60


@given(st.floats(0, 1))
def test_no_look_lies_where_the_allowance_grants_nothing(start):
    # Its window opens within the first ten seconds of the minute and closes five before its end (allowance.sql).
    assert all(10 <= phase * 60 < 55 for phase in islice(phases(start), CONNECTIONS))


def test_twin_looks_that_follow_the_clock_pile_up_on_one_second():
    def on_the_minute(start: float) -> Iterator[float]:
        while True:
            yield start

    assert busiest_second(on_the_minute(0.0), CONNECTIONS) > 2 * CONNECTIONS / 60


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_a_phase_that_was_not_needed_is_the_next_ones(needed):
    spreading = Spreading(0.25)
    used = []
    for is_needed in needed:
        phase = spreading.take()
        if is_needed:
            used.append(phase)
        else:
            spreading.give_back(phase)
    assert used == list(islice(phases(0.25), len(used)))


@pytest.fixture
def moment(database) -> Callable[..., object]:
    async def at(now: datetime, span: tuple[timedelta, timedelta], phase: float) -> datetime:
        found: datetime = await database.pool.fetchval(
            "select spread_moment($1, $2, $3, $4)", now, *span, phase
        )
        return found

    return at


@pytest.mark.parametrize("span", SPANS)
async def test_a_look_lies_at_its_phase_of_the_minute_within_its_span(moment, span):
    for number, phase in enumerate(islice(phases(0.1), 120)):
        now = NOW + timedelta(seconds=7.3 * number)
        found = await moment(now, span, phase)
        assert now + span[0] <= found <= now + span[1]
        in_minute = (found - found.replace(second=0, microsecond=0)).total_seconds()
        assert in_minute == pytest.approx(phase * 60, abs=1e-4)


async def test_a_short_span_is_used_from_end_to_end(moment):
    span = (timedelta(seconds=30), timedelta(seconds=60))
    found = [await moment(NOW, span, phase) - NOW for phase in (0.0, 0.5, 1.0)]
    assert found == [timedelta(seconds=30), timedelta(seconds=45), timedelta(seconds=60)]
