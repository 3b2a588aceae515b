"""Who may decide is reminded a week before the day on which something is archived, and told after it: once a day."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
from tests.decisions.conftest import NINETY_DAYS, Door
from tests.decisions.deliveries_kit import OWNER, add_staff, passes, sending

from lastcall.access.requests import Decided, RequestStatus, write_join_request_change
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import standing
from lastcall.deadlines.owner import Done
from lastcall.deadlines.signals import Signal
from lastcall.decisions.deliveries import tellings
from lastcall.decisions.deliveries.notices import notices_of
from lastcall.decisions.deliveries.signals import RETENTION_DIGEST, RETENTION_REMINDER
from lastcall.decisions.deliveries.tellings import telling_owners
from lastcall.decisions.deliveries.words import COUNTED
from lastcall.decisions.inbox.item import Shelf
from lastcall.decisions.inbox.queries import Wanted, inbox_page
from lastcall.decisions.inbox.reach import reach_of
from lastcall.decisions.retention.kinds import KINDS
from lastcall.decisions.retention.sweep import retention_owner
from lastcall.testing.clock import TestClock
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.mail import MailSink

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NOON = datetime(2031, 3, 1, 12, tzinfo=UTC)
DUE_DAY = date(2031, 5, 30)
"""Ninety days after ``NOON``."""
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture(autouse=True)
async def frozen(door: Door, test_clock: TestClock) -> None:
    await test_clock.freeze(NOON)
    await door.db.pool.execute("update people set email_verified_at = lastcall_now()")


def test_every_kind_of_item_has_words_to_be_counted_in() -> None:
    assert set(KINDS) <= set(COUNTED)


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


async def told(door: Door, kind: str) -> list[tuple[object, object]]:
    """Whose notices there are, and what they count."""
    rows = await door.db.pool.fetch(
        "select person_id, data ->> 'day' as day, data ->> 'join_request' as count from deliveries"
        " where kind = $1 and channel = 'app' order by created_at, id",
        f"retention.{kind}",
    )
    return [(row["person_id"], f"{row['day']}: {row['count']}") for row in rows]


async def test_the_reminder_comes_a_week_before_the_day_and_counts_what_still_waits(
    door: Door, test_clock: TestClock
) -> None:
    first = await door.waits(NOON)
    await door.waits(NOON + HOUR)
    await door.waits(NOON + DAY)
    await write_decided(door, first)
    owner = telling_owners(door.db)[0]
    remind_at = midnight(DUE_DAY) - 7 * DAY
    assert (await owner.next_deadline()).deadline == remind_at
    await test_clock.set(remind_at - MICROSECOND)
    assert await passes(owner) == Done(0)
    await test_clock.set(remind_at)
    assert await passes(owner) == Done(1)
    assert await told(door, "reminder") == [(door.owner.person_id, "2031-05-30: 1")]
    assert (await owner.next_deadline()).deadline == remind_at + DAY
    await test_clock.advance(DAY)
    await passes(owner)
    assert (await owner.next_deadline()).deadline is None
    assert await told(door, "reminder") == [
        (door.owner.person_id, "2031-05-30: 1"),
        (door.owner.person_id, "2031-05-31: 1"),
    ]


async def write_decided(door: Door, request_id: UUID) -> None:
    decided = Decided(RequestStatus.REJECTED, door.owner.person_id)
    await write_join_request_change(door.db, door.owner, door.club_id, request_id, decided)


async def test_a_reminder_is_signalled_with_its_time_and_once_a_day_of_items(door: Door) -> None:
    heard: list[Signal] = []
    door.db.bus.subscribe(Signal, heard.append)
    await door.waits(NOON)
    await door.waits(NOON + HOUR)
    mine = [one for one in heard if one.owner == RETENTION_REMINDER]
    assert mine == [Signal(RETENTION_REMINDER, midnight(DUE_DAY) - 7 * DAY)]


async def test_a_club_that_archives_within_fourteen_days_is_reminded_a_day_before(
    door: Door, test_clock: TestClock
) -> None:
    await door.db.pool.execute("update clubs set retention_days = 7")
    await door.waits(NOON)
    owner = telling_owners(door.db)[0]
    assert (await owner.next_deadline()).deadline == midnight(date(2031, 3, 7))
    await test_clock.set(midnight(date(2031, 3, 7)))
    await passes(owner)
    assert await told(door, "reminder") == [(door.owner.person_id, "2031-03-08: 1")]


@pytest.mark.parametrize("days", [7, 30, 90])
async def test_the_reminder_leads_to_a_shelf_on_which_the_item_stands(
    door: Door, test_clock: TestClock, days: int
) -> None:
    await door.db.pool.execute("update clubs set retention_days = $1", days)
    item = await door.waits(NOON)
    owner = telling_owners(door.db)[0]
    remind_at = (await owner.next_deadline()).deadline
    assert remind_at is not None
    await test_clock.set(remind_at)
    await passes(owner)
    async with door.db.read() as tx:
        found = await standing(tx, door.club_id, door.owner.person_id)
        (notice,) = (await notices_of(tx, door.owner, {door.club_id: found})).items
        shelf = parse_qs(urlsplit(notice.path).query).get("shelf", [Shelf.WAITING])[0]
        reach = reach_of(door.owner, door.club_id, found)
        page = await inbox_page(tx, reach, Wanted(remind_at, remind_at, Shelf(shelf)))
    assert [one.id for one in page.items] == [item]


async def test_what_is_due_sooner_than_a_week_is_reminded_of_at_once(door: Door) -> None:
    await door.waits(NOON - NINETY_DAYS + 2 * DAY)
    owner = telling_owners(door.db)[0]
    assert (await owner.next_deadline()).deadline == NOON
    await passes(owner)
    assert await told(door, "reminder") == [(door.owner.person_id, "2031-03-03: 1")]


async def test_nobody_is_reminded_of_what_is_overdue_or_gone(door: Door, test_clock: TestClock) -> None:
    await door.overdue()
    assert (await telling_owners(door.db)[0].next_deadline()).deadline is None
    decided = await door.waits(NOON)
    await write_decided(door, decided)
    await test_clock.set(midnight(DUE_DAY) - 7 * DAY)
    await passes(telling_owners(door.db)[0])
    assert await told(door, "reminder") == []


async def test_only_those_who_may_decide_are_told(door: Door, test_clock: TestClock) -> None:
    decider = await add_staff(door, "decider", Permission.DECIDE_ACCESS)
    await add_staff(door, "other", Permission.MANAGE_EVENTS)
    gone = await add_staff(door, "gone", Permission.DECIDE_ACCESS)
    await door.db.pool.execute("update people set blocked_at = lastcall_now() where id = $1", gone.person_id)
    await door.waits(NOON)
    await test_clock.set(midnight(DUE_DAY) - 7 * DAY)
    await passes(telling_owners(door.db)[0])
    assert {person for person, _ in await told(door, "reminder")} == {
        door.owner.person_id,
        decider.person_id,
    }


async def test_the_digest_comes_when_the_day_is_over_and_counts_what_was_archived_by_itself(
    door: Door, test_clock: TestClock
) -> None:
    heard: list[Signal] = []
    door.db.bus.subscribe(Signal, heard.append)
    for _ in range(2):
        await door.overdue()
    await passes(retention_owner(door.db, KINDS["join_request"]))
    assert Signal(RETENTION_DIGEST) in heard
    owner = telling_owners(door.db)[1]
    tell_at = midnight(date(2031, 3, 2))
    assert (await owner.next_deadline()).deadline == tell_at
    await test_clock.set(tell_at - MICROSECOND)
    assert await passes(owner) == Done(0)
    await test_clock.set(tell_at)
    assert await passes(owner) == Done(1)
    assert await told(door, "digest") == [(door.owner.person_id, "2031-03-01: 2")]
    assert (await owner.next_deadline()).deadline is None


async def test_the_digest_is_one_mail_that_leads_to_what_was_archived(
    door: Door, test_clock: TestClock
) -> None:
    await door.overdue()
    await door.overdue()
    await passes(retention_owner(door.db, KINDS["join_request"]))
    await test_clock.set(midnight(date(2031, 3, 2)))
    await passes(telling_owners(door.db)[1])
    async with MailSink() as sink, sending(door, sink) as owner:
        await passes(owner)
        mail = await sink.mail_to(OWNER)
    assert mail.subject == "Something was archived"
    assert "On 1 March 2031 (UTC) Lastcall archived 2 join requests of Club" in mail.text
    assert "/c/attic/inbox?shelf=archived" in mail.link


async def test_of_two_processes_one_tells_and_the_other_waits_and_finds_nothing(
    door: Door, test_clock: TestClock
) -> None:
    await door.waits(NOON)
    await test_clock.set(midnight(DUE_DAY) - 7 * DAY)
    connection = await door.db.connect()
    other = connection.transaction()
    await other.start()
    assert len(await connection.fetch(tellings._TAKE, door.club_id, "reminder")) == 1
    telling = asyncio.create_task(passes(telling_owners(door.db)[0]))
    await wait_until_blocked(door.db, "from retention_tellings", by=connection.get_server_pid())
    await other.commit()
    await telling
    await connection.close()
    assert await told(door, "reminder") == [], "the one that took the note tells, and only that"


async def test_a_process_that_ends_while_it_tells_has_told_nobody_and_the_next_one_does(
    door: Door, test_clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await door.waits(NOON)
    await test_clock.set(midnight(DUE_DAY) - 7 * DAY)
    real = tellings._deciders

    async def cut(tx: object, *arguments: object) -> object:
        await tx.raw.execute("select pg_terminate_backend(pg_backend_pid())")  # type: ignore[attr-defined]
        return await real(tx, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(tellings, "_deciders", cut)
        await passes(telling_owners(door.db)[0])
    assert await told(door, "reminder") == []
    await passes(telling_owners(door.db)[0])
    assert await told(door, "reminder") == [(door.owner.person_id, "2031-05-30: 1")]
