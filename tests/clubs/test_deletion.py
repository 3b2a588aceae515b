"""What a deleted club leaves behind is nothing, found by the schema itself, however often the work is cut short."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.clubs.deletion_kit import ALL_TABLES, SOURCE, TENANT_TABLES, close_for_good, remove_all, rows_of
from tests.operations.operations_world import World, ban, invitation

from lastcall.access.invites import create_invite
from lastcall.access.requests import AgentSubject, record_join_request
from lastcall.clubs import deletion
from lastcall.clubs.deletion import club_deletion_owner, walked
from lastcall.clubs.life import archive_club, delete_club
from lastcall.clubs.service import add_club
from lastcall.clubs.visibility import Audience, Category, set_visibility
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.deadlines.owner import Failed, More, Stop
from lastcall.deadlines.scheduler import Scheduler
from lastcall.decisions.retention.controls import keep
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.events.services.importing import apply_items, import_file
from lastcall.events.services.write import link_world
from lastcall.protocol.outcomes import Outcome
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.waiting import eventually


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
        await keep(world.db, world.owner, world.club_id, JOIN_REQUEST, request, seen_version=0)
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
