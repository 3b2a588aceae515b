"""A real collector counts a group and reads its log; what fails of that shows beside a connection that goes on."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from vertical import Vertical

from lastcall.connections.features import switch_feature
from lastcall.connections.states import Feature
from lastcall.db.connect import connect
from lastcall.telemetry.queries import CoverageView, coverage_of
from lastcall.telemetry.states import CoverageState
from lastcall.testing.waiting import eventually
from lastcall.vrchat.simulator import faults

IS_OVER = """
    select c.next_look_at > lastcall_now() and l.released_at is not null
      from connections c join leases l on l.connection_id = c.id
"""
KEPT = """
    select (select string_agg(to_jsonb(s)::text, ' ') from telemetry_samples s)
        || (select string_agg(to_jsonb(i)::text, ' ') from telemetry_instances i)
        || coalesce((select string_agg(to_jsonb(a)::text, ' ') from audit_entries a), '')
"""


LONG = timedelta(minutes=10)
READ_PAGES = "select count(*) from audit_scans where finished_at is not null"
STATED = Path(__file__).parents[2] / "docs" / "explanation" / "telemetry.md"


def stated() -> tuple[int, int]:
    """What is stated for one look, with everything that it brings about in the server, and how much more for one whose
    count fails."""
    found = re.search(r"\*\*(\d+) statements a look\*\*.*\*\*(\d+)\s+more\*\*", STATED.read_text(), re.DOTALL)
    assert found is not None, f"{STATED} states no constant"
    return int(found[1]), int(found[2])


async def look_again(vertical: Vertical, pause: timedelta = timedelta(0)) -> None:
    """Go to the next look, ``pause`` from now at the earliest and in a part of the minute in which the allowance
    grants, and wait until it is over."""
    now = vertical.time.clock.wall()
    watcher = await connect(vertical.database.url)  # what it asks is not the server's
    try:
        due = await watcher.fetchval("select greatest(next_look_at, $1) from connections", now + pause)
        minute = due.replace(second=0, microsecond=0)
        at = next(
            moment
            for moment in (minute + timedelta(minutes=step, seconds=20) for step in range(2))
            if moment >= due
        )
        await vertical.time.advance(at - now)
        await eventually(lambda: watcher.fetchval(IS_OVER))
    finally:
        await watcher.close()


async def at_rest(vertical: Vertical) -> int:
    """How many statements the server sent, once it has sent none for a second."""
    loop = asyncio.get_running_loop()
    sent, since = vertical.database.statements, loop.time()

    def is_at_rest() -> bool:
        nonlocal sent, since
        if vertical.database.statements != sent:
            sent, since = vertical.database.statements, loop.time()
        return loop.time() - since >= 1

    await eventually(is_at_rest)
    return sent


async def seen(vertical: Vertical, wanted: Callable[[CoverageView], bool]) -> CoverageView:
    """The coverage, once it is as wanted; a few looks may pass until then."""
    for _ in range(6):
        await look_again(vertical)
        async with vertical.database.read() as tx:
            found = await coverage_of(tx, vertical.club_id)
        assert found is not None
        if wanted(found):
            return found
    raise AssertionError(f"not within six looks: {found}")


def observed(view: CoverageView) -> bool:
    return view.state is CoverageState.OBSERVED


async def switch_analytics_on(vertical: Vertical) -> None:
    await switch_feature(
        vertical.database,
        vertical.owner,
        vertical.club_id,
        vertical.connection_id,
        Feature.ANALYTICS,
        is_on=True,
    )


def let_the_log_be_read(vertical: Vertical) -> None:
    seed = vertical.simulator.seed
    vertical.simulator.world.groups[seed.group_id].members[seed.bot_id].grants.add("group-audit-view")


def let_the_count_fail(vertical: Vertical) -> None:
    path = f"/groups/{vertical.simulator.seed.group_id}/instances"
    vertical.simulator.arm(faults.answer(503), method="GET", path=path, times=50)


@pytest.mark.clause("COL-05", "COL-10")
async def test_a_group_is_counted_without_names_and_what_fails_shows_beside_an_active_connection(
    vertical: Vertical,
) -> None:
    seed = vertical.simulator.seed
    [creation] = await vertical.enqueue(vertical.creation())
    assert await vertical.ended(creation) == ("succeeded", None)
    [given] = await vertical.enqueue(vertical.role(0))
    assert await vertical.ended(given) == ("succeeded", None)
    await switch_analytics_on(vertical)
    view = await seen(vertical, observed)
    assert (view.instance_count, view.member_count) == (1, len(seed.members) + 2)
    let_the_log_be_read(vertical)
    await seen(vertical, lambda view: view.log_read_to is not None)
    assert await vertical.database.pool.fetchval("select count(*) from audit_entries") > 0
    kept = await vertical.database.pool.fetchval(KEPT)
    assert "usr_" not in kept

    let_the_count_fail(vertical)
    failed = await seen(vertical, lambda view: not observed(view))
    assert failed.observed_at is not None
    assert await vertical.database.pool.fetchval("select state from connections") == "active"
    [later] = await vertical.enqueue(vertical.role(1))
    assert await vertical.ended(later) == ("succeeded", None)


async def test_a_look_costs_no_more_than_is_stated(vertical: Vertical) -> None:
    """No other group shares what a look brings about, and with so much time between them each has a page of the log to
    read, an identity to prove and deadlines of the one before that are over."""
    at_most, more = stated()
    await switch_analytics_on(vertical)
    let_the_log_be_read(vertical)
    await seen(vertical, lambda view: view.log_read_to is not None)

    async def cost_of(looks: int) -> int:
        before = await at_rest(vertical)
        for _ in range(looks):
            await look_again(vertical, LONG)
        return await at_rest(vertical) - before

    pages = await vertical.database.pool.fetchval(READ_PAGES)
    await look_again(vertical, LONG)
    cost = await cost_of(4)
    assert await vertical.database.pool.fetchval(READ_PAGES) == pages + 5
    assert 0 < cost <= 4 * at_most

    let_the_count_fail(vertical)
    failed = await cost_of(3)
    assert await vertical.database.pool.fetchval("select telemetry_failures from connections") == 3
    assert 3 * at_most < failed <= 3 * (at_most + more)
