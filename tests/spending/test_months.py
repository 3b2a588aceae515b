"""A new month: what a monthly budget stopped goes on by itself, at the month's start and not before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.spending.conftest import Books

from lastcall.deadlines.owner import Done, Stop
from lastcall.deadlines.signals import Signal
from lastcall.spending.budgets import Period, leave_incident
from lastcall.spending.judging import BUDGET_MONTHS, month_of
from lastcall.spending.months import budget_months_owner
from lastcall.testing.clock import TestClock


def test_a_month_begins_and_ends_by_utc() -> None:
    month = month_of(datetime.fromisoformat("2026-12-31T23:59:59-05:00"))
    assert (month.first.isoformat(), month.ends_at) == ("2027-01-01", datetime(2027, 2, 1, tzinfo=UTC))
    last = month_of(datetime(2026, 12, 31, 23, 59, 59, 999999, tzinfo=UTC))
    assert (last.first.isoformat(), last.ends_at) == ("2026-12-01", datetime(2027, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("is_left", [False, True])
async def test_what_a_month_stopped_goes_on_when_the_next_begins(
    alone: Books, test_clock: TestClock, is_left: bool
) -> None:
    heard: list[Signal] = []
    alone.db.bus.subscribe(Signal, heard.append)
    owner = budget_months_owner(alone.db)
    assert (await owner.next_deadline()).deadline is None
    await alone.budget(10)
    await alone.budget(10, of_agent=True)
    await alone.cost(10)
    if is_left:
        await leave_incident(alone.db, alone.house.owner, alone.house.club_id, await alone.incident_id())
    reading = await owner.next_deadline()
    assert reading.deadline == month_of(reading.now).ends_at
    assert Signal(BUDGET_MONTHS, reading.deadline) in heard

    await test_clock.set(reading.deadline - timedelta(minutes=1))
    await owner.run_pass(Stop())
    assert await alone.club() == ("paused", "budget")
    await test_clock.set(reading.deadline)
    assert isinstance(await owner.run_pass(Stop()), Done)

    assert await alone.club() == ("active", None)
    assert await alone.agents() == ("active", None)
    assert {status for _, status in await alone.incidents()} == {"resolved"}
    assert (await owner.next_deadline()).deadline is None
    view = await alone.view()
    assert (view.club.this_month, view.club.ever) == (0, 10)


async def test_a_lifetimes_budget_has_no_deadline(alone: Books) -> None:
    await alone.budget(10, period=Period.LIFETIME)
    await alone.cost(10)
    assert (await budget_months_owner(alone.db).next_deadline()).deadline is None
    assert await alone.club() == ("paused", "budget")
