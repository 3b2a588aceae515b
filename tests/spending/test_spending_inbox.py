"""A budget that is nearly or wholly used up waits in the inbox of those who manage budgets, and of nobody else."""

from __future__ import annotations

import pytest
from sqlalchemy import select
from tests.spending.conftest import Books

from lastcall.clubs.permissions import Permission
from lastcall.clubs.staff import assign_role
from lastcall.db.clock import NOW
from lastcall.decisions.inbox.item import Item, Shelf
from lastcall.decisions.inbox.queries import Wanted, inbox_counts, inbox_page
from lastcall.decisions.inbox.reach import reach_in
from lastcall.people.actor import Actor
from lastcall.spending.budgets import leave_incident
from lastcall.spending.source import BUDGETS, money


async def waiting(books: Books, who: Actor) -> list[Item]:
    """What the inbox shows them, as often as its badge says."""
    async with books.db.read() as tx:
        reach = await reach_in(tx, who, books.house.club_id)
        now = await tx.scalar(select(NOW))
        wanted = Wanted(now, now)
        page = await inbox_page(tx, reach, wanted)
        counts = await inbox_counts(tx, reach, wanted)
    assert counts.of(Shelf.WAITING, BUDGETS.name).number == len(page.items)
    return list(page.items)


async def test_an_incident_is_one_item_until_it_is_raised_left_or_suffices(books: Books) -> None:
    budget = await books.budget(10_000, of_agent=True)
    assert await waiting(books, books.house.owner) == []
    await books.cost(8_000)
    (item,) = await waiting(books, books.house.owner)
    assert item.shown.title == f"The monthly budget of the agent {books.agent.name} is nearly used up"
    await books.cost("2000.5")
    (item,) = await waiting(books, books.house.owner)
    assert item.shown.title == f"The monthly budget of the agent {books.agent.name} is used up"
    assert item.shown.detail.startswith("100.005 of 100.00 spent. It is paused")
    await leave_incident(books.db, books.house.owner, books.house.club_id, item.id)
    assert await waiting(books, books.house.owner) == []
    await books.budget(10_100, of_agent=True, seen=budget)
    (item,) = await waiting(books, books.house.owner)
    assert "nearly" in item.shown.title


async def test_whoever_may_not_manage_budgets_sees_no_incident(books: Books) -> None:
    await books.budget(10)
    await books.cost(10)
    assert len(await waiting(books, books.house.deputy)) == 1
    role = await books.house.role("moderator")
    assert Permission.MANAGE_BUDGETS not in role.permissions
    await assign_role(books.db, books.house.owner, books.house.club_id, role.id, books.house.guest.person_id)
    assert await waiting(books, books.house.guest) == []


@pytest.mark.parametrize(
    ("cents", "shown"), [("12345678", "123,456.78"), ("0.5", "0.005"), ("100", "1.00"), ("0", "0.00")]
)
def test_money_is_shown_to_the_cent_and_finer_where_it_is_finer(cents: str, shown: str) -> None:
    assert money(cents) == shown
