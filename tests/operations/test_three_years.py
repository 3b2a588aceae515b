"""Three years of one club's Fridays: what the plain model says, what is stored and what VRChat did are one story."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta

import pytest
from machine_stage import START, Stage
from machine_things import CLEAN_UP_PAGE, FAN_OUT_PAGE
from machine_world import Play
from three_years import Years

import lastcall.operations.listeners
import lastcall.operations.owners.epochs
import lastcall.operations.owners.fanout
from lastcall.db.database import Database

_STORED = """
    select id, kind, state, due_at, submitted_at from operations where club_id = $1 and submitted_at is not null
"""
FIRST_FRIDAY = date(2030, 1, 11)
WEEK = timedelta(weeks=1)


async def live(url: str, weeks: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """So many weeks; how many operations came to which end."""
    lastcall.operations.listeners.register()
    monkeypatch.setattr(lastcall.operations.owners.fanout, "PAGE", FAN_OUT_PAGE)
    monkeypatch.setattr(lastcall.operations.owners.epochs, "PAGE", CLEAN_UP_PAGE)
    db = await Database.open(url)
    stage = await Stage.open(db)
    try:
        play = Play(stage, clubs=1)
        await play.begin(START)
        years = Years(play, seed)
        for week in range(weeks):
            await years.evening(FIRST_FRIDAY + week * WEEK)
            if week % 4 == 0:
                await stage.raw.execute("vacuum analyze")  # these servers do not do it by themselves
        years.model.ops.update(years.history)
        play.is_whole = True
        await play.check()
        await compare(years, weeks)
        await play.remove()
        return Counter(op.state for op in years.history.values())
    finally:
        await stage.raw.close()
        await db.close()


async def compare(years: Years, weeks: int) -> None:
    """The ledger has what was authorized and nothing twice; what succeeded is in it; quiet evenings lack nothing."""
    stored = {row["id"]: row for row in await years.play.stage.raw.fetch(_STORED, years.club.id)}
    written = {write.operation_id: write for write in years.ledger.writes}
    assert len(written) == len(years.ledger.writes)
    assert len(set(years.ledger.authorized)) == len(years.ledger.authorized)
    assert stored.keys() == set(years.ledger.authorized)
    assert written.keys() <= stored.keys()
    for operation_id, row in stored.items():
        if row["state"] == "succeeded":
            assert written[operation_id].kind == row["kind"]
        write = written.get(operation_id)
        if write is not None:
            assert row["state"] in ("succeeded", "indeterminate")
            assert row["due_at"] <= row["submitted_at"] <= write.at
    assert years.undisturbed or weeks < 10
    for op in years.undisturbed:
        assert (op.state, op.code) == ("succeeded", None), op


@pytest.mark.clause("EVT-03", "EVT-05", "RCV-04")
@pytest.mark.timeout(300)
async def test_a_few_months_of_evenings_are_the_same_story_in_model_database_and_ledger(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = await live(database_url, 20, 1, monkeypatch)
    assert ends.keys() >= {"succeeded", "cancelled", "missed", "rejected"}, ends


@pytest.mark.soak
@pytest.mark.timeout(3000)
async def test_three_years_of_evenings_are_the_same_story_in_model_database_and_ledger(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = await live(database_url, 157, 2, monkeypatch)
    assert ends.keys() == {"succeeded", "cancelled", "missed", "rejected", "indeterminate"}, ends
