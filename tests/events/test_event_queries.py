"""Who sees which events, in which order, and what the picker fills in."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.clubs.house import House, open_house

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing, standing
from lastcall.db.cursor import read_cursor
from lastcall.errors import Conflict, Invalid, NotFound
from lastcall.events import queries, worlds
from lastcall.events.fields import EventFields
from lastcall.events.queries import (
    PICKER,
    UPCOMING,
    EventPage,
    EventView,
    PickedEvent,
    Publication,
    event,
    past_events,
    timed_picker,
    upcoming_events,
)
from lastcall.events.services import write
from lastcall.events.services.write import (
    cancel_event,
    confirm_world,
    create_event,
    link_world,
    remove_event,
    unlink_world,
)
from lastcall.events.times import DateOnly, EventTime, Timed, TimeTba, columns_of
from lastcall.events.worlds import Confirmation, WorldView

NOW = datetime.now(UTC).replace(microsecond=0)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
WORLD = "wrld_00000000-0000-4000-8000-00000000000{}"
STAFF = Standing(
    is_owner=False,
    is_staff=True,
    permissions=frozenset(Permission) - {Permission.MANAGE_EVENTS},
    provider_role_ids=frozenset(),
)
MANAGER = replace(STAFF, permissions=frozenset({Permission.MANAGE_EVENTS}))
NOBODY = replace(STAFF, is_staff=False, permissions=frozenset())


async def add(
    club: House, title: str, time: EventTime, publication: Publication = Publication.PUBLISHED
) -> EventView:
    fields = EventFields(title, time, "Europe/Berlin")
    return await create_event(club.db, club.owner, club.club_id, fields, publication=publication)


async def upcoming(club: House, reader: Standing = STAFF) -> list[str]:
    async with club.db.read() as tx:
        return [one.title for one in (await upcoming_events(tx, reader, club.club_id)).events]


async def past(club: House, reader: Standing = STAFF) -> list[str]:
    async with club.db.read() as tx:
        return [one.title for one in (await past_events(tx, reader, club.club_id)).events]


async def picked(club: House, reader: Standing = STAFF, search: str = "") -> list[PickedEvent]:
    async with club.db.read() as tx:
        found, _ = await timed_picker(tx, reader, club.club_id, search=search)
    return list(found)


async def test_a_draft_is_there_for_those_who_manage_events_and_for_nobody_else(club: House) -> None:
    draft = await add(club, "Draft", Timed(NOW + DAY), Publication.DRAFT)
    shown = await add(club, "Shown", Timed(NOW + DAY))
    async with club.db.read() as tx:
        assert await event(tx, MANAGER, club.club_id, draft.id) == draft
        assert await event(tx, STAFF, club.club_id, shown.id) == shown
        with pytest.raises(NotFound) as hidden:
            await event(tx, STAFF, club.club_id, draft.id)
        with pytest.raises(NotFound) as unknown:
            await event(tx, STAFF, club.club_id, club.club_id)
    assert (hidden.value.code, hidden.value.sentence) == (unknown.value.code, unknown.value.sentence)
    assert (await upcoming(club, MANAGER), await upcoming(club)) == (["Draft", "Shown"], ["Shown"])
    assert [one.title for one in await picked(club, MANAGER)] == ["Draft", "Shown"]
    assert [one.title for one in await picked(club)] == ["Shown"]


async def test_twin_without_the_rule_everybody_sees_drafts(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(club, "Draft", Timed(NOW + DAY), Publication.DRAFT)
    monkeypatch.setattr(queries, "may_see_drafts", lambda _: True)
    assert await upcoming(club) == ["Draft"]


async def test_off_the_staff_there_is_no_such_club_and_another_club_s_events_are_unknown(club: House) -> None:
    there = await add(club, "Here", Timed(NOW + DAY))
    other = await open_house(club.db)
    async with club.db.read() as tx:
        stranger = await standing(tx, club.club_id, other.owner.person_id)
        owner = await standing(tx, other.club_id, other.owner.person_id)
        for read in (upcoming_events, past_events, timed_picker):
            for reader in (stranger, NOBODY):
                with pytest.raises(NotFound, match="no such club"):
                    await read(tx, reader, club.club_id)
        with pytest.raises(NotFound, match="no such event"):
            await event(tx, owner, other.club_id, there.id)
        assert (await upcoming_events(tx, owner, other.club_id)).events == ()
    with pytest.raises(NotFound, match="no such event"):
        await cancel_event(other.db, other.owner, other.club_id, there.id)


async def test_an_event_is_upcoming_until_it_is_over_and_the_next_comes_first(club: House) -> None:
    today = NOW.date()
    for title, time in {
        "undated": TimeTba(),
        "tomorrow": Timed(NOW + DAY),
        "month": Timed(NOW - 30 * DAY, NOW + HOUR),
        "running": Timed(NOW - 5 * HOUR),
        "ended": Timed(NOW - 5 * HOUR, NOW - HOUR),
        "long ago": Timed(NOW - 7 * HOUR),
        "today": DateOnly(today),
        "before": DateOnly(today - 2 * DAY),
        "to be announced": TimeTba(today + 2 * DAY),
    }.items():
        await add(club, title, time)
    found = await upcoming(club)
    assert found[0] == "month"
    assert set(found[1:3]) == {"running", "today"}
    assert found[3:] == ["tomorrow", "to be announced", "undated"]
    assert await past(club) == ["ended", "long ago", "before"]


@pytest.mark.parametrize(("hours", "is_upcoming"), [(35, True), (37, False)])
async def test_a_date_has_ended_everywhere_36_hours_after_its_midnight_in_utc(
    club: House, hours: int, *, is_upcoming: bool
) -> None:
    made = await add(club, "Day", DateOnly(NOW.date()))
    midnight = datetime.combine(NOW.date(), datetime.min.time(), UTC)
    assert columns_of(made.time).over_at == midnight + timedelta(hours=36)
    shift = NOW - midnight - timedelta(hours=hours)
    await club.run("update events set over_at = over_at + $3 where club_id = $1 and id = $2", made.id, shift)
    assert (await upcoming(club) == ["Day"]) is is_upcoming
    assert (await past(club) == ["Day"]) is not is_upcoming


async def test_pages_hold_every_event_once_though_they_begin_together(club: House) -> None:
    made = {(await add(club, f"{n}", Timed(NOW + DAY * (n // 3 + 1)))).id for n in range(8)}
    seen: list[EventView] = []
    cursor = None
    async with club.db.read() as tx:
        while True:
            page: EventPage = await upcoming_events(tx, STAFF, club.club_id, cursor, limit=3)
            seen += page.events
            if page.next is None:
                break
            cursor = read_cursor(UPCOMING, page.next)
        assert [len(seen), {one.id for one in seen}] == [8, made]
        first, behind = await timed_picker(tx, STAFF, club.club_id, limit=5)
        rest, end = await timed_picker(tx, STAFF, club.club_id, read_cursor(PICKER, behind), limit=5)
    assert [one.id for one in (*first, *rest)] == [one.id for one in seen]
    assert end is None


async def test_the_picker_has_what_can_be_timed_by_and_nothing_else(club: House) -> None:
    await add(club, "Timed", Timed(NOW + DAY))
    await add(club, "Date", DateOnly(NOW.date() + DAY))
    await add(club, "Open", TimeTba(NOW.date() + DAY))
    await add(club, "Over", Timed(NOW - DAY))
    cancelled, removed = [await add(club, title, Timed(NOW + DAY)) for title in ("Cancelled", "Removed")]
    await cancel_event(club.db, club.owner, club.club_id, cancelled.id)
    await remove_event(club.db, club.owner, club.club_id, removed.id)
    (one,) = await picked(club)
    assert (one.title, one.starts_at, one.zone, one.world_id) == ("Timed", NOW + DAY, "Europe/Berlin", None)


async def test_a_search_takes_what_is_typed_for_what_it_is(club: House) -> None:
    for title in ("100% dance", "1000 dances", "a_b", "axb"):
        await add(club, title, Timed(NOW + DAY))
    assert [one.title for one in await picked(club, search="100%")] == ["100% dance"]
    assert [one.title for one in await picked(club, search=" A_B ")] == ["a_b"]
    assert len(await picked(club, search="DANCE")) == 2


def links(*given: tuple[str, bool]) -> list[tuple[str, Confirmation]]:
    return [(world, Confirmation.CONFIRMED if sure else Confirmation.SUGGESTED) for world, sure in given]


@pytest.mark.clause("EVT-08")
@pytest.mark.parametrize(
    ("given", "filled_in"),
    [
        (links(), None),
        (links((WORLD.format(1), True)), WORLD.format(1)),
        (links((WORLD.format(1).upper().replace("WRLD", "wrld"), True)), WORLD.format(1)),
        (links((WORLD.format(1), False)), None),
        (links((WORLD.format(1), True), (WORLD.format(2), False)), WORLD.format(1)),
        (links((WORLD.format(1), True), (WORLD.format(2), True)), None),
        (links(("The Attic", True)), None),
        (links(("The Attic", True), (WORLD.format(1), False)), None),
        (links(("The Attic", True), (WORLD.format(1), True)), None),
        (links(("wrld_12", True)), None),
        (links((WORLD.format(1) + "0", True)), None),
    ],
)
async def test_exactly_one_confirmed_world_with_a_valid_id_is_filled_in(
    club: House, given: list[tuple[str, Confirmation]], filled_in: str | None
) -> None:
    made = await add(club, "Evening", Timed(NOW + DAY))
    for world_id, confirmation in given:
        await link_world(club.db, club.owner, club.club_id, made.id, world_id, "", confirmation)
    assert [one.world_id for one in await picked(club)] == [filled_in]


@pytest.mark.clause("EVT-08")
async def test_more_links_than_twenty_fill_in_nothing_and_no_more_than_21_are_read(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    judge = worlds.prefilled

    def count(given: list[WorldView]) -> str | None:
        read.append(len(given))
        return judge(given)

    monkeypatch.setattr(queries, "prefilled", count)
    made = await add(club, "Evening", Timed(NOW + DAY))
    await link_world(club.db, club.owner, club.club_id, made.id, WORLD.format(1))
    for n in range(19):
        await link_world(club.db, club.owner, club.club_id, made.id, f"{n}", "", Confirmation.SUGGESTED)
    assert (await picked(club))[0].world_id == WORLD.format(1)
    for n in range(19, 25):
        await link_world(club.db, club.owner, club.club_id, made.id, f"{n}", "", Confirmation.SUGGESTED)
    assert (await picked(club))[0].world_id is None
    assert read == [20, 21]


async def test_a_world_is_linked_once_confirmed_unlinked_and_of_a_bounded_number(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await add(club, "Evening", Timed(NOW + DAY))
    in_club = (club.db, club.owner, club.club_id, made.id)
    await link_world(*in_club, WORLD.format(1), "Attic", Confirmation.SUGGESTED)
    again = await link_world(*in_club, f" {WORLD.format(1)} ", "The Attic", Confirmation.SUGGESTED)
    (link,) = again.worlds
    assert (link.name, link.confirmation) == ("The Attic", Confirmation.SUGGESTED)
    sure = await confirm_world(*in_club, link.id)
    assert await confirm_world(*in_club, link.id) == sure
    assert sure.worlds[0].confirmation is Confirmation.CONFIRMED
    monkeypatch.setattr(write, "WORLDS_MOST", 1)
    with pytest.raises(Conflict, match="1 worlds at most"):
        await link_world(*in_club, WORLD.format(2))
    assert (await unlink_world(*in_club, link.id)).worlds == ()
    for command in (confirm_world, unlink_world):
        with pytest.raises(NotFound):
            await command(*in_club, link.id)
    for world_id in ("", "a" * 101, "a\nb"):
        with pytest.raises(Invalid):
            await link_world(*in_club, world_id)


async def test_a_club_has_a_bounded_number_of_events_that_are_not_over(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "EVENTS_MOST", 2)
    made = [await add(club, "Evening", Timed(NOW + DAY)) for _ in range(2)]
    with pytest.raises(Conflict, match="at most 2 events"):
        await add(club, "Evening", Timed(NOW + DAY))
    await remove_event(club.db, club.owner, club.club_id, made[0].id)
    assert (await add(club, "Evening", Timed(NOW + DAY))).title == "Evening"
