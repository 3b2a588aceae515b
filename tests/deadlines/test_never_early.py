"""Never early, none forgotten, no more reads than allowed: whatever writers, signals and clocks do."""

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.deadlines.hints import CROWD, WINDOW, Hints
from lastcall.deadlines.signals import Signal
from lastcall.deadlines.times import LAST, SECOND, DatabaseTime, span, to_datetime, to_microseconds, whole
from lastcall.testing.fake_clock import FakeClock
from tests.deadlines.scripted import FakeServer, ScriptedOwner, running

MICROSECOND = timedelta(microseconds=1)
gaps = st.timedeltas(timedelta(0), timedelta(minutes=20))
distances = st.timedeltas(timedelta(0), timedelta(hours=3)) | st.just(timedelta(days=2))
writes = st.tuples(gaps, distances, st.sampled_from(["deadline", "dirty", "both", "rolled back"]))


@pytest.mark.clause("RET-04", "SCH-03", "SCH-06")
@settings(max_examples=50, deadline=None)
@given(
    script=st.lists(writes, max_size=10),
    ahead=st.timedeltas(timedelta(days=-2), timedelta(days=2)),
)
def test_every_row_is_settled_on_its_microsecond(
    script: list[tuple[timedelta, timedelta, str]], ahead: timedelta
) -> None:
    asyncio.run(check_played(script, ahead))


async def check_played(script: list[tuple[timedelta, timedelta, str]], ahead: timedelta) -> None:
    clock = FakeClock()
    server = FakeServer(clock, ahead)
    owner = ScriptedOwner(server)
    due: list[datetime] = []
    known_late: set[datetime] = set()
    async with running(server, owner):
        for gap, distance, how in script:
            await clock.advance(gap)
            deadline = server.now + distance
            if how == "rolled back":
                server.bus.deliver([Signal("owner", deadline)])
                continue
            due.append(deadline)
            owner.due.append(deadline)
            if how in {"deadline", "both"}:
                server.bus.deliver([Signal("owner", deadline)])
            if how in {"dirty", "both"}:
                server.bus.deliver([Signal("owner")])
            if how == "dirty":
                known_late.add(deadline)
        await clock.advance(max(due, default=server.now) - server.now + timedelta(seconds=31))
    settled = dict(owner.settled)
    assert sorted(settled) == sorted(set(due)), "none is forgotten"
    for row, at in settled.items():
        assert row <= at, "none is early"
        latest = row + timedelta(seconds=30) if row in known_late else row
        assert at <= latest, "none is late"
    assert len(owner.reads) <= 1 + len(script) + len(owner.passes)
    passes = set(owner.passes)
    by_signal = sorted(read for read in owner.reads[1:] if read not in passes)
    assert all(b - a >= timedelta(seconds=30) for a, b in itertools.pairwise(by_signal))


@settings(deadline=None)
@given(
    offset=st.timedeltas(timedelta(days=-9000), timedelta(days=9000)),
    uptime=st.floats(0, 1e9, allow_nan=False),
    trips=st.lists(st.tuples(st.floats(0, 3), st.floats(0, 1), st.floats(0, 600)), min_size=1, max_size=8),
    wait=st.integers(0, 10**15),
)
def test_the_kept_distance_never_runs_ahead_of_the_database(
    offset: timedelta, uptime: float, trips: list[tuple[float, float, float]], wait: int
) -> None:
    epoch = datetime(2030, 1, 1, tzinfo=UTC) + offset
    time = DatabaseTime()
    boot = uptime
    for trip, share, pause in trips:
        before, after = boot, boot + trip
        read_at = before + trip * share
        time.observe(epoch + whole(read_at - uptime) * MICROSECOND, before, after)
        boot = after + pause
    truth = to_microseconds(epoch) - whole(uptime)
    start = whole(boot)
    shown = time.at(start + wait)
    assert shown is not None
    assert shown <= start + wait + truth + 3, "three roundings of the test's own floats"
    assert time.boot_at(shown) == start + wait


def test_a_slow_reading_does_not_make_a_good_distance_worse() -> None:
    time = DatabaseTime()
    epoch = datetime(2030, 1, 1, tzinfo=UTC)
    time.observe(epoch, 10.0, 10.0)
    time.observe(epoch + timedelta(seconds=1), 10.5, 15.0)
    assert time.at(whole(20.0)) == to_microseconds(epoch) + 10 * SECOND


def test_a_reading_that_contradicts_the_distance_replaces_it() -> None:
    time = DatabaseTime()
    epoch = datetime(2030, 1, 1, tzinfo=UTC)
    for jump in (timedelta(0), timedelta(hours=-3), timedelta(days=9)):
        time.observe(epoch + jump, 10.0, 10.5)
        assert time.at(whole(10.5)) == to_microseconds(epoch + jump)


@given(st.datetimes(timezones=st.just(UTC)))
def test_microseconds_survive_the_way_there_and_back(moment: datetime) -> None:
    assert to_datetime(to_microseconds(moment)) == moment


@pytest.mark.clause("SCH-06")
def test_a_time_past_the_end_of_the_calendar_is_shown_as_its_end() -> None:
    assert to_datetime(LAST + span(timedelta(days=99999))) == datetime.max.replace(tzinfo=UTC)


@given(st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 10**8)), max_size=2 * CROWD))
def test_hints_keep_what_is_young_and_hand_back_the_earliest_of_the_rest(
    arrivals: list[tuple[int, int]],
) -> None:
    hints = Hints()
    merged: list[int] = []
    now = 0
    for deadline, gap in arrivals:
        now += gap
        handed_back = hints.add(deadline, now)
        if handed_back is not None:
            merged.append(handed_back)
    if arrivals:
        assert min(d for d in (*merged, hints.earliest) if d is not None) == min(d for d, _ in arrivals)
    young, at = [], now
    for deadline, gap in reversed(arrivals):
        if at >= now - WINDOW:
            young.append(deadline)
        at -= gap
    hints.settle(now)
    assert hints.earliest is None or not young or hints.earliest <= min(young)
    hints.fire(10**10)
    assert hints.earliest is None


def test_a_year_of_signals_without_a_read_takes_no_memory() -> None:
    hints = Hints()
    for n in range(20_000):
        hints.add(10**12 + n * SECOND * 60, n * SECOND * 5)
    assert len(hints._entries) <= 2 * CROWD
