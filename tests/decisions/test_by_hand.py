"""Keep and archive by hand: for those who may, on what they saw, also on what nobody looked at yet."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest
from tests.decisions.conftest import NINETY_DAYS, Door, open_door

from lastcall.clubs.activity import System
from lastcall.clubs.permissions import Permission
from lastcall.clubs.queries import roles_of
from lastcall.clubs.staff import assign_role
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.deadlines.signals import Signal
from lastcall.decisions.retention.controls import archive, keep, revive, revive_in, unkeep
from lastcall.decisions.retention.view import UNSEEN, retention_of
from lastcall.errors import Conflict, NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.service import add_person
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.staff import change_role

EVERY_KIND = True


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


@pytest.mark.clause("RET-16")
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


@pytest.mark.clause("ACC-08", "RET-17")
async def test_a_revival_starts_the_days_anew_and_signals_by_kind(database: Database, door: Door) -> None:
    item = await door.overdue()
    await archive(database, door.owner, door.club_id, door.kind, item, seen_version=0)
    signals: list[Signal] = []
    database.bus.subscribe(Signal, signals.append)
    view = await revive(database, door.owner, door.club_id, door.kind, item, seen_version=1)
    assert view.revived_at is not None
    assert (view.archived_at, view.archived_reason) == (None, None)
    assert (view.version, view.archive_version) == (2, 1)
    due = await door.due_at(item)
    assert due == view.revived_at + NINETY_DAYS, "else it would be archived again in the same second"
    (deadline,) = [signal.deadline for signal in signals if signal.owner == door.kind.owner]
    assert deadline is not None
    assert timedelta(0) <= deadline - due < timedelta(milliseconds=1)
    assert await revive(database, door.owner, door.club_id, door.kind, item, seen_version=2) == view
    await archive(database, door.owner, door.club_id, door.kind, item, seen_version=2)
    assert await database.pool.fetchval("select archive_version from retention") == 2


@pytest.mark.clause("ACC-08")
async def test_each_control_that_takes_a_deadline_away_or_brings_one_signals_by_kind(
    database: Database, door: Door
) -> None:
    item = await door.waits_since(timedelta(days=5))
    steps = ((keep, True), (unkeep, False), (archive, True), (revive, False))
    for version, (control, deadline_goes) in enumerate(steps):
        heard: list[Signal] = []
        database.bus.subscribe(Signal, heard.append)
        await control(database, door.owner, door.club_id, door.kind, item, seen_version=version)
        ours = [signal.deadline is None for signal in heard if signal.owner == door.kind.owner]
        assert ours == [deadline_goes], control.__name__


@pytest.mark.clause("ACC-20")
async def test_only_a_revival_that_is_asked_for_brings_an_archived_item_back(
    database: Database, door: Door
) -> None:
    item = await door.overdue()
    archived = await archive(database, door.owner, door.club_id, door.kind, item, seen_version=0)
    await door.move(item)
    assert await door.archived_at(item) == archived.archived_at
    assert await door.due_at(item) is None
    async with database.transaction() as tx:
        await revive_in(tx, door.club_id, door.kind, item, System("producer"))
    assert await door.archived_at(item) is None
    assert await door.due_at(item) is not None
    actor = await database.pool.fetchrow(
        "select actor_kind, actor_name from activity_log where action = 'retention.revived'"
    )
    assert tuple(actor) == ("system", "producer")


async def test_letting_go_schedules_it_again_from_its_true_activity(database: Database, door: Door) -> None:
    request = await door.waits_since(timedelta(days=5))
    due = await door.due_at(request)
    await kept(database, door, request, 0)
    assert await door.due_at(request) is None
    await kept(database, door, request, 1, value=False)
    assert await door.due_at(request) == due


@pytest.mark.clause("RET-17")
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


@pytest.mark.clause("DEC-05")
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


@pytest.mark.clause("DEC-05", "RET-17")
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


@pytest.mark.clause("RET-19")
async def test_unknown_and_hidden_look_the_same_and_reading_alone_may_not_change(
    database: Database, door: Door
) -> None:
    request = await door.overdue()
    elsewhere = await open_door(database, "cellar", type(door))
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
    reader = await staff(database, door, door.sees)
    with pytest.raises(NotAllowed):
        await archive(database, reader, door.club_id, door.kind, request, seen_version=0)
    assert await door.archived_at(request) is None
    both = await staff(database, door, door.sees, Permission.MANAGE_RETENTION)
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
        "join_request_id = null, approval_id = null",
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
