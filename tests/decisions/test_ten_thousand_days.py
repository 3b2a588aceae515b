"""Thousands of days at one club: everything that people do and everything that fails, drawn from a seed, and afterwards
every row is where a plain model says: none archived early, none forgotten.
"""

from __future__ import annotations

from collections import Counter

import pytest
from tests.decisions.conftest import Door
from tests.decisions.days_world import ACTIONS, open_days

import lastcall.decisions.retention.refreshes
from lastcall.decisions.retention import due

ROUND = 100


async def live(door: Door, days: int, seed: int) -> Counter[str]:
    """So many days; how often what happened."""
    world = await open_days(door, seed)
    try:
        for day in range(days):
            await world.day()
            if day % ROUND == ROUND - 1:
                await world.forget_the_past()
        await world.check()
    finally:
        await world.stop()
        await world._raw.close()
    return world.did


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A club's items are refreshed in many steps, not in one."""
    monkeypatch.setattr(lastcall.decisions.retention.refreshes, "ROWS", 5)


@pytest.mark.clause("RET-15", "DEC-02", "SCH-01")
async def test_after_many_days_every_row_is_where_the_model_says(door: Door, small_pages: None) -> None:
    did = await live(door, 300, seed=6)
    assert did.keys() >= ACTIONS.keys()
    assert did["archived by itself"] > 30
    assert did["archived after failing"] > 0


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(1, 5))
async def test_after_ten_thousand_days_every_row_is_where_the_model_says(
    door: Door, small_pages: None, seed: int
) -> None:
    did = await live(door, 2500, seed)
    assert did.keys() >= ACTIONS.keys()
    assert did["archived by itself"] > 500


async def test_twin_a_row_that_is_not_derived_anew_is_found_by_the_model(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def not_derived(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr("lastcall.decisions.retention.write.refresh", not_derived)
    assert due.refresh is not not_derived
    with pytest.raises(AssertionError, match="is stored as"):
        await live(door, 200, seed=6)
