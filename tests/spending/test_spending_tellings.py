"""Those who manage budgets are told of one that is nearly or wholly used up, each once; nobody else is."""

from __future__ import annotations

import pytest
from tests.spending.conftest import Books

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import standing
from lastcall.clubs.staff import assign_role
from lastcall.decisions.deliveries.notices import notices_of
from lastcall.people.actor import Actor


async def told(books: Books) -> list[tuple[str, str, object]]:
    rows = await books.db.pool.fetch(
        "select kind, channel, person_id from deliveries where club_id = $1 and kind like 'budget.%'"
        " order by kind desc, channel",
        books.house.club_id,
    )
    return [tuple(row) for row in rows]


async def notices(books: Books, who: Actor) -> list[tuple[str, str]]:
    club_id = books.house.club_id
    async with books.db.read() as tx:
        page = await notices_of(tx, who, {club_id: await standing(tx, club_id, who.person_id)})
    return [(one.subject, one.path) for one in page.items]


async def test_whoever_manages_budgets_is_told_of_each_level_once_by_each_channel(books: Books) -> None:
    house = books.house
    role = await house.role("moderator")
    assert Permission.MANAGE_BUDGETS not in role.permissions
    await assign_role(books.db, house.owner, house.club_id, role.id, house.guest.person_id)
    await books.budget(100)
    for cents in (79, 1, 1, 19, 5):
        await books.cost(cents)
    people = {house.owner.person_id, house.deputy.person_id}
    assert {one[2] for one in await told(books)} == people
    for person_id in people:
        assert [one[:2] for one in await told(books) if one[2] == person_id] == [
            ("budget.warning", "app"),
            ("budget.warning", "mail"),
            ("budget.used_up", "app"),
            ("budget.used_up", "mail"),
        ]


async def test_the_notice_leads_to_the_spending_while_the_club_is_paused_and_to_nobody_else(
    books: Books,
) -> None:
    await books.budget(10)
    await books.cost(10)
    assert await books.club() == ("paused", "budget")
    assert await notices(books, books.house.owner) == [
        ("A budget is used up", f"/c/{books.house.slug}/spending")
    ]
    await books.db.pool.execute(
        "update deliveries set person_id = $2 where club_id = $1 and channel = 'app' and person_id = $3",
        books.house.club_id,
        books.house.guest.person_id,
        books.house.owner.person_id,
    )
    assert await notices(books, books.house.guest) == []


async def test_a_cost_that_is_rolled_back_tells_nobody(books: Books) -> None:
    await books.budget(10)
    with pytest.raises(LookupError):
        async with books.db.transaction():
            await books.cost(10)
            raise LookupError
    assert await told(books) == []


async def test_the_page_offers_a_budget_of_each_period_also_for_an_agent_that_reported_nothing(
    books: Books,
) -> None:
    agent = (books.agent.agent_id, books.agent.name)
    offered = (await books.view()).unbudgeted
    assert offered == tuple((*who, when) for who in ((None, None), agent) for when in ("month", "lifetime"))
    await books.budget(10, of_agent=True)
    assert set(offered) - set((await books.view()).unbudgeted) == {(*agent, "month")}
