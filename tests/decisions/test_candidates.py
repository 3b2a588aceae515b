"""What is a candidate, judged under the row's own lock, and what is none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.decisions.conftest import NINETY_DAYS, Door, open_door, replace_in_routine

from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.deadlines.owner import Done, Failed, Stop
from lastcall.decisions.retention.controls import archive, keep, revive, unkeep
from lastcall.decisions.retention.sweep import DueItems, retention_owner
from lastcall.testing.locks import wait_until_blocked

EVERY_KIND = True

LOCK = "    for no key update;\n    if not found then"


async def sweep(door: Door) -> int:
    """One whole cycle; how many rows it settled."""
    result = await retention_owner(door.db, door.kind).run_pass(Stop())
    assert isinstance(result, Done), result
    return result.done


async def next_deadline(door: Door) -> datetime | None:
    return (await DueItems(door.db, door.kind).next_deadline()).deadline


@pytest.mark.clause("RET-01")
async def test_a_pending_request_of_an_active_club_is_a_candidate_and_others_are_not(
    database: Database, door: Door
) -> None:
    waiting = await door.overdue()
    decided = await door.overdue()
    await door.decide(decided)
    elsewhere = await open_door(database, "cellar", type(door))
    paused = await elsewhere.overdue()
    await database.pool.execute(
        "update clubs set state = 'paused', paused_at = lastcall_now(), pause_reason = 'manual' where id = $1",
        elsewhere.club_id,
    )
    never = await open_door(database, "vault", type(door))
    kept_for_ever = await never.overdue()
    await database.pool.execute("update clubs set retention_days = null where id = $1", never.club_id)

    await sweep(door)

    assert await door.archived_at(waiting) is not None
    assert await door.archived_at(decided) is None
    assert await elsewhere.archived_at(paused) is None
    assert await never.archived_at(kept_for_ever) is None


@pytest.mark.clause("RET-02")
async def test_kept_and_archived_requests_schedule_nothing(database: Database, door: Door) -> None:
    kept, archived = await door.overdue(), await door.waits_since(timedelta(days=3))
    await keep(database, door.owner, door.club_id, door.kind, kept, seen_version=0)
    await archive(database, door.owner, door.club_id, door.kind, archived, seen_version=0)
    assert await next_deadline(door) is None
    assert await DueItems(database, door.kind).boundary() is None
    assert await sweep(door) == 0
    await unkeep(database, door.owner, door.club_id, door.kind, kept, seen_version=1)
    assert await next_deadline(door) is not None
    assert await sweep(door) == 1


Writer = Callable[[Transaction, Database, Door, UUID], Awaitable[Any]]


async def decides(_tx: Transaction, db: Database, door: Door, request: UUID) -> None:
    await replace(door, db=db).decide(request)


async def moves_activity(_tx: Transaction, db: Database, door: Door, request: UUID) -> None:
    await replace(door, db=db).move(request)


async def keeps(_tx: Transaction, db: Database, door: Door, request: UUID) -> None:
    await keep(db, door.owner, door.club_id, door.kind, request, seen_version=0)


async def archives(_tx: Transaction, db: Database, door: Door, request: UUID) -> None:
    await archive(db, door.owner, door.club_id, door.kind, request, seen_version=0)


async def pauses_the_club(tx: Transaction, _db: Database, door: Door, request: UUID) -> None:
    await tx.raw.execute(f"select from {door.kind.table.name} where id = $1 for no key update", request)
    await tx.raw.execute(
        "update clubs set state = 'paused', paused_at = lastcall_now(), pause_reason = 'manual' where id = $1",
        door.club_id,
    )


async def deletes(tx: Transaction, _db: Database, door: Door, request: UUID) -> None:
    await tx.raw.execute(f"delete from {door.kind.table.name} where id = $1", request)


@pytest.mark.clause("RET-10", "RET-11")
@pytest.mark.parametrize("writer", [decides, moves_activity, keeps, archives, pauses_the_club, deletes])
async def test_a_writer_that_wins_the_lock_is_seen_by_the_sweep_that_waited_for_it(
    database: Database, door: Door, writer: Writer
) -> None:
    request = await door.overdue()
    async with database.transaction() as tx:
        await writer(tx, database, door, request)
        sweeping = asyncio.create_task(sweep(door))
        await wait_until_blocked(database, f"settle_{door.kind.name}", by=tx.raw.get_server_pid())
    await sweeping
    reasons = await database.pool.fetch("select archived_reason from retention where archived_at is not null")
    assert [row["archived_reason"] for row in reasons] == (["manual"] if writer is archives else [])
    assert await DueItems(database, door.kind).boundary() is None, "what was refused is not found again"


@pytest.mark.clause("RET-21")
@pytest.mark.postgres15
async def test_the_sweep_really_waits_for_the_row_lock(database: Database, door: Door) -> None:
    request = await door.overdue()
    async with database.transaction() as tx:
        await moves_activity(tx, database, door, request)
        sweeping = asyncio.create_task(sweep(door))
        # The writer lets go only once the server itself reports that the sweep waits for it.
        await wait_until_blocked(database, f"settle_{door.kind.name}", by=tx.raw.get_server_pid())
        assert not sweeping.done()
    await sweeping
    assert await door.archived_at(request) is None


async def without_the_lock(door: Door) -> None:
    """From now on the sweep judges first and waits only where it writes."""
    await replace_in_routine(door.db, f"*_settle_{door.kind.name}.sql", LOCK, "    ;\n    if not found then")


@pytest.mark.clause("RET-21")
@pytest.mark.parametrize("writer", [moves_activity, keeps, decides])
async def test_twin_without_the_lock_clause_the_sweep_judges_before_it_waits_and_archives_over_the_writer(
    database: Database, door: Door, writer: Writer
) -> None:
    await without_the_lock(door)
    request = await door.overdue()
    async with database.transaction() as tx:
        await writer(tx, database, door, request)
        sweeping = asyncio.create_task(sweep(door))
        # It still waits, but by then it has judged what was there before the writer.
        await wait_until_blocked(database, f"settle_{door.kind.name}", by=tx.raw.get_server_pid())
    await sweeping
    reasons = await database.pool.fetch("select archived_reason from retention")
    assert [row["archived_reason"] for row in reasons] == ["idle"]


async def test_twin_without_the_lock_clause_only_the_schema_stops_a_second_archive_over_one_by_hand(
    database: Database, door: Door
) -> None:
    await without_the_lock(door)
    item = await door.overdue()
    async with database.transaction() as tx:
        await archives(tx, database, door, item)
        sweeping = asyncio.create_task(retention_owner(database, door.kind).run_pass(Stop()))
        await wait_until_blocked(database, f"settle_{door.kind.name}", by=tx.raw.get_server_pid())
    result = await sweeping
    assert isinstance(result, Failed)
    assert "retention_archived_check" in result.error


async def a_revival_meets_a_second_sweep(door: Door) -> UUID:
    """Two processes found an item; one archived it, and it is brought back while the other waits for it."""
    item = await door.overdue()
    second = DueItems(door.db, door.kind)
    boundary = await second.boundary()
    assert boundary is not None
    (found,) = await second.page(None, boundary, 100)
    assert await sweep(door) == 1
    async with door.db.transaction() as tx:
        await revive(door.db, door.owner, door.club_id, door.kind, item, seen_version=1)
        settling = asyncio.create_task(second.settle(found))
        await wait_until_blocked(door.db, f"settle_{door.kind.name}", by=tx.raw.get_server_pid())
    await settling
    return item


@pytest.mark.clause("RET-11", "RET-17")
async def test_what_is_brought_back_while_another_sweep_waits_stays_and_is_due_after_all_its_days(
    database: Database, door: Door
) -> None:
    item = await a_revival_meets_a_second_sweep(door)
    assert await door.archived_at(item) is None
    due = await door.due_at(item)
    assert due == await database.pool.fetchval("select revived_at from retention") + NINETY_DAYS


async def test_twin_without_the_revival_in_the_rule_what_is_brought_back_is_archived_at_once(
    door: Door,
) -> None:
    file = f"*_{door.kind.name}_due.sql"
    await replace_in_routine(door.db, file, ", r.revived_at)", ")")
    item = await a_revival_meets_a_second_sweep(door)
    assert await door.archived_at(item) is not None


async def test_twin_one_statement_that_locks_and_judges_archives_what_was_just_kept(
    database: Database, door: Door
) -> None:
    sql = f"""
        create or replace function settle_{door.kind.name}(
            p_club uuid, p_id uuid, p_log_id uuid, out outcome text, out agent uuid
        ) language plpgsql as $$
        begin
            with judged as materialized (
                select j.activity_at
                from {door.kind.table.name} j
                join clubs c on c.id = j.club_id and c.state = 'active'
                left join retention r on r.club_id = j.club_id and r.id = j.id
                where j.club_id = p_club and j.id = p_id and j.status = '{door.kind.pending}'
                  and r.keep is not true and r.archived_at is null
                  and j.activity_at + make_interval(hours => 24 * c.retention_days) <= (select lastcall_now())
                for no key update of j
            )
            insert into retention as r (
                club_id, id, {door.kind.name}_id, archived_at, archived_reason, archived_by_kind,
                archive_version, source_activity_at
            )
            select p_club, p_id, p_id, lastcall_now(), 'idle', 'system', 1, judged.activity_at
            from judged
            on conflict (club_id, id) do update
            set archived_at = excluded.archived_at, archived_reason = excluded.archived_reason,
                archived_by_kind = excluded.archived_by_kind, version = r.version + 1,
                archive_version = r.archive_version + 1;
            outcome := case when found then 'archived' else 'not_due' end;
        end $$
    """
    for one_statement in (False, True):
        if one_statement:
            await database.pool.execute(sql)
        request = await door.overdue()
        async with database.transaction() as tx:
            await keeps(tx, database, door, request)
            sweeping = asyncio.create_task(sweep(door))
            await wait_until_blocked(database, f"settle_{door.kind.name}", by=tx.raw.get_server_pid())
        await sweeping
        assert (await door.archived_at(request) is not None) is one_statement
