"""The sweep over join requests: a hundred a pass, past every failure, up to where the cycle began."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from tests.decisions.conftest import NINETY_DAYS, Door

from lastcall.db.database import Database
from lastcall.deadlines.owner import Done, Failed, More, PassResult, Stop
from lastcall.deadlines.sweep import SweepOwner
from lastcall.decisions.retention.sweep import retention_owner

EVERY_KIND = True


async def whole_cycle(owner: SweepOwner) -> PassResult:
    """Passes until the cycle ends."""
    while isinstance(result := await owner.run_pass(Stop()), More):
        pass
    return result


async def long_ago(database: Database, microseconds: int = 0) -> datetime:
    """One moment more than ninety days back, at full precision."""
    now: datetime = await database.pool.fetchval("select date_trunc('second', lastcall_now())")
    return now - NINETY_DAYS - timedelta(hours=1) + timedelta(microseconds=microseconds)


@pytest.mark.clause("RET-06")
async def test_a_pass_attempts_a_hundred_rows_and_a_full_page_goes_on_at_once(
    database: Database, door: Door
) -> None:
    moment = await long_ago(database)
    for _ in range(101):
        await door.waits(moment)
    owner = retention_owner(database, door.kind)
    assert await owner.run_pass(Stop()) == More(100)
    assert await door.archived() == 100
    assert await owner.run_pass(Stop()) == Done(1)
    assert await door.archived() == 101


@pytest.mark.clause("RET-07")
async def test_a_page_that_fails_whole_keeps_no_later_row_from_its_turn_even_within_a_microsecond(
    database: Database, door: Door
) -> None:
    first = await long_ago(database, 1)
    broken = [await door.waits(first) for _ in range(100)]
    tied = await door.waits(first)
    later = await door.waits(first + timedelta(microseconds=1))
    await door.break_row(*broken)
    owner = retention_owner(database, door.kind)

    result = await whole_cycle(owner)

    assert isinstance(result, Failed)
    assert result.failures == 100
    assert await door.archived_at(tied) is not None
    assert await door.archived_at(later) is not None
    assert await door.archived() == 2


@pytest.mark.clause("RET-14")
async def test_rows_that_fall_due_during_a_cycle_wait_and_the_next_one_tries_failed_rows_again(
    database: Database, door: Door
) -> None:
    start = await long_ago(database)
    failing = await door.waits(start)
    for second in range(1, 101):
        await door.waits(start + timedelta(seconds=second))
    await door.break_row(failing)
    owner = retention_owner(database, door.kind)
    assert isinstance(await owner.run_pass(Stop()), More)
    # It arrives behind the cycle's last row, and already overdue.
    arrival = await door.waits(start + timedelta(minutes=30))
    await door.repair_rows()

    assert isinstance(await owner.run_pass(Stop()), Failed)
    assert await door.archived_at(arrival) is None, "this cycle stops where it began"
    assert await door.archived_at(failing) is None

    newer = await door.waits(start + timedelta(minutes=31))
    assert await whole_cycle(owner) == Done(3)
    for request in (failing, arrival, newer):
        assert await door.archived_at(request) is not None


@pytest.mark.clause("RET-10")
async def test_each_row_is_archived_in_a_transaction_of_its_own(database: Database, door: Door) -> None:
    moment = await long_ago(database)
    requests = [await door.waits(moment) for _ in range(3)]
    await door.break_row(sorted(requests)[1])
    await whole_cycle(retention_owner(database, door.kind))
    rows = await database.pool.fetch("select xmin::text as writer from retention")
    assert len({row["writer"] for row in rows}) == len(rows) == 2


@pytest.mark.clause("RET-12")
async def test_once_archived_new_activity_leaves_it_archived_and_clears_no_keep(
    database: Database, door: Door
) -> None:
    request = await door.overdue()
    await whole_cycle(retention_owner(database, door.kind))
    archived = await door.archived_at(request)
    await door.move(request)
    assert await door.archived_at(request) == archived
    assert await door.due_at(request) is None
    await database.pool.execute(
        f"update {door.kind.table.name} set activity_at = lastcall_now() - interval '91 days'"
    )
    await whole_cycle(retention_owner(database, door.kind))
    assert await database.pool.fetchval("select archive_version from retention") == 1


@pytest.mark.clause("RET-13")
async def test_archiving_decides_nothing_and_an_archived_request_can_still_be_decided(
    database: Database, door: Door
) -> None:
    approved, rejected = await door.overdue(), await door.overdue()
    await whole_cycle(retention_owner(database, door.kind))
    statuses = f"select id, status from {door.kind.table.name}"
    assert {row["status"] for row in await database.pool.fetch(statuses)} == {door.kind.pending}
    await door.decide(approved, "approved")
    await door.decide(rejected, "rejected")
    assert await door.archived() == 2
    rows = await database.pool.fetch(statuses)
    assert {row["id"]: row["status"] for row in rows} == {approved: "approved", rejected: "rejected"}


async def test_an_archive_by_the_sweep_is_in_the_activity_log_under_the_systems_name(
    database: Database, door: Door
) -> None:
    request = await door.overdue()
    await whole_cycle(retention_owner(database, door.kind))
    row = await database.pool.fetchrow(
        "select actor_kind, actor_name, action, details from activity_log where entity_id = $1"
        " and action like 'retention.%'",
        request,
    )
    assert row is not None
    assert tuple(row)[:3] == ("system", "retention", "retention.archived")
    assert '"idle"' in row["details"]


async def test_two_sweeps_at_once_archive_each_row_once(database: Database, door: Door) -> None:
    moment = await long_ago(database)
    for _ in range(20):
        await door.waits(moment)
    first, second = retention_owner(database, door.kind), retention_owner(database, door.kind)
    await asyncio.gather(whole_cycle(first), whole_cycle(second))
    assert (
        await database.pool.fetchval("select count(*) from activity_log where action = 'retention.archived'")
        == 20
    )
    assert await database.pool.fetchval("select max(archive_version) from retention") == 1
