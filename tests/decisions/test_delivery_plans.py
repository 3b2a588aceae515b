"""What is told is found by index, however much was told before; and while nothing is due, nothing is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from tests.decisions.conftest import Door
from tests.decisions.deliveries_kit import KIND, PUBLIC_URL, tell

from lastcall.db.cursor import LAST
from lastcall.deadlines.scheduler import Scheduler
from lastcall.decisions.deliveries import dead, handing, notices
from lastcall.decisions.deliveries.kinds import declare_kind
from lastcall.decisions.deliveries.sending import Sending, deliveries_owner
from lastcall.decisions.deliveries.tellings import Digests, Reminders, telling_owners
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.mail.mailer import Mailer
from lastcall.testing.quiet import assert_quiet
from lastcall.testing.waiting import eventually

HISTORY = """
    insert into deliveries
        (club_id, id, kind, channel, person_id, dedup, data, state, created_at, ended_at, next_at, dismissed_at)
    select $1, gen_random_uuid(), 'test.told', case n % 2 when 0 then 'mail' else 'app' end, $2, n::text, '{}',
           'delivered', lastcall_now() - n * interval '1 minute', lastcall_now(), null,
           case n % 2 when 1 then lastcall_now() end
      from generate_series(1, 20000) n
"""
ARCHIVES = """
    insert into retention
        (club_id, id, join_request_id, archived_at, archived_reason, archived_by_kind, archive_version,
         source_activity_at)
    select $1, i.id, i.id, lastcall_now() - i.n * interval '1 hour', 'idle', 'system', 1, lastcall_now()
      from (select n, gen_random_uuid() as id from generate_series(1, 20000) n) i
"""


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.postgres15
async def test_what_is_due_is_found_without_walking_over_what_was_told(door: Door) -> None:
    declare_kind(KIND)
    connection = await door.db.connect()
    day = await door.db.pool.fetchval("select date_trunc('day', lastcall_now(), 'UTC')")
    until = await door.db.pool.fetchval("select $1::timestamptz + interval '1 day'", day)
    club, agent = (door.club_id, day, until), (door.club_id, uuid4())
    try:
        await connection.execute("set session_replication_role = replica")
        await connection.execute(HISTORY, door.club_id, door.owner.person_id)
        await connection.execute(ARCHIVES, door.club_id)
        await connection.execute(
            "analyze deliveries; analyze retention; set plan_cache_mode = force_generic_plan"
        )
        for table, statement, arguments in (
            ("deliveries", Sending.notes.next_deadline, (None, None)),
            ("deliveries", Sending.notes.first, (None, None)),
            ("retention_tellings", Reminders.notes.next_deadline, (None, None)),
            ("retention_tellings", Digests.notes.next_deadline, (None, None)),
            ("deliveries", handing._HAND_OVER, (*agent, 50, 8, timedelta(seconds=30), "")),
            ("deliveries", handing._AGAIN_IN, agent),
            ("deliveries", notices._PAGE, ([door.club_id], door.owner.person_id, LAST.time, LAST.id, 50)),
            ("deliveries", dead._OF_CLUB, (door.club_id, LAST.time, LAST.id, 50)),
            ("deliveries", dead._EVERYWHERE, (LAST.time, LAST.id, 50)),
            ("retention", Digests.count.format(name="join_request"), club),
            ("join_requests", Reminders.count.format(order=JOIN_REQUEST.order), club),
        ):
            await connection.execute(
                "set enable_seqscan = off" if "tellings" in table else "reset enable_seqscan"
            )
            found = await connection.fetchval(f"explain (analyze, format json) {statement}", *arguments)
            plan = json.loads(found)[0]["Plan"]
            scans = [
                one for one in nodes(plan) if one.get("Relation Name") == table and "Scan" in one["Node Type"]
            ]
            assert scans, found
            for scan in scans:
                assert scan["Node Type"] in ("Index Scan", "Index Only Scan", "Bitmap Heap Scan"), found
                assert scan["Actual Rows"] * scan["Actual Loops"] <= 50, found
    finally:
        await connection.close()


async def test_while_nothing_is_due_nothing_is_asked(door: Door) -> None:
    declare_kind(KIND)
    await tell(door)
    await door.waits_since(timedelta(days=10))
    owners = [deliveries_owner(door.db, Mailer(door.db, None, PUBLIC_URL)), *telling_owners(door.db)]
    scheduler = Scheduler(door.db, owners)
    await scheduler.start()
    await eventually(lambda: all(one.reads and not one.running for one in scheduler.status()))
    await eventually(lambda: is_dropped(door))
    await eventually(lambda: not any(one.running or one.dirty for one in scheduler.status()))
    async with assert_quiet(door.db, 2.0):
        pass
    await scheduler.stop()


async def is_dropped(door: Door) -> bool:
    return bool(await door.db.pool.fetchval("select true from deliveries where state = 'dropped'"))
