"""Writers of one event wait for each other, and who waited judges what the other wrote."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from tests.clubs.house import House, contend

from lastcall.clubs.staff import assign_role, revoke_role
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, NotFound
from lastcall.events.fields import EventFields
from lastcall.events.queries import EventStatus, EventView, read_event
from lastcall.events.services import write
from lastcall.events.services.write import cancel_event, create_event, edit_event, link_world, reinstate_event
from lastcall.events.times import Timed
from lastcall.people.actor import Actor

EVENING = EventFields("Evening", Timed(datetime(2090, 6, 1, 20, tzinfo=UTC)), "UTC")
LATER = replace(EVENING, time=Timed(datetime(2090, 6, 1, 22, tzinfo=UTC)))


def edit(club: House, event: EventView, fields: EventFields, actor: Actor | None = None) -> Any:
    return partial(edit_event, club.db, actor or club.owner, club.club_id, event.id, fields, event.revision)


async def made(club: House) -> EventView:
    return await create_event(club.db, club.owner, club.club_id, EVENING)


async def stored(club: House, event: EventView) -> EventView:
    async with club.db.read() as tx:
        found = await read_event(tx, club.club_id, event.id)
    assert found is not None
    return found


async def test_of_two_edits_from_one_form_the_second_waits_and_is_a_conflict(club: House) -> None:
    event = await made(club)
    renamed = edit(club, event, replace(EVENING, title="Renamed"), club.deputy)
    outcome = await contend(club.db, edit(club, event, LATER), renamed, "events")
    assert isinstance(outcome, Conflict)
    assert outcome.fresh == await stored(club, event)
    assert (outcome.fresh.title, outcome.fresh.time, outcome.fresh.revision) == ("Evening", LATER.time, 2)


async def test_twin_without_the_lock_the_second_edit_undoes_the_first(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look(tx: Transaction, actor: Actor, club_id: UUID, event_id: UUID) -> EventView:
        found = await read_event(tx, club_id, event_id)
        assert found is not None
        return found

    monkeypatch.setattr(write, "_hold", look)
    event = await made(club)
    outcome = await contend(
        club.db,
        edit(club, event, LATER),
        edit(club, event, replace(EVENING, title="Renamed")),
        "update events",
    )
    assert isinstance(outcome, EventView)
    assert (outcome.time, outcome.revision) == (EVENING.time, 3)


async def test_a_cancel_that_waited_for_a_move_cancels_the_event_as_it_was_moved(club: House) -> None:
    event = await made(club)
    cancel = partial(cancel_event, club.db, club.deputy, club.club_id, event.id)
    outcome = await contend(club.db, edit(club, event, LATER), cancel, "events")
    assert isinstance(outcome, EventView)
    assert (outcome.status, outcome.time, outcome.cancel_generation) == (EventStatus.CANCELLED, LATER.time, 1)


async def test_a_move_that_waited_for_a_cancel_is_a_conflict(club: House) -> None:
    event = await made(club)
    cancel = partial(cancel_event, club.db, club.deputy, club.club_id, event.id)
    outcome = await contend(club.db, cancel, edit(club, event, LATER), "events")
    assert isinstance(outcome, Conflict)
    assert (await stored(club, event)).time == EVENING.time


async def test_cancelled_by_two_at_once_counts_once_and_again_after_a_reinstatement(club: House) -> None:
    event = await made(club)
    cancel = partial(cancel_event, club.db, club.deputy, club.club_id, event.id)
    reinstate = partial(reinstate_event, club.db, club.owner, club.club_id, event.id)
    assert (await contend(club.db, cancel, cancel, "events")).cancel_generation == 1
    assert (await contend(club.db, reinstate, cancel, "events")).cancel_generation == 2
    async with asyncio.TaskGroup() as group:
        for n in range(12):
            group.create_task((cancel, reinstate)[n % 2]())
    assert (await stored(club, event)).cancel_generation >= 2


@pytest.mark.clause("EVT-01")
async def test_who_lost_the_role_while_an_edit_waited_writes_nothing(club: House) -> None:
    event = await made(club)
    await assign_role(club.db, club.owner, club.club_id, club.roles["event_staff"], club.guest.person_id)
    revoke = partial(
        revoke_role, club.db, club.owner, club.club_id, club.roles["event_staff"], club.guest.person_id
    )
    outcome = await contend(club.db, revoke, edit(club, event, LATER, club.guest), "held_club_standing")
    assert isinstance(outcome, NotFound)
    assert await stored(club, event) == event


async def test_an_entry_of_a_calendar_becomes_one_event_though_two_import_it_at_once(club: House) -> None:
    create = partial(create_event, club.db, club.owner, club.club_id, EVENING, import_uid="one")
    outcome = await contend(club.db, create, create, "insert into events")
    assert isinstance(outcome, Conflict)
    assert outcome.code == "event_imported"
    assert await club.run("select count(*) from events where club_id = $1 and import_uid = 'one'") == 1


async def test_worlds_linked_at_once_are_all_there(club: House) -> None:
    event = await made(club)
    async with asyncio.TaskGroup() as group:
        for n in range(8):
            group.create_task(link_world(club.db, club.owner, club.club_id, event.id, f"world {n}"))
    found = await stored(club, event)
    assert {one.world_id for one in found.worlds} == {f"world {n}" for n in range(8)}
    assert found.revision == 9
    assert found.updated_at > event.updated_at - timedelta(seconds=1)
