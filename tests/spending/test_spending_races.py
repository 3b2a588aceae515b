"""Costs against costs, against who changes a budget or archives the club, and against the turn of the month."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.spending.conftest import Books

from lastcall.clubs.gates import bump_gate
from lastcall.clubs.life import archive_club
from lastcall.db.transaction import Transaction
from lastcall.deadlines.owner import Stop
from lastcall.errors import LastcallError
from lastcall.spending import costs
from lastcall.spending.judging import Month, month_of, this_month
from lastcall.spending.months import budget_months_owner
from lastcall.testing.clock import TestClock
from lastcall.testing.locks import wait_until_blocked


async def _during(books: Books, first: Callable[[], Awaitable[Any]], second: Awaitable[Any]) -> Any:
    """``first`` in a transaction that is held open until ``second`` waits for it; what became of the second."""
    async with books.db.transaction() as tx:
        await first()
        waiting = asyncio.ensure_future(second)
        await wait_until_blocked(books.db, "club_gates", by=tx.raw.get_server_pid())
    (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
    return outcome


async def no_gate(*_: Any) -> None:
    """In place of the gate, for a twin."""


async def test_two_costs_that_cross_the_limit_together_make_one_incident_and_one_pause(books: Books) -> None:
    await books.budget(10)
    assert (await _during(books, lambda: books.cost(6), books.cost(6))).is_stopped
    assert await books.incidents() == [("limit", "open")]
    assert (await books.view()).club.ever == 12
    assert (await books.house.actions()).count("club.paused") == 1


async def test_a_cost_that_waits_for_a_raise_does_not_stop_by_the_old_limit(books: Books) -> None:
    budget = await books.budget(10)
    await books.cost(5)
    reported = await _during(books, lambda: books.budget(100, seen=budget), books.cost(6))
    assert not reported.is_stopped
    assert await books.club() == ("active", None)


async def test_twin_without_the_gate_a_cost_stops_the_club_by_a_limit_that_is_no_more(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = await books.budget(10)
    await books.cost(5)
    monkeypatch.setattr(costs, "bump_gate", no_gate)
    async with books.db.transaction():
        await books.budget(100, seen=budget)
        assert (await asyncio.create_task(books.cost(6))).is_stopped
    assert await books.club() == ("paused", "budget")


async def test_a_cost_that_waits_for_the_archiving_changes_nothing(books: Books) -> None:
    house = books.house
    await books.budget(10)
    outcome = await _during(books, lambda: archive_club(books.db, house.owner, house.club_id), books.cost(10))
    assert isinstance(outcome, LastcallError)
    assert outcome.code == "agent_key_refused"
    assert await books.club() == ("archived", None)
    assert (await books.view()).club.ever == 0


async def test_twin_without_the_gate_a_cost_is_counted_in_a_club_that_is_being_archived(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = books.house
    monkeypatch.setattr(costs, "bump_gate", no_gate)
    async with books.db.transaction():
        await archive_club(books.db, house.owner, house.club_id)
        await asyncio.create_task(books.cost(10))
    assert await books.club() == ("archived", None)
    assert (await books.view()).club.ever == 10


async def _cost_over_the_turn(books: Books, clock: TestClock) -> None:
    """A cost that began in the month before and waits while the new one begins."""
    await books.budget(10)
    await books.cost(10)
    ends_at = month_of(await clock.now()).ends_at
    await clock.set(ends_at - timedelta(seconds=1))
    owner = budget_months_owner(books.db)

    async def turn() -> None:
        await clock.set(ends_at)
        await owner.run_pass(Stop())

    async with books.db.transaction() as tx:
        await bump_gate(tx, books.house.club_id)
        waiting = asyncio.create_task(books.cost(3))
        await wait_until_blocked(books.db, "club_gates", by=tx.raw.get_server_pid())
        await turn()
    await waiting


async def test_a_cost_that_waits_over_the_turn_of_the_month_counts_for_the_new_one(
    alone: Books, test_clock: TestClock
) -> None:
    await _cost_over_the_turn(alone, test_clock)
    view = await alone.view()
    assert (view.club.this_month, view.club.ever) == (3, 13)
    assert await alone.club() == ("active", None)


async def test_twin_that_looks_at_the_clock_before_the_gate_stops_the_new_month_for_the_old_one(
    alone: Books, test_clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Month] = []

    async def look_first(tx: Transaction, club_id: UUID) -> None:
        seen.append(await this_month(tx))
        await bump_gate(tx, club_id)

    async def as_seen(_: Transaction) -> Month:
        return seen[-1]

    monkeypatch.setattr(costs, "bump_gate", look_first)
    monkeypatch.setattr(costs, "this_month", as_seen)
    await _cost_over_the_turn(alone, test_clock)
    assert (await alone.view()).club.this_month == 0
    assert await alone.club() == ("paused", "budget")
