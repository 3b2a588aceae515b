"""Costs are counted once, and budgets warn, stop and let go on in the transaction that makes it so."""

from __future__ import annotations

from decimal import Decimal

import pytest
from tests.spending.conftest import Books

from lastcall.access.agents.service import block_agent, pause_agent, resume_agent
from lastcall.clubs.gates import bump_gate
from lastcall.clubs.life import archive_club, pause_club, resume_club, unarchive_club
from lastcall.errors import Conflict, Invalid, LastcallError
from lastcall.spending.budgets import Period, leave_incident
from lastcall.spending.judging import judge, this_month
from lastcall.spending.queries import costs_of


async def test_a_cost_counts_once_for_the_agent_and_the_club(books: Books) -> None:
    first = await books.cost("12.345678", "k", "A call")
    assert (await books.cost("12.345678", "k", "A call")) == first
    with pytest.raises(Conflict) as refused:
        await books.cost(13, "k", "A call")
    assert refused.value.code == "idempotency_key_used"
    await books.cost(1)
    view = await books.view()
    assert (view.club.this_month, view.club.ever) == (Decimal("13.345678"),) * 2
    assert [(one.agent, one.ever) for one in view.agents] == [(books.agent.name, Decimal("13.345678"))]
    async with books.db.read() as tx:
        page = await costs_of(tx, books.house.owner, books.house.club_id, limit=1)
        rest = await costs_of(tx, books.house.owner, books.house.club_id, after=page.next)
    assert [one.key for one in rest.costs] == ["k"]
    assert rest.next is None


@pytest.mark.parametrize("cents", ["0", "-1", "NaN", "Infinity", "0.0000001", "1000000001"])
async def test_an_amount_that_cannot_be_counted_is_refused(books: Books, cents: str) -> None:
    with pytest.raises(Invalid) as refused:
        await books.cost(cents)
    assert refused.value.field == "cents"
    assert (await books.view()).club.ever == 0


@pytest.mark.clause("ACC-07")
async def test_a_club_is_warned_stopped_and_goes_on_with_its_budget(books: Books) -> None:
    budget = await books.budget(100)
    assert not (await books.cost(79)).is_stopped
    assert await books.incidents() == []
    await books.cost(1)
    assert await books.incidents() == [("warning", "open")]
    assert (await books.cost(20)).is_stopped
    assert await books.incidents() == [("limit", "open")]
    assert await books.club() == ("paused", "budget")
    with pytest.raises(Conflict) as refused:
        await resume_club(books.db, books.house.owner, books.house.club_id)
    assert refused.value.code == "paused_by_budget"
    assert (await books.cost(5)).is_stopped, "what was spent while it is paused still counts"
    await books.budget(200, seen=budget)
    assert await books.club() == ("active", None)
    assert await books.incidents() == [("limit", "resolved")]
    assert (await books.view()).club.ever == 105
    actions = await books.house.actions()
    assert [one for one in actions if one.startswith(("budget.", "club."))][-6:] == [
        "budget.set",
        "budget.warning",
        "budget.used_up",
        "club.paused",
        "budget.set",
        "club.resumed",
    ]


async def test_an_agents_budget_stops_that_agent_alone_until_it_ends(books: Books) -> None:
    budget = await books.budget(10, of_agent=True, period=Period.LIFETIME)
    assert (await books.cost(10)).is_stopped
    assert await books.agents() == ("paused", "budget")
    assert await books.club() == ("active", None)
    await books.end(budget)
    assert await books.agents() == ("active", None)
    assert await books.incidents() == [("limit", "resolved")]


async def test_a_budget_that_is_set_below_what_was_spent_stops_at_once(books: Books) -> None:
    await books.cost(50)
    await books.budget(40)
    assert await books.club() == ("paused", "budget")


async def test_a_budget_without_a_stop_only_warns(books: Books) -> None:
    await books.budget(10, hard_stop=False)
    assert not (await books.cost(30)).is_stopped
    assert await books.incidents() == [("warning", "open")]
    assert await books.club() == ("active", None)


async def test_of_two_budgets_that_are_used_up_both_must_suffice_again(books: Books) -> None:
    month = await books.budget(10)
    ever = await books.budget(10, period=Period.LIFETIME)
    await books.cost(10)
    await books.budget(20, seen=month)
    assert await books.club() == ("paused", "budget")
    await books.budget(20, period=Period.LIFETIME, seen=ever)
    assert await books.club() == ("active", None)


async def test_an_incident_that_is_left_waits_for_nobody_and_stays_stopped(books: Books) -> None:
    budget = await books.budget(10)
    await books.cost(10)
    incident_id = await books.incident_id()
    for _ in range(2):
        await leave_incident(books.db, books.house.owner, books.house.club_id, incident_id)
    await books.cost(1)
    assert await books.incidents() == [("limit", "dismissed")]
    assert await books.club() == ("paused", "budget")
    await books.budget(20, seen=budget)
    assert await books.club() == ("active", None)
    with pytest.raises(Conflict):
        await leave_incident(books.db, books.house.owner, books.house.club_id, incident_id)


async def test_a_budget_is_changed_by_one_at_a_time(books: Books) -> None:
    seen = await books.budget(10)
    await books.budget(20, seen=seen)
    for stale in (None, seen):
        with pytest.raises(Conflict) as refused:
            await books.budget(30, seen=stale)
        assert refused.value.fresh.amount == 20


@pytest.mark.clause("ACC-07")
async def test_an_archived_club_never_becomes_paused_and_is_when_it_is_brought_back(books: Books) -> None:
    house = books.house
    await books.budget(10)
    await books.cost(10)
    await archive_club(books.db, house.owner, house.club_id)
    async with books.db.transaction() as tx:
        await bump_gate(tx, house.club_id)
        assert await judge(tx, house.club_id, None, await this_month(tx))
    assert await books.club() == ("archived", None)
    with pytest.raises(LastcallError):
        await books.cost(1)
    await unarchive_club(books.db, house.owner, house.club_id)
    assert await books.club() == ("paused", "budget")


@pytest.mark.clause("ACC-07")
async def test_a_pause_by_hand_keeps_its_reason(books: Books) -> None:
    house = books.house
    budget = await books.budget(10)
    await pause_club(books.db, house.owner, house.club_id)
    await books.cost(10)
    assert await books.club() == ("paused", "manual")
    await resume_club(books.db, house.owner, house.club_id)
    assert await books.club() == ("paused", "budget"), "its budget is used up still"
    await books.budget(20, seen=budget)
    assert await books.club() == ("active", None)


@pytest.mark.parametrize("by_hand", [pause_agent, block_agent])
async def test_what_staff_did_to_an_agent_stays_whatever_its_budget_says(
    books: Books, by_hand: object
) -> None:
    budget = await books.budget(10, of_agent=True)
    await by_hand(books.db, books.house.owner, books.house.club_id, books.agent.agent_id)  # type: ignore[operator]
    before = await books.agents()
    if by_hand is pause_agent:
        await books.cost(10)
    await books.budget(20, of_agent=True, seen=budget)
    assert await books.agents() == before


async def test_an_agent_that_its_budget_paused_is_not_resumed_by_hand(books: Books) -> None:
    await books.budget(10, of_agent=True)
    await books.cost(10)
    with pytest.raises(Conflict) as refused:
        await resume_agent(books.db, books.house.owner, books.house.club_id, books.agent.agent_id)
    assert refused.value.code == "paused_by_budget"


async def test_a_report_is_as_many_statements_after_a_thousand_costs_as_after_one(books: Books) -> None:
    for of_agent in (True, False):
        for period in Period:
            await books.budget(1_000_000, of_agent=of_agent, period=period)
    await books.cost(1)
    before = books.db.statements
    await books.cost(1)
    first = books.db.statements - before
    await books.db.pool.execute(
        "insert into cost_events (club_id, id, agent_id, key, amount, description)"
        " select $1, gen_random_uuid(), $2, 'old-' || n, 1, '' from generate_series(1, 1000) n",
        books.house.club_id,
        books.agent.agent_id,
    )
    before = books.db.statements
    await books.cost(1)
    assert books.db.statements - before == first <= 16
