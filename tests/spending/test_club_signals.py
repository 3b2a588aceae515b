"""Every way in which a club changes its state signals in the transaction that does it, and in no other case."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.spending.conftest import Books

from lastcall.clubs import life
from lastcall.clubs.life import archive_club, delete_club, pause_club, resume_club, unarchive_club
from lastcall.clubs.queries import read_settings
from lastcall.clubs.service import ClubFields, edit_club
from lastcall.db.database import Database
from lastcall.deadlines.owner import Position
from lastcall.deadlines.poison import Candidate
from lastcall.deadlines.signals import Signal
from lastcall.decisions.retention.kinds import KINDS
from lastcall.decisions.retention.refreshes import RETENTION_REFRESH
from lastcall.errors import Unavailable
from lastcall.spending import judging, months
from lastcall.spending.judging import month_of
from lastcall.spending.months import BudgetMonths
from lastcall.testing.proxy import Cut, CuttingProxy

Act = Callable[[Books], Awaitable[Any]]


def by_owner(step: Any, **more: Any) -> Act:
    return lambda b: step(b.db, b.house.owner, b.house.club_id, **more)


async def new_days(books: Books) -> None:
    async with books.db.read() as tx:
        seen = await read_settings(tx, books.house.club_id)
    fields = ClubFields(seen.name, seen.slug, seen.zone, 30)
    await edit_club(books.db, books.house.owner, books.house.club_id, fields, seen.updated_at)


async def used_up(books: Books) -> None:
    await books.budget(10)
    await books.cost(10)


async def raised(books: Books) -> None:
    (budget,) = (await books.view()).budgets
    await books.budget(20, seen=budget)


async def ended(books: Books) -> None:
    (budget,) = (await books.view()).budgets
    await books.end(budget)


async def next_month(books: Books) -> None:
    """Settle the incident as the owner does when the month is over."""
    incident = (await books.view()).incidents[0]
    at = incident.ends_at or datetime.max.replace(tzinfo=UTC)
    await BudgetMonths(books.db).settle(
        Candidate(books.house.club_id, incident.id, Position(at, incident.id))
    )


@dataclass(frozen=True)
class Way:
    """How a club comes to its next state, and what it needs before."""

    act: Act
    becomes: str
    before: tuple[Act, ...] = ()
    owners: frozenset[str] = frozenset({RETENTION_REFRESH})


WAYS = {
    "paused": Way(by_owner(pause_club), "paused"),
    "resumed": Way(by_owner(resume_club), "active", (by_owner(pause_club),)),
    "archived": Way(by_owner(archive_club), "archived"),
    "archived while paused": Way(by_owner(archive_club), "archived", (by_owner(pause_club),)),
    "brought back": Way(by_owner(unarchive_club), "active", (by_owner(archive_club),)),
    "brought back with a used up budget": Way(
        by_owner(unarchive_club), "paused", (used_up, by_owner(archive_club))
    ),
    "deleted": Way(
        lambda b: delete_club(b.db, b.house.owner, b.house.club_id, confirm_slug=b.house.slug),
        "deleting",
        (by_owner(archive_club),),
        frozenset(kind.owner for kind in KINDS.values()),
    ),
    "other days": Way(new_days, "active"),
    "budget used up": Way(lambda b: b.cost(10), "paused", (lambda b: b.budget(10),)),
    "budget set below what was spent": Way(lambda b: b.budget(10), "paused", (lambda b: b.cost(10),)),
    "budget raised": Way(raised, "active", (used_up,)),
    "budget ended": Way(ended, "active", (used_up,)),
    "month over": Way(next_month, "active", (used_up,)),
}


@pytest.fixture(params=WAYS.values(), ids=WAYS)
async def way(request: pytest.FixtureRequest, books: Books, monkeypatch: pytest.MonkeyPatch) -> Way:
    """One of them, with its club ready for it."""
    made: Way = request.param
    for step in made.before:
        await step(books)
    if made.act is next_month:
        now = await books.db.pool.fetchval("select lastcall_now()")

        async def following(_: Any) -> Any:
            return month_of(month_of(now).ends_at)

        for module in (months, judging):
            monkeypatch.setattr(module, "this_month", following)
    return made


def owners(messages: Sequence[object]) -> set[str]:
    return {one.owner for one in messages if isinstance(one, Signal)}


async def state(books: Books) -> str:
    found: str = await books.house.run("select state from clubs where id = $1")
    return found


@pytest.mark.clause("ACC-06", "ACC-07")
async def test_the_change_signals_after_its_commit(books: Books, way: Way) -> None:
    heard: list[object] = []
    books.db.bus.subscribe(Signal, heard.append)
    await way.act(books)
    assert await state(books) == way.becomes
    assert way.owners <= owners(heard)


class Undone(Exception):
    """What undoes the outer transaction."""


@pytest.mark.clause("ACC-06", "ACC-07")
async def test_a_rolled_back_change_signals_nothing(books: Books, way: Way) -> None:
    heard: list[object] = []
    before = await state(books)
    books.db.bus.subscribe(Signal, heard.append)
    with pytest.raises(Undone):
        async with books.db.transaction() as tx:
            await way.act(books)
            assert way.owners <= owners(tx.messages)
            raise Undone
    assert (await state(books), heard) == (before, [])


@pytest.mark.clause("ACC-06", "ACC-07")
async def test_a_change_whose_commit_is_unclear_leaves_its_signal_in_doubt(books: Books, way: Way) -> None:
    async with CuttingProxy(books.db.url) as proxy:
        far = await Database.open(proxy.url)
        try:
            doubted: list[object] = []
            far.bus.subscribe_unclear(lambda messages, _: doubted.extend(messages))
            away = replace(books, house=replace(books.house, db=far))
            await far.pool.fetchval("select 1")
            proxy.arm(Cut.AFTER)
            with pytest.raises(Unavailable, match="may or may not"):
                await way.act(away)
            assert way.owners <= owners(doubted)
        finally:
            await far.close()
    assert await state(books) == way.becomes


async def test_twin_without_the_word_to_listeners_a_budgets_pause_signals_nothing(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(*_: Any) -> None:
        return

    await books.budget(10)
    monkeypatch.setattr(life, "club_changed", silent)
    heard: list[object] = []
    books.db.bus.subscribe(Signal, heard.append)
    await books.cost(10)
    assert await state(books) == "paused"
    assert RETENTION_REFRESH not in owners(heard)
