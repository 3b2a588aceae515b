"""Badge and list say the same, whatever is archived, put away, decided, old or hidden from the reader."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.decisions.conftest import open_door
from tests.decisions.inbox_kit import AGENT, NEEDS, Stage, State, place, stands_on, whole_list

from lastcall.clubs.permissions import Permission
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.decisions.inbox.item import MOST_COUNTED, Item, Shelf
from lastcall.decisions.inbox.queries import Wanted, inbox_counts
from lastcall.decisions.inbox.reach import Reach
from lastcall.decisions.registration import register

TODAY = timedelta(hours=9)

states = st.builds(
    State,
    source=st.sampled_from(sorted(NEEDS)),
    club=st.integers(0, 1),
    age=st.sampled_from([timedelta(hours=h) for h in (1, 9, 10, 24 * 30 - 1, 24 * 30, 24 * 90)]),
    waits=st.sampled_from([True, True, True, False]),
    is_archived=st.booleans(),
    away=st.sampled_from([None, None, "snoozed", "woken", "dismissed", "moved"]),
)
held = st.tuples(*[st.sampled_from([frozenset(NEEDS.values()), frozenset[Permission]()]) for _ in range(2)])


@pytest.fixture(scope="module")
def stage(shared_url: str) -> Iterator[tuple[asyncio.Runner, Database, Stage]]:
    register()
    with asyncio.Runner() as runner:
        db = runner.run(Database.open(shared_url))
        yield runner, db, runner.run(_set(db))
        runner.run(db.close())


async def _set(db: Database) -> Stage:
    doors = [await open_door(db, slug) for slug in ("inbox-one", "inbox-two")]
    agents = (new_id(), new_id())
    for door, agent in zip(doors, agents, strict=True):
        await db.pool.execute(AGENT, door.club_id, agent, door.owner.person_id)
    return Stage(doors[0].owner.person_id, (doors[0].club_id, doors[1].club_id), agents)


class _Undone(Exception):
    """Ends an example without a trace."""


@pytest.mark.clause("DEC-06", "RET-19", "DEC-01")
def test_counts_and_lists_agree_with_each_other_and_with_a_plain_model_in_any_state(
    stage: tuple[asyncio.Runner, Database, Stage],
) -> None:
    runner, db, place_of = stage
    shown: list[int] = []

    @settings(
        max_examples=60,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(states=st.lists(states, max_size=12), held=held)
    def agree(states: list[State], held: tuple[frozenset[Permission], frozenset[Permission]]) -> None:
        shown.append(runner.run(_agree(db, place_of, states, held)))

    agree()
    assert sum(shown) > 100, "the examples show something"


async def _agree(
    db: Database,
    stage: Stage,
    states: list[State],
    held: tuple[frozenset[Permission], frozenset[Permission]],
) -> int:
    """Answers how many items were shown."""
    shown = 0
    with pytest.raises(_Undone):
        async with db.transaction() as tx:
            now = await tx.raw.fetchval("select lastcall_now()")
            items: dict[UUID, State] = {await place(tx, stage, state, now): state for state in states}
            reach = Reach(dict(zip(stage.clubs, held, strict=True)), stage.person_id)
            counts = await inbox_counts(tx, reach, Wanted(now, now - TODAY))
            for shelf in Shelf:
                listed = await whole_list(tx, reach, Wanted(now, now - TODAY, shelf))
                expected = {
                    item
                    for item, state in items.items()
                    if NEEDS[state.source] in held[state.club] and stands_on(state, shelf, TODAY)
                }
                ids = [item.id for item in listed]
                shown += len(ids)
                assert set(ids) == expected, shelf
                assert len(ids) == len(expected), shelf
                assert counts.of(shelf).number == len(ids), shelf
                assert ids == [one.id for one in sorted(listed, key=_order, reverse=True)], shelf
                for name in NEEDS:
                    only = await whole_list(tx, reach, Wanted(now, now - TODAY, shelf, frozenset({name})))
                    assert [one.id for one in only] == [one.id for one in listed if one.source.name == name]
                    assert counts.of(shelf, name).number == len(only)
            raise _Undone
    return shown


def _order(item: Item) -> tuple[datetime, UUID]:
    return item.activity_at, item.id


def test_a_count_stops_at_a_hundred_and_says_so(stage: tuple[asyncio.Runner, Database, Stage]) -> None:
    runner, db, place_of = stage

    async def count(waiting: int) -> tuple[int, str]:
        words = (0, "")
        with pytest.raises(_Undone):
            async with db.transaction() as tx:
                now = await tx.raw.fetchval("select lastcall_now()")
                for n in range(waiting):
                    age = timedelta(minutes=n)
                    await place(tx, place_of, State("decision", n % 2, age, True, False, None), now)
                reach = Reach(dict.fromkeys(place_of.clubs, frozenset(NEEDS.values())), place_of.person_id)
                found = (await inbox_counts(tx, reach, Wanted(now, now))).of(Shelf.WAITING)
                words = (found.number, found.words)
                raise _Undone
        return words

    assert runner.run(count(MOST_COUNTED - 1)) == (99, "99")
    assert runner.run(count(MOST_COUNTED)) == (100, "99+")
    assert runner.run(count(MOST_COUNTED + 5)) == (100, "99+")
