"""A real collector counts a group and reads its log; what fails of that shows beside a connection that goes on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from vertical import Vertical

from lastcall.connections.features import switch_feature
from lastcall.connections.states import Feature
from lastcall.telemetry.queries import CoverageView, coverage_of
from lastcall.telemetry.states import CoverageState
from lastcall.testing.waiting import eventually
from lastcall.vrchat.simulator import faults

KEPT = """
    select (select string_agg(to_jsonb(s)::text, ' ') from telemetry_samples s)
        || (select string_agg(to_jsonb(i)::text, ' ') from telemetry_instances i)
        || coalesce((select string_agg(to_jsonb(a)::text, ' ') from audit_entries a), '')
"""


LOOK_STATEMENTS = 45
"""What docs/explanation/telemetry.md states for one look, with everything that it brings about in the server."""


async def look_again(vertical: Vertical) -> int:
    """Go to the next look, in a part of the minute in which the allowance grants, and wait until it is over.

    Answers how many statements the server sent meanwhile.
    """
    asked, before = 1, vertical.database.statements
    pool, now = vertical.database.pool, vertical.time.clock.wall()
    due = await pool.fetchval("select greatest(next_look_at, $1) from connections", now)
    minute = due.replace(second=0, microsecond=0)
    at = next(
        moment
        for moment in (minute + timedelta(minutes=step, seconds=20) for step in range(2))
        if moment >= due
    )
    await vertical.time.advance(at - now)

    async def is_over() -> bool:
        nonlocal asked
        asked += 1
        return await pool.fetchval(
            "select c.next_look_at > lastcall_now() and l.released_at is not null"
            " from connections c join leases l on l.connection_id = c.id"
        )

    await eventually(is_over)
    return vertical.database.statements - before - asked


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


@pytest.mark.clause("COL-05", "COL-10")
async def test_a_group_is_counted_without_names_and_what_fails_shows_beside_an_active_connection(
    vertical: Vertical,
) -> None:
    seed = vertical.simulator.seed
    [creation] = await vertical.enqueue(vertical.creation())
    assert await vertical.ended(creation) == ("succeeded", None)
    [given] = await vertical.enqueue(vertical.role(0))
    assert await vertical.ended(given) == ("succeeded", None)
    await switch_feature(
        vertical.database,
        vertical.owner,
        vertical.club_id,
        vertical.connection_id,
        Feature.ANALYTICS,
        is_on=True,
    )
    view = await seen(vertical, observed)
    assert (view.instance_count, view.member_count) == (1, len(seed.members) + 2)
    vertical.simulator.world.groups[seed.group_id].members[seed.bot_id].grants.add("group-audit-view")
    await seen(vertical, lambda view: view.log_read_to is not None)
    assert await vertical.database.pool.fetchval("select count(*) from audit_entries") > 0
    kept = await vertical.database.pool.fetchval(KEPT)
    assert "usr_" not in kept

    await look_again(vertical)
    assert 0 < await look_again(vertical) <= LOOK_STATEMENTS

    vertical.simulator.arm(
        faults.answer(503), method="GET", path=f"/groups/{seed.group_id}/instances", times=50
    )
    failed = await seen(vertical, lambda view: not observed(view))
    assert failed.observed_at is not None
    assert await vertical.database.pool.fetchval("select state from connections") == "active"
    [later] = await vertical.enqueue(vertical.role(1))
    assert await vertical.ended(later) == ("succeeded", None)
