"""When the club itself changes, the deadlines of all its pending requests follow, in pages and by themselves."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from tests.decisions.conftest import DOORS, NINETY_DAYS, Door, open_door

from lastcall.clubs import listeners
from lastcall.clubs.life import archive_club, pause_club, resume_club, unarchive_club
from lastcall.clubs.queries import club_settings
from lastcall.clubs.service import ClubFields, edit_club
from lastcall.db.database import Database
from lastcall.deadlines.owner import Done, More, Stop
from lastcall.deadlines.scheduler import Scheduler
from lastcall.deadlines.signals import Signal
from lastcall.decisions.retention import refreshes
from lastcall.decisions.retention.controls import keep
from lastcall.decisions.retention.refreshes import RETENTION_REFRESH, retention_refresh_owner
from lastcall.decisions.retention.sweep import DueItems, retention_owner
from lastcall.testing.waiting import eventually

EVERY_KIND = True


async def refresh_all(database: Database) -> int:
    owner, steps = retention_refresh_owner(database), 0
    while True:
        match await owner.run_pass(Stop()):
            case More(done=done):
                steps += done
            case Done(done=done):
                return steps + done
            case other:
                raise AssertionError(other)


async def set_days(door: Door, days: int | None) -> None:
    async with door.db.read() as tx:
        seen = await club_settings(tx, None, door.club_id)
    fields = replace(ClubFields(seen.name, seen.slug, seen.zone, seen.retention_days), retention_days=days)
    await edit_club(door.db, None, door.club_id, fields, seen.updated_at)


async def notes(database: Database) -> int:
    count: int = await database.pool.fetchval("select count(*) from retention_refreshes")
    return count


@pytest.mark.clause("ACC-06")
async def test_what_waits_is_due_while_its_club_is_active_and_never_else(
    database: Database, door: Door
) -> None:
    now: datetime = await database.pool.fetchval("select lastcall_now()")
    request = await door.waits(now)
    due = now + NINETY_DAYS
    for step, expected in (
        (pause_club, None),
        (resume_club, due),
        (archive_club, None),
        (unarchive_club, due),
    ):
        await step(database, None, door.club_id)
        await refresh_all(database)
        assert await door.due_at(request) == expected
    await set_days(door, 30)
    await refresh_all(database)
    assert await door.due_at(request) == now + timedelta(days=30)
    await set_days(door, None)
    await refresh_all(database)
    assert await door.due_at(request) is None


@pytest.mark.clause("ACC-06")
async def test_the_change_signals_and_the_new_earliest_deadline_travels_with_the_page(
    database: Database, door: Door
) -> None:
    now: datetime = await database.pool.fetchval("select lastcall_now()")
    await door.waits(now)
    signals: list[Signal] = []
    database.bus.subscribe(Signal, signals.append)
    await set_days(door, 1)
    assert [signal.owner for signal in signals] == [RETENTION_REFRESH]
    assert signals[0].deadline is not None
    await refresh_all(database)
    assert signals[1].owner == door.kind.owner
    assert signals[1].deadline == (await DueItems(database, door.kind).next_deadline()).deadline


async def test_many_requests_follow_in_pages_and_a_change_meanwhile_begins_anew(
    database: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refreshes, "ROWS", 2)
    monkeypatch.setattr(refreshes, "KINDS", {door.kind.name: door.kind})
    now: datetime = await database.pool.fetchval("select lastcall_now()")
    requests = [await door.waits(now) for _ in range(5)]
    kept = requests[2]
    await keep(database, door.owner, door.club_id, door.kind, kept, seen_version=0)
    other = await open_door(database, "cellar", type(door))
    untouched = await other.waits(now)
    await set_days(door, 30)
    source = refreshes.RetentionRefreshes(database)
    first = await source.first(None)
    assert first is not None
    await source.step(first)
    assert [await door.due_at(request) for request in requests[:2]] == [now + timedelta(days=30)] * 2
    assert await door.due_at(requests[4]) == now + NINETY_DAYS, "a page is bounded"
    await set_days(door, 10)
    await source.step(first)
    assert await door.due_at(requests[2]) is None
    assert await door.due_at(requests[3]) == now + NINETY_DAYS, "the step of the older change does nothing"
    assert await refresh_all(database) == 3
    dues = {await door.due_at(request) for request in requests if request != kept}
    assert dues == {now + timedelta(days=10)}
    assert await door.due_at(kept) is None
    assert await other.due_at(untouched) == now + NINETY_DAYS
    assert await notes(database) == 0


async def test_one_change_is_followed_by_the_items_of_every_kind(
    database: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refreshes, "ROWS", 2)
    now: datetime = await database.pool.fetchval("select lastcall_now()")
    doors = [made(database, door.owner, door.club_id) for made in DOORS.values()]
    items = [(one, await one.waits(now)) for one in doors for _ in range(3)]
    await set_days(door, 7)
    await refresh_all(database)
    assert {await one.due_at(item) for one, item in items} == {now + timedelta(days=7)}
    assert await notes(database) == 0


async def test_what_is_overdue_when_its_club_resumes_is_archived_by_the_scheduler(
    database: Database, door: Door
) -> None:
    request = await door.overdue()
    await pause_club(database, None, door.club_id)
    scheduler = Scheduler(database, [retention_refresh_owner(database), retention_owner(database, door.kind)])
    await scheduler.start()
    try:

        async def is_refreshed() -> bool:
            return await notes(database) == 0

        await eventually(is_refreshed, within=10)
        assert await door.archived_at(request) is None
        await resume_club(database, None, door.club_id)

        async def is_archived() -> bool:
            return await door.archived_at(request) is not None

        await eventually(is_archived, within=10)
    finally:
        await scheduler.stop()


async def test_twin_without_the_listener_the_old_deadline_stays(
    database: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "_listeners", [])
    now: datetime = await database.pool.fetchval("select lastcall_now()")
    request: UUID = await door.waits(now)
    await set_days(door, 30)
    await refresh_all(database)
    assert await door.due_at(request) == now + NINETY_DAYS
