"""The one path on which events are written."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from tests.clubs.house import House

from lastcall.errors import Conflict, Invalid, NotFound
from lastcall.events import listeners
from lastcall.events.fields import EventFields
from lastcall.events.listeners import EventChange, on_event_change
from lastcall.events.queries import EventStatus, EventView, Publication, read_event
from lastcall.events.services.write import (
    cancel_event,
    create_event,
    edit_event,
    publish_event,
    reinstate_event,
    remove_event,
    unpublish_event,
)
from lastcall.events.times import DateOnly, Timed, TimeTba
from lastcall.testing.waiting import eventually

START = datetime(2090, 6, 1, 20, tzinfo=UTC)
EVENING = EventFields(
    "Evening", Timed(START, START + timedelta(hours=4), START - timedelta(minutes=30)), "Europe/Berlin"
)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[EventChange]:
    """What listeners hear."""
    heard: list[EventChange] = []

    async def hear(_: object, change: EventChange) -> None:
        heard.append(change)

    monkeypatch.setattr(listeners, "_listeners", [])
    on_event_change(hear)
    return heard


async def stored(club: House, event: EventView) -> EventView | None:
    async with club.db.read() as tx:
        return await read_event(tx, club.club_id, event.id)


async def test_an_event_is_stored_as_it_was_given(club: House, told: list[EventChange]) -> None:
    made = await create_event(club.db, club.deputy, club.club_id, EVENING)
    assert made == await stored(club, made)
    assert (made.title, made.time, made.zone) == (EVENING.title, EVENING.time, EVENING.zone)
    assert (made.status, made.publication, made.revision) == (EventStatus.SCHEDULED, Publication.DRAFT, 1)
    assert told == [EventChange(club.club_id, made.id, None, EVENING.time)]
    assert (await club.actions())[-1] == "event.created"


async def test_each_write_raises_the_revision_and_tells_what_it_did(
    club: House, told: list[EventChange]
) -> None:
    made = await create_event(club.db, club.owner, club.club_id, EVENING)
    later = Timed(START + timedelta(hours=1))
    moved = await edit_event(club.db, club.owner, club.club_id, made.id, replace(EVENING, time=later), 1)
    await cancel_event(club.db, club.owner, club.club_id, made.id)
    await reinstate_event(club.db, club.owner, club.club_id, made.id)
    lost = await edit_event(club.db, club.owner, club.club_id, made.id, replace(EVENING, time=TimeTba()), 4)
    await remove_event(club.db, club.owner, club.club_id, made.id)
    assert (moved.revision, lost.revision) == (2, 5)
    flags = ("is_moved", "is_cancelled", "lost_time", "is_removed")
    assert [[name for name in flags if getattr(change, name)] for change in told] == [
        [],
        ["is_moved"],
        ["is_cancelled"],
        [],
        ["lost_time"],
        ["is_removed"],
    ]
    assert await stored(club, made) is None


async def test_the_generations_rise_with_what_they_count_and_never_fall(club: House) -> None:
    made = await create_event(club.db, club.owner, club.club_id, EVENING)
    seen = [made]

    async def edit(time: Timed | DateOnly | TimeTba) -> EventView:
        return await edit_event(
            club.db, club.owner, club.club_id, made.id, replace(EVENING, time=time), seen[-1].revision
        )

    for _ in range(2):
        seen.append(await cancel_event(club.db, club.owner, club.club_id, made.id))
        seen.append(await cancel_event(club.db, club.owner, club.club_id, made.id))
        seen.append(await reinstate_event(club.db, club.owner, club.club_id, made.id))
        seen.append(await edit(DateOnly(date(2090, 6, 1))))
        seen.append(await edit(TimeTba()))
        seen.append(await edit(EVENING.time))
        seen.append(await edit(TimeTba(date(2090, 6, 2))))
        seen.append(await edit(EVENING.time))
    assert [one.cancel_generation for one in seen] == [0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]
    assert [one.tba_generation for one in seen] == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4]
    await remove_event(club.db, club.owner, club.club_id, made.id)
    assert await club.run("select cancel_generation from events where club_id = $1 and id = $2", made.id) == 3


async def test_an_edit_of_what_moved_meanwhile_is_a_conflict_with_the_event_as_it_is(club: House) -> None:
    made = await create_event(club.db, club.owner, club.club_id, EVENING)
    fresh = await publish_event(club.db, club.owner, club.club_id, made.id)
    with pytest.raises(Conflict) as refused:
        await edit_event(club.db, club.deputy, club.club_id, made.id, EVENING, made.revision)
    assert refused.value.fresh == fresh == await stored(club, made)


async def test_what_is_done_twice_is_done_once(club: House, told: list[EventChange]) -> None:
    made = await create_event(club.db, club.owner, club.club_id, EVENING)
    for command in (publish_event, unpublish_event, cancel_event, reinstate_event):
        once = await command(club.db, club.owner, club.club_id, made.id)
        heard = len(told)
        assert await command(club.db, club.owner, club.club_id, made.id) == once
        assert len(told) == heard


async def test_a_removed_event_is_missing_for_everybody_and_every_command(club: House) -> None:
    made = await create_event(club.db, club.owner, club.club_id, EVENING)
    await remove_event(club.db, club.owner, club.club_id, made.id)
    for command in (publish_event, unpublish_event, cancel_event, reinstate_event, remove_event):
        with pytest.raises(NotFound):
            await command(club.db, club.owner, club.club_id, made.id)
    with pytest.raises(NotFound):
        await edit_event(club.db, club.owner, club.club_id, made.id, EVENING, 2)
    assert await club.run("select count(*) from events where club_id = $1 and id = $2", made.id) == 1


@pytest.mark.clause("EVT-01")
async def test_a_listener_that_raises_undoes_the_write_and_its_log(
    club: House, told: list[EventChange]
) -> None:
    made = await create_event(club.db, club.owner, club.club_id, EVENING)

    async def refuse(_: object, change: EventChange) -> None:
        raise Conflict("not_now", "Not now.")

    on_event_change(refuse)
    log = await club.actions()
    with pytest.raises(Conflict, match="Not now"):
        await cancel_event(club.db, club.owner, club.club_id, made.id)
    assert told[-1].is_cancelled
    assert await stored(club, made) == made
    assert await club.actions() == log


async def test_live_pages_hear_of_a_write_once_it_is_committed(club: House) -> None:
    from lastcall.db.bus import Hint

    hints: list[Hint] = []
    club.db.bus.subscribe(Hint, hints.append)
    made = await create_event(club.db, club.owner, club.club_id, EVENING)
    await eventually(lambda: hints == [Hint(club.club_id, "events")])
    assert made.revision == 1


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        (replace(EVENING, title=""), "title"),
        (replace(EVENING, zone="Mars/Olympus"), "zone"),
        (replace(EVENING, description="a\x00b"), "description"),
        (replace(EVENING, description="a" * 5001), "description"),
        (replace(EVENING, time=Timed(START, START)), "ends_at"),
        (replace(EVENING, time=Timed(START, START + timedelta(days=32))), "ends_at"),
        (replace(EVENING, time=Timed(START, None, START + timedelta(minutes=1))), "doors_at"),
        (replace(EVENING, time=Timed(START, None, START - timedelta(days=2))), "doors_at"),
        (replace(EVENING, time=Timed(START.replace(tzinfo=None))), "starts_at"),
        (replace(EVENING, time=Timed(START.replace(year=1999))), "starts_at"),
        (replace(EVENING, time=Timed(datetime.max.replace(tzinfo=UTC))), "starts_at"),
        (replace(EVENING, time=DateOnly(date(2100, 1, 1))), "date"),
        (replace(EVENING, time=TimeTba(date(1900, 1, 1))), "date"),
    ],
)
async def test_what_makes_no_event_is_refused_with_its_field(
    club: House, fields: EventFields, field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await create_event(club.db, club.owner, club.club_id, fields)
    assert refused.value.field == field
