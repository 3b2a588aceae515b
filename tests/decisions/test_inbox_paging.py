"""Pages of the inbox: stable though items vanish, read by index, in a fixed number of statements."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.dialects import postgresql
from tests.decisions.conftest import Door, open_door
from tests.decisions.inbox_kit import AGENT, Stage, State, place, whole_list

from lastcall.clubs.permissions import ALL_PERMISSIONS
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.decisions.inbox.item import Act, Shelf
from lastcall.decisions.inbox.queries import Wanted, inbox_counts, inbox_page
from lastcall.decisions.inbox.reach import Reach, reach_everywhere
from lastcall.decisions.inbox.source import sources
from lastcall.decisions.inbox.statements import count_statement, page_statement
from lastcall.decisions.registration import register
from lastcall.decisions.retention import controls
from lastcall.decisions.retention.explain import Outlook

EVERY_KIND = True
EXPLAIN = "explain (analyze, timing off, format json)"
MANY_DECIDED = """
with invited as (
    insert into invites (club_id, id, token_hash, invited_by, expires_at)
    select $1, gen_random_uuid(), sha256(uuid_send(gen_random_uuid())), $2, lastcall_now()
    from generate_series(1, 6000) n returning id
)
insert into join_requests
    (club_id, id, invite_id, subject_kind, agent_name, status, activity_at, decided_at, is_archived)
select $1, id, id, 'agent', 'agent', case when n % 2 = 0 then 'rejected' else 'pending_approval' end,
       lastcall_now() - n * interval '1 minute', case when n % 2 = 0 then lastcall_now() end, n % 2 = 1 and n > 100
  from (select id, row_number() over () as n from invited) i
"""
MANY_RUNS = """
insert into agent_runs
    (club_id, id, agent_id, key, thread_key, title, status, started_at, finished_at, superseded_at)
select $1, gen_random_uuid(), $2, n::text, 'thread', 'Nightly',
       case when n % 3 = 0 then 'failed' else 'succeeded' end,
       lastcall_now() - n * interval '1 minute', lastcall_now(), case when n > 30 then lastcall_now() end
  from generate_series(1, 5000) n
"""
MANY_ASKED = """
insert into approvals (club_id, id, type, requested_by_kind, requested_by_system, title, body, status, activity_at,
    decided_at, is_archived)
select $1, gen_random_uuid(), 'question', 'system', 'test', 'May it?', '',
       case when n % 2 = 0 then 'withdrawn' else 'pending' end, lastcall_now() - n * interval '1 minute',
       case when n % 2 = 0 then lastcall_now() end, n % 2 = 1 and n > 100
  from generate_series(1, 6000) n
"""
MANY_QUESTIONS = """
insert into decisions (club_id, id, requested_by_kind, requested_by_system, title, body, options, status, activity_at,
    created_at, expires_at, decided_at)
select $1, gen_random_uuid(), 'system', 'test', 'Which?', '', '[{}, {}]',
       case when n > 50 then 'cancelled' else 'open' end, lastcall_now() - n * interval '1 minute',
       lastcall_now() - interval '1 year', lastcall_now() + interval '1 day', case when n > 50 then lastcall_now() end
  from generate_series(1, 5000) n
"""
WALKED = ("join_requests", "approvals", "decisions", "agent_runs")


@pytest.fixture
async def front_door(database: Database) -> Door:
    """Where join requests alone are made."""
    register()
    return await open_door(database)


async def stage_of(door: Door) -> Stage:
    other = await open_door(door.db, "inbox-other")
    agents = (new_id(), new_id())
    for club, agent in zip((door.club_id, other.club_id), agents, strict=True):
        await door.db.pool.execute(AGENT, club, agent, door.owner.person_id)
    return Stage(door.owner.person_id, (door.club_id, other.club_id), agents)


@pytest.mark.clause("DEC-06")
async def test_a_page_goes_on_though_the_last_item_of_the_one_before_is_gone(front_door: Door) -> None:
    items = [await front_door.waits_since(timedelta(hours=n)) for n in range(1, 6)]
    reach = Reach({front_door.club_id: ALL_PERMISSIONS}, front_door.owner.person_id)
    async with front_door.db.read() as tx:
        now = await tx.raw.fetchval("select lastcall_now()")
        first = await inbox_page(tx, reach, Wanted(now, now), limit=2)
    assert [item.id for item in first.items] == items[:2]
    await front_door.decide(items[1])
    async with front_door.db.read() as tx:
        second = await inbox_page(tx, reach, Wanted(now, now), after=first.next, limit=2)
    assert [item.id for item in second.items] == items[2:4]


async def test_an_archive_by_hand_and_by_itself_moves_an_item_to_its_shelf_and_a_revival_brings_it_back(
    door: Door,
) -> None:
    """The column that the index has follows what retention says, whoever wrote it."""
    by_itself, by_hand = await door.overdue(), await door.waits_since(timedelta(days=1))
    routine = f"select * from settle_{door.kind.name}($1, $2, gen_random_uuid())"
    assert await door.db.pool.fetchval(routine, door.club_id, by_itself) == "archived"
    await controls.archive(door.db, door.owner, door.club_id, door.kind, by_hand, seen_version=0)
    reach = Reach({door.club_id: ALL_PERMISSIONS}, door.owner.person_id)
    async with door.db.read() as tx:
        now = await tx.raw.fetchval("select lastcall_now()")
        assert await whole_list(tx, reach, Wanted(now, now)) == []
        archived = await whole_list(tx, reach, Wanted(now, now, Shelf.ARCHIVED))
    assert [item.id for item in archived] == [by_hand, by_itself]
    assert all(item.outlook is Outlook.ARCHIVED and Act.REVIVE in item.actions for item in archived)
    await controls.revive(door.db, door.owner, door.club_id, door.kind, by_itself, seen_version=1)
    async with door.db.read() as tx:
        (item,) = await whole_list(tx, reach, Wanted(now, now))
    assert (item.id, item.outlook) == (by_itself, Outlook.SCHEDULED)
    assert item.due_at == await door.due_at(by_itself)


async def test_a_page_and_its_counts_over_every_club_take_four_statements_however_many_there_are(
    front_door: Door,
) -> None:
    db = front_door.db
    stage = await stage_of(front_door)

    async def look() -> tuple[int, int]:
        before = db.statements
        async with db.read() as tx:
            now = await tx.raw.fetchval("select lastcall_now()")
            reach = await reach_everywhere(tx, front_door.owner)
            page = await inbox_page(tx, reach, Wanted(now, now))
            await inbox_counts(tx, reach, Wanted(now, now))
        return db.statements - before, len(page.items)

    few, shown = await look()
    assert shown == 0
    async with db.transaction() as tx:
        now = await tx.raw.fetchval("select lastcall_now()")
        for source in ("join_request", "approval", "decision", "failed_run"):
            for n in range(10):
                await place(tx, stage, State(source, 0, timedelta(minutes=n), True, False, None), now)
    assert await look() == (few, 40)


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.postgres15
@pytest.mark.clause("DEC-06")
async def test_every_walk_is_by_its_index_over_a_long_past_and_reads_no_more_than_it_shows(
    front_door: Door, database: Database
) -> None:
    stage = await stage_of(front_door)
    connection = await database.connect()
    try:
        await connection.execute(MANY_DECIDED, front_door.club_id, front_door.owner.person_id)
        await connection.execute(MANY_RUNS, front_door.club_id, stage.agents[0])
        await connection.execute(MANY_ASKED, front_door.club_id)
        await connection.execute(MANY_QUESTIONS, front_door.club_id)
        for table in WALKED:
            await connection.execute(f"analyze {table}")
        now = await connection.fetchval("select lastcall_now()")
        values = {"now": now, "today": now, "ageing": now - timedelta(days=30), "person": stage.person_id}
        values |= {"limit": 51, "after_time": now, "after_id": new_id()}
        values |= {f"clubs_{source.name}": [front_door.club_id] for source in sources()}
        for statement in (
            count_statement(sources(), tuple(Shelf), for_person=True),
            *(
                page_statement(sources(), shelf, for_person=True, is_first=is_first)
                for shelf in Shelf
                for is_first in (True, False)
            ),
        ):
            compiled = statement.compile(dialect=postgresql.asyncpg.dialect())
            arguments = [values[name] for name in compiled.positiontup or ()]
            plan = await connection.fetchval(f"{EXPLAIN} {compiled}", *arguments)
            for node in nodes(json.loads(plan)[0]["Plan"]):
                if node.get("Relation Name") in WALKED:
                    assert node["Node Type"] in ("Index Scan", "Index Only Scan"), node
                    assert node["Actual Rows"] <= 100, node
                    assert node.get("Rows Removed by Filter", 0) <= 100, node
    finally:
        await connection.close()
