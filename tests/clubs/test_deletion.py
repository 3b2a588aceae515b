"""What a deleted club leaves behind is nothing, found by the schema itself, however often the work is cut short."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.clubs.house import contend
from tests.operations.operations_world import World, ban, invitation, make_world

import lastcall
from lastcall.access.invites import create_invite
from lastcall.access.requests import AgentSubject, record_join_request
from lastcall.app import register
from lastcall.clubs import deletion
from lastcall.clubs.deletion import club_deletion_owner, walked
from lastcall.clubs.life import archive_club, delete_club, pause_club, unarchive_club
from lastcall.clubs.service import add_club
from lastcall.clubs.visibility import Audience, Category, set_visibility
from lastcall.connections.connect import connect_club
from lastcall.connections.leases import take_lease
from lastcall.connections.states import Feature
from lastcall.connections.worker import LeaseHeld
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.deadlines.owner import Done, Failed, More, Stop
from lastcall.deadlines.scheduler import Scheduler
from lastcall.decisions.retention import keep_join_request
from lastcall.errors import Conflict, LastcallError
from lastcall.events.services.importing import apply_items, import_file
from lastcall.events.services.write import link_world
from lastcall.protocol.outcomes import Outcome
from lastcall.testing.clock import TestClock
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.waiting import eventually

SOURCE = Path(lastcall.__file__).parents[1]
TENANT_TABLES = """
    select c.relname from pg_attribute a join pg_class c on c.oid = a.attrelid
    join pg_namespace n on n.oid = c.relnamespace
    where a.attname = 'club_id' and not a.attisdropped and c.relkind in ('r', 'p') and n.nspname = 'public'
    order by 1
"""
ALL_TABLES = "select tablename from pg_tables where schemaname = 'public' order by 1"


@pytest.fixture
async def world(database: Database, test_clock: TestClock) -> World:
    register()
    world = await make_world(database, test_clock)
    await world.run("insert into directory (kind, key, club_id) values ('slug', 'club', $1)", world.club_id)
    return world


async def fill(world: World) -> None:
    """Rows in all that hangs on a club: what is sent, what is late, who waits, what was said."""
    sent = await world.submitted(invitation(1))
    await world.steps.complete(world.worker, sent[1], Outcome.INDETERMINATE, "transport_failed", {})
    await world.steps.complete(world.worker, sent[1], Outcome.SUCCEEDED, None, {})
    await world.claimed(ban(2))
    await world.one(invitation(3))
    async with world.db.transaction() as tx:
        invite = await create_invite(world.db, world.owner, world.club_id, [world.role_id])
        request = await record_join_request(world.db, world.club_id, invite.id, AgentSubject("Visitor"))
        await keep_join_request(world.db, world.owner, world.club_id, request, keep=True, seen_version=0)
        del tx
    await create_invite(world.db, world.owner, world.club_id, [world.role_id])
    await fill_calendar(world)
    await set_visibility(
        world.db, world.owner, world.club_id, Category.GROUP_SIZE, Audience.ROLES, [world.role_id], None
    )
    await world.run(
        "insert into unknown_submissions values ($1, $2, 'nonce', $3, lastcall_now())",
        world.club_id,
        world.connection_id,
        new_id(),
    )
    await world.run(
        "insert into allowances (scope, window_start, granted) values ($1, lastcall_now(), 1)",
        f"connection:{world.connection_id}",
    )
    await world.run(
        "insert into activity_log (club_id, id, actor_kind, actor_name, action, entity_type, entity_id)"
        " select $1, gen_random_uuid(), 'system', 'test', 'club.noted', 'club', $1 from generate_series(1, 1200)",
        world.club_id,
    )


async def fill_calendar(world: World) -> None:
    """An event with a world that came out of an import, and the import."""
    in_club = (world.db, world.owner, world.club_id)
    evening = "BEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:{:%Y%m%d}\r\nEND:VEVENT\r\n"
    day = await world.run(
        "select lastcall_now() + interval '9 days' where $1::uuid is not null", world.club_id
    )
    content = f"BEGIN:VCALENDAR\r\n{evening.format(day)}END:VCALENDAR\r\n".encode()
    document = await import_file(*in_club, "evenings.ics", content)
    (item,) = (await apply_items(*in_club, document.id, [document.items[0].id], 1)).document.items
    assert item.event is not None
    await link_world(*in_club, item.event.id, "The Attic")


async def rows_of(db: Database, club_id: UUID) -> dict[str, int]:
    """How many rows of each table name the club, by the database's own catalog."""
    tables = [row["relname"] for row in await db.pool.fetch(TENANT_TABLES)]
    counts = {
        table: await db.pool.fetchval(f"select count(*) from {table} where club_id = $1", club_id)
        for table in tables
    }
    counts["clubs"] = await db.pool.fetchval("select count(*) from clubs where id = $1", club_id)
    return {table: count for table, count in counts.items() if count}


async def mentions(db: Database, *ids: UUID) -> dict[str, int]:
    """How many rows of any table hold one of these ids anywhere."""
    found = {}
    for row in await db.pool.fetch(ALL_TABLES):
        table = row["tablename"]
        count = await db.pool.fetchval(
            f"select count(*) from {table} t where t::text like any ($1)", [f"%{one}%" for one in ids]
        )
        if count:
            found[table] = count
    return found


async def contents(db: Database, club_id: UUID) -> dict[str, str]:
    """All that another club has, as one digest a table."""
    return {
        row["relname"]: await db.pool.fetchval(
            f"select md5(coalesce(string_agg(t::text, '|' order by t::text), '')) from {row['relname']} t"
            " where club_id = $1",
            club_id,
        )
        for row in await db.pool.fetch(TENANT_TABLES)
    }


async def neighbour(world: World) -> UUID:
    """Another club with rows of its own."""
    club_id = await add_club(world.db, None, "Next door", "next-door", "UTC", world.owner.person_id)
    await create_invite(
        world.db,
        world.owner,
        club_id,
        [await world.run("select id from staff_roles where club_id = $1 limit 1", club_id)],
    )
    await set_visibility(world.db, world.owner, club_id, Category.GROUP_SIZE, Audience.PUBLIC, [], None)
    return club_id


async def close_for_good(world: World) -> None:
    await archive_club(world.db, None, world.club_id)
    await delete_club(world.db, None, world.club_id, confirm_slug="club")


async def remove_all(db: Database) -> int:
    """Passes until none is left; how many steps were taken."""
    owner, steps = club_deletion_owner(db), 0
    while True:
        match await owner.run_pass(Stop()):
            case More(done=done):
                steps += done
            case Done(done=done):
                return steps + done
            case other:
                raise AssertionError(other)


FILLED = {
    "activity_log", "allowances", "club_gates", "clubs", "connection_gates", "connections", "directory", "evidence",
    "invites", "join_requests", "late_results", "leases", "operation_requests", "operations", "retention",
    "staff_assignments", "staff_roles", "unknown_submissions", "visibility",
}  # fmt: skip


async def test_nothing_of_a_deleted_club_is_left_and_its_neighbour_is_untouched(world: World) -> None:
    await fill(world)
    before = await rows_of(world.db, world.club_id)
    assert set(before) | {"allowances"} >= FILLED
    other = await neighbour(world)
    kept = await contents(world.db, other)
    await close_for_good(world)
    assert (await rows_of(world.db, world.club_id))["activity_log"] > 1000, "its rows go later, in pages"

    await remove_all(world.db)

    assert await rows_of(world.db, world.club_id) == {}
    left = await mentions(world.db, world.club_id, world.connection_id, world.role_id)
    assert set(left) == {"audit_log"}, "what is left is that it was deleted"
    assert await contents(world.db, other) == kept
    assert await add_club(world.db, None, "Club", "club", "UTC", world.owner.person_id), "its name is free"


async def test_every_table_with_a_club_is_walked_children_first(database: Database) -> None:
    names = [table.name for table in walked()]
    catalog = {row["relname"] for row in await database.pool.fetch(TENANT_TABLES)}
    assert set(names) == catalog
    assert len(names) == len(set(names))
    assert names[-1] == "directory", "the short name is not free before the rest is gone"
    for table in walked():
        for parent in {key.column.table.name for key in table.foreign_keys} & set(names) - {table.name}:
            assert names.index(table.name) < names.index(parent)


async def test_pages_are_bounded_and_each_is_committed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(world)
    await world.run(
        "insert into directory (kind, key, club_id) select 'invite', 'old ' || n, $1 from generate_series(1, 700) n",
        world.club_id,
    )
    await close_for_good(world)
    source = deletion.ClubDeletion(world.db)
    candidate = await source.first(None)
    assert candidate is not None
    counts = [sum((await rows_of(world.db, world.club_id)).values())]
    while await source.first(None) is not None:
        await source.step(candidate)
        counts.append(sum((await rows_of(world.db, world.club_id)).values()))
    steps = [before - after for before, after in pairwise(counts)]
    assert max(steps) == deletion.ROWS
    assert counts[-1] == 0
    assert 500 in steps[:-1], "a full page was committed on its own"


async def test_a_deletion_that_is_killed_goes_on_where_it_was(world: World, database_url: str) -> None:
    await fill(world)
    other = await neighbour(world)
    kept = await contents(world.db, other)
    await close_for_good(world)
    filled = set(await rows_of(world.db, world.club_id))
    last = [table.name for table in walked() if table.name in filled][-1]
    async with world.db.transaction() as tx:
        await tx.raw.execute(f"select from {last} where club_id = $1 for update", world.club_id)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).parent / "remove_rows.py"),
            database_url,
            "100",
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        await wait_until_blocked(world.db, f"delete from {last}", by=tx.raw.get_server_pid(), within=60)
        process.send_signal(signal.SIGKILL)
        assert await process.wait() == -signal.SIGKILL
    left = await rows_of(world.db, world.club_id)
    assert {last, "clubs", "directory"} <= set(left), "it was killed before the end"
    assert set(left) < filled, "and after some tables were empty"

    await remove_all(world.db)

    assert await rows_of(world.db, world.club_id) == {}
    assert await contents(world.db, other) == kept


async def test_a_row_that_comes_late_is_removed_as_well(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(world)
    await close_for_good(world)
    original = deletion._remove_club
    late = "insert into activity_log (club_id, id, actor_kind, actor_name, action, entity_type, entity_id)"
    added: list[UUID] = []

    async def adds_before(tx: Any, tables: Any, club_id: UUID) -> None:
        if not added:
            added.append(new_id())
            await world.run(f"{late} values ($1, $2, 'system', 'late', 'x.y', 'club', $1)", club_id, added[0])
        await original(tx, tables, club_id)

    monkeypatch.setattr(deletion, "_remove_club", adds_before)
    await remove_all(world.db)
    assert added
    assert await rows_of(world.db, world.club_id) == {}


async def test_a_club_whose_rows_cannot_be_removed_holds_up_no_other(world: World) -> None:
    await fill(world)
    await close_for_good(world)
    other = await neighbour(world)
    await archive_club(world.db, None, other)
    await delete_club(world.db, None, other, confirm_slug="next-door")
    await world.run(
        "create table stubborn (club_id uuid, id uuid, foreign key (club_id, id) references staff_roles (club_id, id))"
    )
    await world.run("insert into stubborn values ($1, $2)", world.club_id, world.role_id)
    owner = club_deletion_owner(world.db)
    while isinstance(result := await owner.run_pass(Stop()), More):
        pass
    assert isinstance(result, Failed)
    assert [row.club_id for row in result.poison] == [world.club_id]
    assert await rows_of(world.db, other) == {}
    await world.run("drop table stubborn")
    await remove_all(world.db)
    assert await rows_of(world.db, world.club_id) == {}


async def test_the_scheduler_removes_a_club_by_itself_and_rests_after_it(world: World) -> None:
    scheduler = Scheduler(world.db, [club_deletion_owner(world.db)])
    await scheduler.start()
    try:
        await close_for_good(world)

        async def is_gone() -> bool:
            return await rows_of(world.db, world.club_id) == {}

        await eventually(is_gone, within=10)

        def rests() -> bool:
            status = scheduler.status()[0]
            return status.deadline is None and not status.running and not status.failures

        await eventually(rests, within=10)
        assert await rows_of(world.db, world.club_id) == {}
    finally:
        await scheduler.stop()


# What is under way when a club closes.


async def code_of(attempt: Any) -> str:
    """Why the attempt came to nothing, or "done"."""
    try:
        outcome = await attempt
    except LastcallError as error:
        return error.code
    return "done" if getattr(outcome, "is_authorized", True) else str(outcome.code)


async def test_a_paused_club_goes_on_with_what_was_reviewed(world: World) -> None:
    operation = await world.one(invitation(1))
    await pause_club(world.db, None, world.club_id)
    claimed = await world.claim()
    verdict = await world.steps.authorize(
        world.worker, world.held(claimed), "invite_member", world.evidence()
    )
    assert verdict.is_authorized
    assert await world.state(operation) == "submitted"


@pytest.mark.clause("WRK-06")
async def test_an_archived_club_is_disconnected_and_only_what_was_sent_is_settled(world: World) -> None:
    waiting = await world.one(invitation(1), due_at=await world.clock.now() + timedelta(hours=1))
    sent, sent_claim = await world.submitted(invitation(2))
    held, held_claim = await world.claimed(ban(3))
    await archive_club(world.db, None, world.club_id)
    await world.turn("epoch_cleanup")
    assert await world.state(waiting) == await world.state(held) == "rejected"
    assert (await world.row(held))["code"] == "connection_changed"
    assert (
        await world.run("select state from connections where club_id = $1", world.club_id) == "disconnecting"
    )
    leaving = await take_lease(world.db, world.worker, world.club_id, world.connection_id)
    assert leaving.state == "disconnecting", "its account leaves the group, and does nothing else there"
    held_now = LeaseHeld(world.club_id, world.connection_id, leaving.epoch, leaving.fencing_token)
    assert await code_of(world.steps.claim(world.worker, held_now, new_id())) == "club_inactive"
    verdict = await code_of(world.steps.authorize(world.worker, held_claim, "ban_member", world.evidence()))
    assert verdict != "done"
    assert await world.state(held) == "rejected", "a claim that was held is not sent any more"
    await world.steps.complete(world.worker, sent_claim, Outcome.SUCCEEDED, None, {})
    assert await world.state(sent) == "succeeded"
    connect = connect_club(
        world.db,
        None,
        world.club_id,
        group_id="grp_other",
        group_name="Other",
        account_id=world.account_id,
        features=[Feature.POSTS],
    )
    assert await code_of(connect) == "club_inactive"
    await unarchive_club(world.db, None, world.club_id)
    assert await code_of(world.one(invitation(4))) == "connection_inactive", "it comes back not connected"


async def test_a_club_is_not_deleted_while_the_outcome_of_something_sent_is_open(world: World) -> None:
    sent, claim = await world.submitted(invitation(1))
    await archive_club(world.db, None, world.club_id)
    with pytest.raises(Conflict) as refused:
        await delete_club(world.db, None, world.club_id, confirm_slug="club")
    assert refused.value.code == "operations_submitted"
    assert await world.run("select state from clubs where id = $1", world.club_id) == "archived"
    await world.steps.complete(world.worker, claim, Outcome.SUCCEEDED, None, {})
    assert await world.state(sent) == "succeeded"
    await delete_club(world.db, None, world.club_id, confirm_slug="club")
    await remove_all(world.db)
    assert await rows_of(world.db, world.club_id) == {}


async def test_an_authorization_that_waits_for_the_archive_is_refused(world: World) -> None:
    operation, claim = await world.claimed(invitation(1))

    async def authorize() -> Any:
        return await world.steps.authorize(world.worker, claim, "invite_member", world.evidence())

    outcome = await contend(world.db, lambda: archive_club(world.db, None, world.club_id), authorize)
    assert isinstance(outcome, LastcallError) or not outcome.is_authorized
    await world.turn("epoch_cleanup")
    assert await world.state(operation) == "rejected"


async def test_whoever_works_for_a_club_that_is_deleted_finds_nothing(world: World) -> None:
    _, claim = await world.claimed(invitation(1))
    await close_for_good(world)
    attempts = [
        take_lease(world.db, world.worker, world.club_id, world.connection_id),
        world.steps.authorize(world.worker, claim, "invite_member", world.evidence()),
        world.one(invitation(2)),
        create_invite(world.db, world.owner, world.club_id, [world.role_id]),
    ]
    assert "done" not in [await code_of(attempt) for attempt in attempts]
    assert not await world.run(
        "select person_holds($1, $2, 'manage_bans')", world.club_id, world.owner.person_id
    )
    await remove_all(world.db)
    assert await code_of(take_lease(world.db, world.worker, world.club_id, world.connection_id)) != "done"
