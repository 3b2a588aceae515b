"""A mail is claimed before it is sent; what certainly did not leave is tried again, what may have left never."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from tests.decisions.conftest import Door
from tests.decisions.deliveries_kit import (
    FROM,
    KIND,
    OWNER,
    PUBLIC_URL,
    passes,
    row,
    sending,
    state,
    tell,
)

from lastcall.db.transaction import Transaction
from lastcall.deadlines.owner import Done
from lastcall.decisions.deliveries import sending as sending_module
from lastcall.decisions.deliveries.kinds import declare_kind
from lastcall.decisions.deliveries.sending import ATTEMPTS_MOST, deliveries_owner, pause_after
from lastcall.mail.limits import PER_ADDRESS, admit_asker
from lastcall.mail.mailer import Mailer
from lastcall.mail.messages import Mail
from lastcall.mail.queries import mails
from lastcall.mail.server import mail_server
from lastcall.mail.states import OVER_LIMIT, MailState
from lastcall.people.preferences import set_preferences
from lastcall.testing.clock import TestClock
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.mail import MailSink
from lastcall.testing.waiting import eventually

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
async def sink() -> AsyncIterator[MailSink]:
    async with MailSink() as sink:
        yield sink


@pytest.fixture(autouse=True)
async def frozen(door: Door, test_clock: TestClock) -> None:
    declare_kind(KIND)
    await door.db.pool.execute("update people set email_verified_at = lastcall_now()")
    await test_clock.freeze()


async def ledger(door: Door) -> list[MailState]:
    async with door.db.read() as tx:
        return [one.state for one in await mails(tx, only_trouble=False)]


async def settled(door: Door, *states: MailState) -> None:
    """Until the ledger says so."""
    await eventually(lambda: ledger_is(door, list(states)))


async def ledger_is(door: Door, states: list[MailState]) -> bool:
    return sorted(await ledger(door)) == sorted(states)


async def test_a_message_is_mailed_once_and_then_nothing_is_due(
    door: Door, sink: MailSink, test_clock: TestClock
) -> None:
    await tell(door)
    async with sending(door, sink) as owner:
        assert await passes(owner) == Done(1)
        mail = await sink.mail_to(OWNER)
        assert (mail.subject, mail.link) == ("News", f"{PUBLIC_URL}/c/attic/inbox")
        assert "Something happened in Club." in mail.text
        await settled(door, MailState.SENT)
        looked_at = (await owner.next_deadline()).deadline
        assert looked_at == await test_clock.now() + MINUTE
        await test_clock.set(looked_at - MICROSECOND)
        assert await passes(owner) == Done(0)
        await test_clock.set(looked_at)
        assert await passes(owner) == Done(1)
        assert (await owner.next_deadline()).deadline is None
    assert (await state(door), len(sink.received)) == ("delivered", 1)


async def test_a_mail_server_that_refuses_is_asked_eight_times_with_growing_pauses(
    door: Door, sink: MailSink, test_clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The limit of an address is another matter, see the test below.
    monkeypatch.setattr("lastcall.mail.mailer.admit_asker", no_limit)
    sink.refuse_rcpt = "450 not now"
    await tell(door)
    async with sending(door, sink) as owner:
        for attempt in range(1, ATTEMPTS_MOST + 1):
            await passes(owner)
            await settled(door, *[MailState.FAILED] * attempt)
            await test_clock.advance(MINUTE)
            await passes(owner)
            if attempt < ATTEMPTS_MOST:
                again = (await owner.next_deadline()).deadline
                assert again == await test_clock.now() + pause_after(attempt)
                await test_clock.set(again)
        assert (await owner.next_deadline()).deadline is None
    dead = await row(door)
    assert (dead["state"], dead["attempts"], dead["last_error"]) == ("dead", ATTEMPTS_MOST, "450 not now")
    assert [pause_after(n) for n in (1, 2, 7)] == [30 * SECOND, MINUTE, 32 * MINUTE]


async def no_limit(*_: object) -> None:
    """As many as a test needs."""


async def test_a_mail_that_a_limit_holds_back_waits_for_its_end_and_loses_no_attempt(
    door: Door, sink: MailSink, test_clock: TestClock
) -> None:
    for _ in range(PER_ADDRESS.count):
        await admit_asker(door.db, OWNER, None, "test_told")
    await tell(door)
    async with sending(door, sink) as owner:
        for held_back in range(1, 3):
            await passes(owner)
            await settled(door, *[MailState.FAILED] * held_back)
            await test_clock.advance(MINUTE)
            await passes(owner)
            put_off = await row(door)
            assert (put_off["state"], put_off["attempts"]) == ("pending", 0)
            assert put_off["last_error"] == OVER_LIMIT
            assert put_off["next_at"] == await test_clock.now() + PER_ADDRESS.per
            await test_clock.set(put_off["next_at"])
            if held_back == 1:
                for _ in range(PER_ADDRESS.count):
                    await admit_asker(door.db, OWNER, None, "test_told")
        await passes(owner)
        await sink.mail_to(OWNER)
        await settled(door, MailState.FAILED, MailState.FAILED, MailState.SENT)
        await test_clock.advance(MINUTE)
        await passes(owner)
    delivered = await row(door)
    assert (delivered["state"], delivered["attempts"], len(sink.received)) == ("delivered", 1, 1)


async def test_a_mail_that_is_refused_once_leaves_at_the_next_attempt(
    door: Door, sink: MailSink, test_clock: TestClock
) -> None:
    sink.refuse_rcpt = "450 not now"
    await tell(door)
    async with sending(door, sink) as owner:
        await passes(owner)
        await settled(door, MailState.FAILED)
        await test_clock.advance(MINUTE)
        await passes(owner)
        sink.refuse_rcpt = None
        await test_clock.advance(30 * SECOND)
        await passes(owner)
        await sink.mail_to(OWNER)
        await settled(door, MailState.FAILED, MailState.SENT)
        await test_clock.advance(MINUTE)
        await passes(owner)
    assert (await state(door), len(sink.received)) == ("delivered", 1)


async def test_a_mail_server_that_hangs_keeps_nobody_waiting_and_is_never_sent_to_again(
    door: Door, sink: MailSink, test_clock: TestClock
) -> None:
    sink.hang_after_data = asyncio.Event()
    await tell(door)
    async with sending(door, sink) as owner:
        assert await passes(owner) == Done(1), "the pass does not wait for the mail server"
        await sink.mail_to(OWNER)
        await test_clock.advance(MINUTE)
        assert await passes(owner) == Done(1)
        begun = await door.db.pool.fetchval("select created_at from outgoing_mail")
        assert (await owner.next_deadline()).deadline == begun + HOUR
        await test_clock.set(begun + HOUR)
        await passes(owner)
        assert (await owner.next_deadline()).deadline is None
        sink.hang_after_data.set()
    assert (await state(door), len(sink.received)) == ("unknown", 1)


async def test_a_mail_whose_answer_is_lost_is_never_sent_again(
    door: Door, sink: MailSink, test_clock: TestClock
) -> None:
    sink.drop_after_data = True
    await tell(door)
    async with sending(door, sink) as owner:
        await passes(owner)
        await settled(door, MailState.UNKNOWN)
        sink.drop_after_data = False
        for _ in range(3):
            await test_clock.advance(HOUR)
            await passes(owner)
    assert (await state(door), len(sink.received)) == ("unknown", 1)


@pytest.mark.parametrize("why", ["turned off", "not verified", "off the staff", "blocked"])
async def test_whoever_may_not_be_written_to_has_no_mail_and_the_notice_stays(
    door: Door, sink: MailSink, why: str
) -> None:
    await tell(door)
    match why:
        case "turned off":
            await door.db.pool.execute(
                "insert into mail_preferences (person_id, topic, is_on) values ($1, 'test', false)",
                door.owner.person_id,
            )
        case "not verified":
            await door.db.pool.execute("update people set email_verified_at = null")
        case "off the staff":
            other = await door.db.pool.fetchval(
                "insert into people (id, email, display_name)"
                " values (gen_random_uuid(), 'next@example.org', 'Next') returning id"
            )
            await door.db.pool.execute("update clubs set owner_id = $1", other)
        case "blocked":
            await door.db.pool.execute("update people set blocked_at = lastcall_now()")
    async with sending(door, sink) as owner:
        await passes(owner)
        assert (await owner.next_deadline()).deadline is None
    assert (await state(door), await ledger(door)) == ("dropped", [])
    assert await state(door, "app") == "delivered"


async def test_without_a_mail_server_nothing_is_kept_waiting(door: Door) -> None:
    await tell(door)
    await passes(deliveries_owner(door.db, Mailer(door.db, None, PUBLIC_URL)))
    assert await state(door) == "dropped"


class SlowMailer(Mailer):
    """Stops between the claim and its commit."""

    reached: asyncio.Event
    released: asyncio.Event

    async def post(self, tx: Transaction, mail: Mail, mail_id: object = None) -> None:
        await super().post(tx, mail, mail_id)  # type: ignore[arg-type]
        self.reached.set()
        await self.released.wait()


async def two_at_one_delivery(door: Door, sink: MailSink, *, waits: bool) -> None:
    await tell(door)
    server = mail_server(sink.url, FROM)
    slow = SlowMailer(door.db, server, PUBLIC_URL)
    slow.reached, slow.released = asyncio.Event(), asyncio.Event()
    async with slow.running(), Mailer(door.db, server, PUBLIC_URL).running() as fast:
        first = asyncio.create_task(passes(deliveries_owner(door.db, slow)))
        await slow.reached.wait()
        second = asyncio.create_task(passes(deliveries_owner(door.db, fast)))
        await wait_until_blocked(door.db, "no key update" if waits else "set state = 'delivering'")
        assert not second.done()
        slow.released.set()
        await asyncio.gather(first, second)
        await eventually(lambda: len(sink.received) >= (1 if waits else 2))


async def test_two_processes_at_one_delivery_send_one_mail(door: Door, sink: MailSink) -> None:
    await two_at_one_delivery(door, sink, waits=True)
    assert (len(sink.received), await ledger(door)) == (1, [MailState.SENT])


async def test_without_the_lock_two_processes_would_send_two_mails(
    door: Door, sink: MailSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: the row's lock, taken before it is judged, is the guard."""
    hold = sending_module._HOLD
    monkeypatch.setattr(sending_module, "_HOLD", hold[: hold.index("for no key update")])
    await two_at_one_delivery(door, sink, waits=False)
    assert len(sink.received) == 2


PROCESS = """
import asyncio, sys
sys.path[:0] = [sys.argv[3], sys.argv[4]]
from tests.decisions.deliveries_kit import KIND
from lastcall.db.database import Database
from lastcall.deadlines.owner import Stop
from lastcall.decisions.deliveries.kinds import declare_kind
from lastcall.decisions.deliveries.sending import deliveries_owner
from lastcall.mail.mailer import Mailer
from lastcall.mail.server import mail_server

async def main():
    declare_kind(KIND)
    db = await Database.open(sys.argv[1])
    async with Mailer(db, mail_server(sys.argv[2], "lastcall@club.example"), "http://localhost").running() as mailer:
        await deliveries_owner(db, mailer).run_pass(Stop())
        await asyncio.sleep(3600)

asyncio.run(main())
"""
"""A process that comes to the mail server, and stays there."""


@pytest.mark.parametrize("place", ["before the mail is handed over", "after it"])
async def test_a_process_killed_at_the_mail_server_leaves_it_unknown_and_nobody_sends_it_again(
    door: Door, sink: MailSink, test_clock: TestClock, place: str
) -> None:
    await tell(door)
    is_handed_over = place == "after it"
    never = asyncio.Event()
    if is_handed_over:
        sink.hang_after_data = never
    else:
        sink.hang = never
    source = str(sending_module.__file__).partition("lastcall/decisions")[0]
    tests = __file__.partition("tests/decisions")[0]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROCESS, door.db.url, sink.url, source, tests
    )
    try:
        await eventually(lambda: sink.received if is_handed_over else sink.senders, within=20)
    finally:
        process.kill()
        await process.wait()
    sink.hang = sink.hang_after_data = None
    async with sending(door, sink) as owner:
        for _ in range(3):
            await test_clock.advance(HOUR)
            await passes(owner)
        assert (await owner.next_deadline()).deadline is None
    assert (await state(door), len(sink.received)) == ("unknown", int(is_handed_over))


async def test_what_breaks_before_the_claim_is_committed_is_sent_by_the_next_pass(
    door: Door, sink: MailSink, test_clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim and the row of the attempt are one transaction: neither is there without the other."""
    await tell(door)
    real = Mailer.post

    async def broken(self: Mailer, tx: Transaction, mail: Mail, mail_id: object = None) -> None:
        await real(self, tx, mail, mail_id)  # type: ignore[arg-type]
        await tx.raw.execute("select pg_terminate_backend(pg_backend_pid())")

    async with sending(door, sink) as owner:
        with monkeypatch.context() as patched:
            patched.setattr(Mailer, "post", broken)
            await passes(owner)
        assert (await state(door), await ledger(door), sink.received) == ("pending", [], [])
        await test_clock.advance(30 * SECOND)
        await passes(owner)
        await sink.mail_to(OWNER)


async def test_people_choose_whether_they_are_written_to(door: Door) -> None:
    await set_preferences(door.db, door.owner, ["retention"])
    rows = await door.db.pool.fetch("select topic, is_on from mail_preferences")
    chosen = {row["topic"]: row["is_on"] for row in rows}
    assert (chosen["asked"], chosen["retention"]) == (False, True)
