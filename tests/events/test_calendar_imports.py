"""Import documents: what is read waits for a review, and what is applied goes the one path on which events are
written."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.clubs.house import House, contend, open_house
from tests.events.calendars import calendar, vevent

from lastcall.clubs.policy import Standing, standing
from lastcall.errors import Conflict, Invalid, NotFound, TooFast
from lastcall.events import listeners
from lastcall.events.fields import EventFields
from lastcall.events.import_queries import ImportView, calendar_import, calendar_imports
from lastcall.events.imports.comparison import CANCELLED_HERE, GONE, ItemChange
from lastcall.events.listeners import EventChange, on_event_change
from lastcall.events.queries import EventStatus, EventView, Publication, read_events
from lastcall.events.services import importing
from lastcall.events.services.importing import apply_items, import_file, skip_items
from lastcall.events.services.write import cancel_event, edit_event, remove_event
from lastcall.events.times import DateOnly, Timed

SOON = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)
DAY = SOON.date()


def start(days: int = 0, hour: int = 20) -> str:
    return f";TZID=Europe/Berlin:{DAY + timedelta(days):%Y%m%d}T{hour}0000"


WEEKLY = "RRULE:FREQ=WEEKLY;COUNT=3"


async def read(club: House, *parts: str) -> ImportView:
    return await import_file(club.db, club.deputy, club.club_id, "evenings.ics", calendar(*parts))


async def events(club: House) -> list[EventView]:
    async with club.db.read() as tx:
        return await read_events(tx, club.club_id)


async def apply_all(club: House, document: ImportView, **others: Publication) -> importing.Reviewed:
    open_items = [one.id for one in document.items if one.is_open]
    return await apply_items(
        club.db, club.deputy, club.club_id, document.id, open_items, document.revision, **others
    )


def changes(document: ImportView) -> list[ItemChange]:
    return [one.change for one in document.items]


@pytest.mark.clause("EVT-02")
async def test_reading_a_calendar_makes_a_document_and_writes_no_event(club: House) -> None:
    document = await read(club, vevent("1", start(), WEEKLY, "SUMMARY:Dance"), vevent("2", start(1)))
    assert changes(document) == [ItemChange.NEW] * 4
    assert await events(club) == []
    assert (await club.actions())[-1] == "event.calendar_read"


@pytest.mark.clause("EVT-01", "EVT-02")
async def test_what_is_applied_goes_the_one_path_and_the_rest_stays(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[EventChange] = []

    async def hear(_: object, change: EventChange) -> None:
        told.append(change)

    monkeypatch.setattr(listeners, "_listeners", [])
    on_event_change(hear)
    document = await read(club, vevent("1", start(), WEEKLY, "SUMMARY:Dance"))
    first = document.items[0]
    reviewed = await apply_items(
        club.db, club.deputy, club.club_id, document.id, [first.id], document.revision, Publication.PUBLISHED
    )
    (made,) = await events(club)
    assert [change.event_id for change in told] == [made.id]
    assert (made.title, made.import_uid, made.publication) == ("Dance", f"1#{DAY}", Publication.PUBLISHED)
    assert [one.decision for one in reviewed.document.items] == ["applied", None, None]
    assert reviewed.document.items[0].event == made


async def test_reading_the_calendar_again_shows_what_is_the_same_changed_cancelled_and_gone(
    club: House,
) -> None:
    await apply_all(
        club,
        await read(
            club,
            vevent("same", start(), "SUMMARY:Same"),
            vevent("changed", start(1), "SUMMARY:Before"),
            vevent("cancelled", start(2), "SUMMARY:Off"),
            vevent("series", start(3), WEEKLY, "SUMMARY:Series"),
            vevent("day", f";VALUE=DATE:{DAY:%Y%m%d}", "SUMMARY:Day"),
        ),
    )
    again = await read(
        club,
        vevent("same", start(), "SUMMARY:Same"),
        vevent("changed", start(1, 21), "SUMMARY:After"),
        vevent("cancelled", start(2), "SUMMARY:Off", "STATUS:CANCELLED"),
        vevent("never here", start(2), "SUMMARY:Off", "STATUS:CANCELLED"),
        vevent("series", start(3), WEEKLY, "SUMMARY:Series", f"EXDATE{start(10)}"),
        vevent("day", start(0, 12), "SUMMARY:Day"),
        vevent("new", start(5), "SUMMARY:New"),
    )
    found = {one.uid: one for one in again.items}
    assert {uid: one.change for uid, one in found.items()} == {
        "same": ItemChange.SAME,
        "changed": ItemChange.CHANGED,
        "cancelled": ItemChange.CANCELLED,
        f"series#{DAY + timedelta(3)}": ItemChange.SAME,
        f"series#{DAY + timedelta(10)}": ItemChange.CANCELLED,
        f"series#{DAY + timedelta(17)}": ItemChange.SAME,
        "day": ItemChange.CHANGED,
        "new": ItemChange.NEW,
    }
    assert found[f"series#{DAY + timedelta(10)}"].notes == (GONE,)
    assert [one.field for one in found["changed"].differences] == ["title", "time"]
    assert isinstance(found["day"].differences[0].before, DateOnly)
    assert isinstance(found["day"].differences[0].after, Timed)
    await apply_all(club, again)
    assert {one.title: one.status for one in await events(club)} | {} == {
        "Same": EventStatus.SCHEDULED,
        "After": EventStatus.SCHEDULED,
        "Off": EventStatus.CANCELLED,
        "Series": EventStatus.SCHEDULED,
        "Day": EventStatus.SCHEDULED,
        "New": EventStatus.SCHEDULED,
    }
    assert sum(one.status is EventStatus.CANCELLED for one in await events(club)) == 2


async def test_a_date_that_the_calendar_confirms_again_does_not_reinstate_what_was_cancelled_here(
    club: House,
) -> None:
    await apply_all(club, await read(club, vevent("1", start(), "SUMMARY:Dance")))
    (event,) = await events(club)
    await cancel_event(club.db, club.owner, club.club_id, event.id)
    (one,) = (await read(club, vevent("1", start(), "SUMMARY:Dance"))).items
    assert (one.change, one.notes) == (ItemChange.SAME, (CANCELLED_HERE,))
    renamed = await read(club, vevent("1", start(), "SUMMARY:Ball"))
    await apply_all(club, renamed)
    assert [(one.title, one.status) for one in await events(club)] == [("Ball", EventStatus.CANCELLED)]


async def test_doors_are_the_club_s_own_and_move_with_the_start(club: House) -> None:
    await apply_all(club, await read(club, vevent("1", start(), "SUMMARY:Dance")))
    (event,) = await events(club)
    assert event.starts_at is not None
    doors = Timed(event.starts_at, None, event.starts_at - timedelta(minutes=30))
    await edit_event(
        club.db, club.owner, club.club_id, event.id, EventFields("Dance", doors, event.zone), event.revision
    )
    assert changes(await read(club, vevent("1", start(), "SUMMARY:Dance"))) == [ItemChange.SAME]
    await apply_all(club, await read(club, vevent("1", start(0, 22), "SUMMARY:Dance")))
    (moved,) = await events(club)
    assert isinstance(moved.time, Timed)
    assert moved.time.doors_at == moved.time.starts_at - timedelta(minutes=30)
    assert moved.time.starts_at == event.starts_at + timedelta(hours=2)


async def test_an_event_that_was_changed_since_the_reading_is_left_alone_and_the_others_are_written(
    club: House,
) -> None:
    await apply_all(
        club, await read(club, vevent("1", start(), "SUMMARY:A"), vevent("2", start(1), "SUMMARY:B"))
    )
    one, _ = await events(club)
    document = await read(
        club, vevent("1", start(0, 21), "SUMMARY:A"), vevent("2", start(1), "STATUS:CANCELLED")
    )
    mine = EventFields("Mine", one.time, one.zone)
    await edit_event(club.db, club.owner, club.club_id, one.id, mine, one.revision)
    reviewed = await apply_all(club, document)
    assert reviewed.applied == 1
    assert [sentence for _, sentence in reviewed.refused] == [
        "This event was changed after the calendar was read."
    ]
    assert {event.title: event.status for event in await events(club)} == {
        "Mine": EventStatus.SCHEDULED,
        "B": EventStatus.CANCELLED,
    }
    (left,) = [item for item in reviewed.document.items if item.is_open]
    assert left.problem == "This event was changed after the calendar was read."


async def test_twin_without_the_check_the_import_overwrites_what_somebody_wrote(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await apply_all(club, await read(club, vevent("1", start(), "SUMMARY:A")))
    (event,) = await events(club)
    document = await read(club, vevent("1", start(0, 21), "SUMMARY:A"))
    mine = EventFields("Mine", event.time, event.zone)
    await edit_event(club.db, club.owner, club.club_id, event.id, mine, event.revision)
    monkeypatch.setattr(importing, "_check_unmoved", lambda *_: None)
    assert (await apply_all(club, document)).applied == 1
    assert [one.title for one in await events(club)] == ["A"]


async def test_two_who_apply_the_same_new_dates_in_another_order_do_not_wait_for_each_other(
    club: House,
) -> None:
    parts = [vevent(str(n), start(n), f"SUMMARY:{n}") for n in range(6)]
    moved = [vevent(str(n), start(9 - n), f"SUMMARY:{n}") for n in range(6)]
    documents = [await read(club, *parts), await read(club, *moved)]
    reviewed = await asyncio.gather(*(apply_all(club, one) for one in documents))
    assert sum(one.applied for one in reviewed) == 6
    assert len(await events(club)) == 6


async def test_a_removed_event_is_refused_when_applied_and_new_in_the_next_reading(club: House) -> None:
    await apply_all(club, await read(club, vevent("1", start(), "SUMMARY:A")))
    (event,) = await events(club)
    document = await read(club, vevent("1", start(0, 21), "SUMMARY:A"))
    await remove_event(club.db, club.owner, club.club_id, event.id)
    assert (await apply_all(club, document)).refused[0][1] == "There is no such event."
    again = await read(club, vevent("1", start(0, 21), "SUMMARY:A"))
    assert changes(again) == [ItemChange.NEW]
    assert (await apply_all(club, again)).applied == 1


async def test_the_same_date_out_of_two_documents_becomes_one_event(club: House) -> None:
    documents = [await read(club, vevent("1", start(), "SUMMARY:A")) for _ in range(2)]
    assert [(await apply_all(club, one)).applied for one in documents] == [1, 0]
    assert len(await events(club)) == 1


async def test_a_review_of_what_somebody_reviewed_meanwhile_is_a_conflict_with_the_document_as_it_is(
    club: House,
) -> None:
    document = await read(club, vevent("1", start(), WEEKLY))
    first, second, third = (one.id for one in document.items)
    fresh = await skip_items(club.db, club.owner, club.club_id, document.id, [first], document.revision)
    with pytest.raises(Conflict) as refused:
        await apply_items(club.db, club.deputy, club.club_id, document.id, [second], document.revision)
    assert refused.value.fresh == fresh
    for decided in ([first], [first, third]):
        with pytest.raises(NotFound):
            await apply_items(club.db, club.deputy, club.club_id, document.id, decided, fresh.revision)
    assert await events(club) == []


async def test_two_reviews_at_once_wait_for_each_other_and_only_one_counts(club: House) -> None:
    document = await read(club, vevent("1", start(), "SUMMARY:A"))

    def review() -> object:
        return apply_all(club, document)

    outcome = await contend(club.db, review, review, "calendar_imports")  # type: ignore[arg-type]
    assert isinstance(outcome, Conflict)
    assert outcome.code == "import_reviewed"
    assert len(await events(club)) == 1


async def test_what_cannot_be_written_leaves_its_sentence_and_a_listener_s_refusal_too(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: object, change: EventChange) -> None:
        if change.before is None:
            raise Conflict("not_now", "Not now.")

    monkeypatch.setattr(listeners, "_listeners", [])
    on_event_change(refuse)
    document = await read(club, vevent("1", start(), "SUMMARY:A"), vevent("2", ":nonsense", "SUMMARY:B"))
    assert changes(document) == [ItemChange.NEW, ItemChange.UNREADABLE]
    reviewed = await apply_all(club, document)
    assert [one.problem for one in reviewed.document.items] == [
        "Not now.",
        "Its DTSTART is missing, twice there or cannot be read.",
    ]
    assert await events(club) == []
    with pytest.raises(NotFound):
        await apply_items(
            club.db,
            club.deputy,
            club.club_id,
            document.id,
            [document.items[1].id],
            reviewed.document.revision,
        )


async def test_a_club_keeps_its_last_documents(club: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "IMPORTS_KEPT", 2)
    documents = [await read(club, vevent("1", start())) for _ in range(3)]
    async with club.db.read() as tx:
        found = await standing(tx, club.club_id, club.owner.person_id)
        kept = await calendar_imports(tx, found, club.club_id)
        with pytest.raises(NotFound):
            await calendar_import(tx, found, club.club_id, documents[0].id)
    assert [one.id for one in kept] == [documents[2].id, documents[1].id]
    assert [(one.dates, one.undecided, one.source, one.created_by) for one in kept] == [
        (1, 1, "evenings.ics", "Deputy")
    ] * 2


async def test_documents_are_for_those_who_manage_events_and_of_their_own_club(club: House) -> None:
    document = await read(club, vevent("1", start()))
    other = await open_house(club.db)
    nobody = Standing(is_owner=False, is_staff=True, permissions=frozenset(), provider_role_ids=frozenset())
    async with club.db.read() as tx:
        for reader, club_id in (
            (nobody, club.club_id),
            (await standing(tx, other.club_id, other.owner.person_id), other.club_id),
        ):
            with pytest.raises(NotFound):
                await calendar_import(tx, reader, club_id, document.id)
        with pytest.raises(NotFound):
            await calendar_imports(tx, nobody, club.club_id)
    items = [one.id for one in document.items]
    with pytest.raises(NotFound):
        await apply_items(club.db, other.owner, other.club_id, document.id, items, document.revision)
    with pytest.raises(NotFound):
        await import_file(club.db, club.guest, club.club_id, "a.ics", b"")


async def test_one_person_reads_so_many_calendars_an_hour(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(importing.CALENDAR_IMPORT.count):
        with pytest.raises(Invalid):
            await import_file(club.db, club.owner, club.club_id, "a.ics", bytes(2**20 + 1))
    with pytest.raises(TooFast):
        await import_file(club.db, club.owner, club.club_id, "a.ics", bytes(2**20 + 1))
    assert changes(await read(club, vevent("1", start()))) == [ItemChange.NEW]


async def test_more_dates_than_one_transaction_takes_are_refused(club: House) -> None:
    document = await read(club, vevent("1", start(), "RRULE:FREQ=DAILY;COUNT=101"))
    items = [one.id for one in document.items]
    assert len(items) == importing.APPLIED_MOST + 1
    with pytest.raises(Invalid, match="At most 100"):
        await apply_items(club.db, club.deputy, club.club_id, document.id, items, document.revision)
    reviewed = await apply_items(
        club.db, club.deputy, club.club_id, document.id, items[:20], document.revision
    )
    assert (reviewed.applied, len(await events(club))) == (20, 20)


async def test_a_time_without_a_zone_is_in_the_zone_that_was_chosen(club: House) -> None:
    async def instant(zone: str | None) -> datetime | None:
        made = await import_file(
            club.db, club.deputy, club.club_id, "a.ics", calendar(vevent("1", f":{DAY:%Y%m%d}T200000")), zone
        )
        return made.items[0].fields.starts_at

    evening = datetime.combine(DAY, datetime.min.time(), UTC) + timedelta(hours=20)
    assert await instant(None) == evening  # the club's zone is UTC
    assert await instant("Asia/Tokyo") == evening - timedelta(hours=9)
    with pytest.raises(Invalid) as refused:
        await instant("Mars/Olympus")
    assert refused.value.field == "zone"
