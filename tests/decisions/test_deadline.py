"""The deadline is the earliest candidate's, never a fraction early, found without walking what is not due."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.decisions.conftest import NINETY_DAYS, Door

from lastcall.db.database import Database
from lastcall.decisions.retention.sweep import DueItems
from lastcall.testing.clock import TestClock

EVERY_KIND = True

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
DAY = 86_400_000_000  # microseconds
EVENING = datetime(2031, 3, 30, 0, 59, 59, 999_000, tzinfo=UTC)  # just before many zones change their clocks


@pytest.mark.clause("RET-04")
@pytest.mark.parametrize("microseconds", [0, 1, 499, 500, 501, 999])
async def test_the_deadline_is_ninety_days_on_rounded_up_to_the_millisecond(
    database: Database, door: Door, test_clock: TestClock, microseconds: int
) -> None:
    activity = EVENING + timedelta(microseconds=microseconds)
    await test_clock.freeze(activity)
    await door.waits(activity + timedelta(hours=1))
    await door.waits(activity)
    source = DueItems(database, door.kind)

    reading = await source.next_deadline()

    due = (activity - EPOCH) // MICROSECOND + 90 * DAY
    expected = EPOCH + -(-due // 1000) * 1000 * MICROSECOND
    assert reading.deadline == expected
    assert reading.now == activity
    await test_clock.freeze(expected - timedelta(milliseconds=1))
    assert await source.boundary() is None
    await test_clock.freeze(expected)
    assert await source.boundary() is not None, "a wake at the deadline finds the row"


@pytest.mark.clause("RET-04")
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    moments=st.lists(
        st.datetimes(datetime(1970, 1, 1), datetime(9000, 1, 1)).map(lambda t: t.replace(tzinfo=UTC)),  # noqa: DTZ001
        min_size=1,
        max_size=200,
    )
)
async def test_rounding_never_goes_down_and_never_up_by_a_millisecond(
    database: Database, moments: Sequence[datetime]
) -> None:
    rows = await database.pool.fetch(
        "select t, ceil_to_millisecond(t) as up from unnest($1::timestamptz[]) t", list(moments)
    )
    for row in rows:
        assert timedelta(0) <= row["up"] - row["t"] < timedelta(milliseconds=1)
        assert row["up"].microsecond % 1000 == 0


async def test_twin_rounding_down_wakes_before_anything_is_due(
    database: Database, door: Door, test_clock: TestClock
) -> None:
    await database.pool.execute(
        "create or replace function ceil_to_millisecond(p_time timestamptz) returns timestamptz"
        " language sql stable as $$ select date_trunc('milliseconds', p_time) $$"
    )
    activity = await test_clock.freeze(EVENING + timedelta(microseconds=1))
    await door.waits(activity)
    source = DueItems(database, door.kind)
    deadline = (await source.next_deadline()).deadline
    assert deadline is not None
    await test_clock.freeze(deadline)
    assert await source.boundary() is None, "the twin wakes and finds nothing"


async def test_a_signal_carries_the_rounded_deadline(database: Database, door: Door) -> None:
    signals: list[Any] = []
    database.bus.subscribe(object, signals.append)
    request = await door.waits(EVENING + timedelta(microseconds=1))
    deadlines = [s.deadline for s in signals if getattr(s, "owner", None) == door.kind.owner]
    assert set(deadlines) == {EVENING + NINETY_DAYS + timedelta(milliseconds=1)}
    assert await door.due_at(request) == EVENING + NINETY_DAYS + timedelta(microseconds=1)


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The plan and all below it."""
    return [plan, *(node for child in plan.get("Plans", []) for node in nodes(child))]


async def explain(database: Database, statement: str, *arguments: object) -> dict[str, Any]:
    """The plan that a prepared statement settles on, executed."""
    async with database.pool.acquire() as connection:
        await connection.execute("set plan_cache_mode = force_generic_plan")
        try:
            text = await connection.fetchval(
                f"explain (analyze, buffers, format json) {statement}", *arguments
            )
        finally:
            await connection.execute("reset plan_cache_mode")
    plan: dict[str, Any] = json.loads(text)[0]["Plan"]
    return plan


@pytest.mark.clause("RET-05", "RET-20")
@pytest.mark.postgres15
async def test_forty_thousand_requests_that_are_not_due_are_never_walked(
    database: Database, door: Door
) -> None:
    table = door.kind.table.name
    for status in ("rejected", door.kind.pending):
        await door.past(status)
    request = await door.overdue()
    await database.pool.execute(f"vacuum analyze {table}")
    due = await door.due_at(request)
    assert due is not None
    statements: list[tuple[str, tuple[object, ...], int]] = [
        (door.kind.order.next_deadline, (), 1),
        (door.kind.order.next_deadline_beyond, (due - MICROSECOND, request), 1),
        (door.kind.order.boundary, (), 1),
        (door.kind.order.page, (due - MICROSECOND, request, due, request, 100), 1),
    ]
    for statement, arguments, found in statements:
        plan = await explain(database, statement, *arguments)
        scans = [node for node in nodes(plan) if "Relation Name" in node]
        scans = [node for node in scans if node["Relation Name"] == table]
        assert [node["Index Name"] for node in scans] == [f"{table}_archive_due_at_idx"], statement
        assert scans[0]["Actual Rows"] == found
        assert scans[0].get("Rows Removed by Filter", 0) == 0
        assert scans[0]["Shared Hit Blocks"] + scans[0]["Shared Read Blocks"] <= 8, statement
    assert (await DueItems(database, door.kind).next_deadline()).deadline is not None
