"""Keep and archive by hand: for those who may, on what they saw, also on what nobody looked at yet."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest
from tests.decisions.conftest import NINETY_DAYS, Door, open_door

from lastcall.clubs.permissions import Permission
from lastcall.clubs.queries import roles_of
from lastcall.clubs.staff import assign_role
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.decisions.retention.controls import archive, keep, revive, unkeep
from lastcall.decisions.retention.view import UNSEEN, retention_of
from lastcall.errors import Conflict, NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.service import add_person
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.staff import change_role


async def staff(database: Database, door: Door, *permissions: Permission) -> Actor:
    """Somebody whose one role allows exactly this."""
    number = await database.pool.fetchval("select count(*) from people")
    who = Actor(await add_person(database, f"s{number}@example.org", "Staff"), "Staff", is_operator=False)
    async with database.read() as tx:
        role = (await roles_of(tx, door.club_id))[0]
    await change_role(database, door.owner, door.club_id, role.id, permissions=permissions)
    await assign_role(database, door.owner, door.club_id, role.id, who.person_id)
    return who


async def kept(database: Database, door: Door, request: UUID, seen: int, *, value: bool = True) -> int:
    act = keep if value else unkeep
    view = await act(database, door.owner, door.club_id, door.kind, request, seen_version=seen)
    return view.version


async def test_a_request_that_nobody_looked_at_is_kept_and_archived_like_any_other(
    database: Database, door: Door
) -> None:
    request = await door.waits_since(timedelta(days=5))
    async with database.read() as tx:
        assert await retention_of(tx, door.club_id, request) == UNSEEN
    assert await kept(database, door, request, 0) == 1
    activity, recorded = await database.pool.fetchrow(
        "select j.activity_at, r.source_activity_at"
        f" from {door.kind.table.name} j join retention r on r.id = j.id"
    )
    assert activity == recorded
    archived = await archive(database, door.owner, door.club_id, door.kind, request, seen_version=1)
    assert (archived.keep, archived.archived_reason, archived.version) == (True, "manual", 2)
    assert archived.archive_version == 1
    assert await door.due_at(request) is None


async def test_letting_go_schedules_it_again_from_its_true_activity(database: Database, door: Door) -> None:
    request = await door.waits_since(timedelta(days=5))
    due = await door.due_at(request)
    await kept(database, door, request, 0)
    assert await door.due_at(request) is None
    await kept(database, door, request, 1, value=False)
    assert await door.due_at(request) == due


async def test_the_same_value_again_changes_nothing_and_is_not_logged(database: Database, door: Door) -> None:
    request = await door.overdue()
    assert await kept(database, door, request, 0, value=False) == 0
    assert await kept(database, door, request, 0) == 1
    assert await kept(database, door, request, 1) == 1
    first = await archive(database, door.owner, door.club_id, door.kind, request, seen_version=1)
    assert await archive(database, door.owner, door.club_id, door.kind, request, seen_version=2) == first
    actions = await database.pool.fetch(
        "select action from activity_log where action like 'retention%' order by id"
    )
    assert [row["action"] for row in actions] == ["retention.kept", "retention.archived"]


async def test_what_moved_since_it_was_seen_is_answered_with_the_fresh_row(
    database: Database, door: Door
) -> None:
    request = await door.overdue()
    await kept(database, door, request, 0)
    for act in (keep, unkeep, archive, revive):
        with pytest.raises(Conflict) as refused:
            await act(database, door.owner, door.club_id, door.kind, request, seen_version=0)
        assert refused.value.fresh.version == 1
        assert refused.value.fresh.keep


async def test_of_two_people_at_once_the_second_gets_a_conflict(database: Database, door: Door) -> None:
    request = await door.overdue()
    async with database.transaction() as tx:
        await kept(database, door, request, 0)
        second = asyncio.create_task(
            archive(database, door.owner, door.club_id, door.kind, request, seen_version=0)
        )
        await wait_until_blocked(database, door.kind.table.name, by=tx.raw.get_server_pid())
    with pytest.raises(Conflict) as refused:
        await second
    assert refused.value.fresh.keep
    assert await door.archived_at(request) is None


async def test_unknown_and_hidden_look_the_same_and_reading_alone_may_not_change(
    database: Database, door: Door
) -> None:
    request = await door.overdue()
    elsewhere = await open_door(database, "cellar")
    blind = await staff(database, door, Permission.MANAGE_RETENTION)
    stranger = elsewhere.owner
    refusals = []
    for actor, target in ((blind, request), (stranger, request), (door.owner, new_id())):
        with pytest.raises(NotFound) as refused:
            await archive(database, actor, door.club_id, door.kind, target, seen_version=0)
        refusals.append((refused.value.code, refused.value.sentence))
    assert len(set(refusals)) == 1
    with pytest.raises(NotFound):
        await archive(database, stranger, elsewhere.club_id, door.kind, request, seen_version=0)
    reader = await staff(database, door, Permission.DECIDE_ACCESS)
    with pytest.raises(NotAllowed):
        await archive(database, reader, door.club_id, door.kind, request, seen_version=0)
    assert await door.archived_at(request) is None
    both = await staff(database, door, Permission.DECIDE_ACCESS, Permission.MANAGE_RETENTION)
    await archive(database, both, door.club_id, door.kind, request, seen_version=0)
    assert await door.archived_at(request) is not None


@pytest.mark.parametrize(
    "values",
    [
        "archived_at = now()",
        "archived_by_kind = 'system'",
        "archived_at = now(), archived_reason = 'idle', archived_by_kind = 'person'",
        "archived_at = now(), archived_reason = 'bored', archived_by_kind = 'system'",
        "archived_at = now(), archived_reason = 'idle', archived_by_kind = 'agent'",
        "archive_version = 9",
        "join_request_id = null",
        "id = club_id",
    ],
)
async def test_the_schema_refuses_half_an_archive(database: Database, door: Door, values: str) -> None:
    request = await door.waits_since(NINETY_DAYS)
    await kept(database, door, request, 0)
    with pytest.raises(asyncpg.CheckViolationError):
        await database.pool.execute(f"update retention set {values}")


async def test_retention_goes_with_its_request(database: Database, door: Door) -> None:
    request = await door.overdue()
    await kept(database, door, request, 0)
    await database.pool.execute(f"delete from {door.kind.table.name} where id = $1", request)
    assert await database.pool.fetchval("select count(*) from retention") == 0
