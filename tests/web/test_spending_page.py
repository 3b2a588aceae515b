"""The page of spending sets a budget of either period for the club and for any agent, and changes it as it was seen."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from tests.web.conftest import Site, Visitor, World

from lastcall.db.ids import encode_id
from lastcall.testing.agents import let_in_agent

Visit = Callable[..., Visitor]
PAGE = "/c/night-shift/spending"


async def test_budgets_of_each_period_are_set_for_an_agent_that_reported_nothing_and_changed(
    world: World, site: Site, visit: Visit
) -> None:
    del site
    agent, _ = await let_in_agent(world.db, world.club_id, world.actors["staff"].person_id, name="Porter")
    owner: Visitor = visit("owner")
    for whose in (f"{encode_id(agent.agent_id)} month", f"{encode_id(agent.agent_id)} lifetime", " lifetime"):
        assert f'<option value="{whose}">' in (await owner.get(PAGE)).text
        fields = {"whose": whose, "amount": "25.00", "warn": "80", "stop": "yes"}
        answer = await owner.post(PAGE, fields, token=await owner.token(PAGE))
        assert answer.status_code == 303, answer.text
        assert f'<option value="{whose}">' not in (await owner.get(PAGE)).text
    rows = await world.db.pool.fetch("select agent_id, period from budgets order by id")
    assert [tuple(row) for row in rows] == [
        (agent.agent_id, "month"),
        (agent.agent_id, "lifetime"),
        (None, "lifetime"),
    ]
    text = (await owner.get(PAGE)).text
    (seen,) = re.findall(
        rf'name="seen" value="([^"]+)">\s*<input type="hidden" name="whose" value="{encode_id(agent.agent_id)} month"',
        text,
    )
    change = {
        "whose": f"{encode_id(agent.agent_id)} month",
        "amount": "30",
        "warn": "70",
        "stop": "yes",
        "seen": seen,
    }
    token = await owner.token(PAGE)
    assert (await owner.post(PAGE, change, token=token)).status_code == 303
    assert (await owner.post(PAGE, change, token=token)).status_code == 409
    assert await world.db.pool.fetchval("select amount from budgets where warn_percent = 70") == 3000


@pytest.mark.parametrize("amount", ["", "much", "NaN", "sNaN", "-1", "0.000000001", "1e999999", "1e-999999"])
async def test_an_amount_that_is_none_is_told_on_the_page(site: Site, visit: Visit, amount: str) -> None:
    del site
    owner: Visitor = visit("owner")
    fields = {"whose": " month", "amount": amount, "warn": "80", "stop": "yes"}
    answer = await owner.post(PAGE, fields, token=await owner.token(PAGE))
    assert answer.status_code == 422, answer.text
    assert "The amount is" in answer.text
