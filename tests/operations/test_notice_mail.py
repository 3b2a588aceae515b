"""One mail tells of what belongs together; it is claimed before it is sent, and tried once."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest
from notices_kit import (
    FROM,
    MODERATOR,
    OWNER,
    PUBLIC_URL,
    failed,
    failed_batch,
    leave,
    lose_permission,
    mail_owner,
    mailing,
    passes,
    verify_addresses,
)
from operations_world import World, invitation, user

from lastcall.db.ids import encode_id
from lastcall.db.transaction import Transaction
from lastcall.deadlines.owner import Done
from lastcall.mail.mailer import Mailer
from lastcall.mail.messages import Mail
from lastcall.mail.queries import mails
from lastcall.mail.server import mail_server
from lastcall.mail.states import UNKNOWN_AFTER, MailState
from lastcall.operations.owners import mail as mail_module
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.mail import MailSink
from lastcall.testing.waiting import eventually

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
async def sink() -> AsyncIterator[MailSink]:
    async with MailSink() as sink:
        yield sink


@pytest.fixture(autouse=True)
async def frozen(world: World) -> None:
    await verify_addresses(world)
    await world.clock.freeze()


async def waiting(world: World) -> int:
    return int(await world.run("select count(*) from operation_notices where mail_at is not null"))


async def states(world: World) -> list[MailState]:
    async with world.db.read() as tx:
        return [one.state for one in await mails(tx, only_trouble=False)]


async def test_a_batch_is_told_in_one_mail_a_minute_after_the_first(world: World, sink: MailSink) -> None:
    began = await world.clock.now()
    failed_ids = await failed_batch(world, 2)
    request_id = await world.run("select request_id from operations where id = $1", failed_ids[0])
    await world.clock.advance(MINUTE / 2)
    await failed_batch(world, 1)
    async with mailing(world, sink) as owner:
        assert (await owner.next_deadline()).deadline == began + MINUTE
        await world.clock.set(began + MINUTE - MICROSECOND)
        assert await passes(owner) == Done(0)
        await world.clock.set(began + MINUTE)
        assert await passes(owner) == Done(1)
        mail = await sink.mail_to(MODERATOR)
        assert mail.subject == "Actions failed"
        assert "2 actions in Club failed." in mail.text
        assert mail.path == f"/c/club/requests/{encode_id(request_id)}"
        assert (await owner.next_deadline()).deadline == began + MINUTE * 1.5
        await world.clock.set(began + MINUTE * 2)
        assert await passes(owner) == Done(1)
        assert "An action in Club failed." in (await sink.mail_to(MODERATOR, number=2)).text
        assert (await owner.next_deadline()).deadline is None, "nothing waits, so nothing is looked for"


async def test_a_mail_leads_to_its_action_and_says_nothing_of_it(world: World, sink: MailSink) -> None:
    operation_id = await failed(world, 7)
    await world.clock.advance(MINUTE)
    async with mailing(world, sink) as owner:
        await passes(owner)
        mail = await sink.mail_to(MODERATOR)
    assert mail.link == f"{PUBLIC_URL}/c/club/scheduled/{encode_id(operation_id)}"
    for word in (user(7), "Invite", "invalid"):
        assert word not in mail.text + mail.html + mail.subject


async def test_what_ends_after_its_digest_was_sent_is_not_mailed_again(world: World, sink: MailSink) -> None:
    await world.enqueue(invitation(1), invitation(2))
    first, second = world.held(await world.claim()), world.held(await world.claim())
    async with mailing(world, sink) as owner:
        await world.steps.reject(world.worker, first, "invalid_input")
        await world.clock.advance(MINUTE)
        await passes(owner)
        await world.steps.reject(world.worker, second, "invalid_input")
        await world.clock.advance(MINUTE)
        assert await passes(owner) == Done(1)
        await sink.mail_to(MODERATOR)
    assert len(sink.received) == 1
    assert await world.run("select count(*) from operation_notices where digest_id is not null") == 2


@pytest.mark.parametrize("why", ["turned off", "not verified", "permission gone", "blocked owner"])
async def test_whoever_cannot_be_written_to_is_asked_again_in_an_hour_for_a_day(
    world: World, sink: MailSink, why: str
) -> None:
    await failed(world)
    match why:
        case "turned off":
            await world.run(
                "insert into mail_preferences (person_id, topic, is_on) values ($1, 'operations', false)",
                world.moderator.person_id,
            )
        case "not verified":
            await world.run("update people set email_verified_at = null")
        case "permission gone":
            await lose_permission(world)
        case _:
            await leave(world, world.moderator)
            await world.run(
                "update people set blocked_at = lastcall_now() where id = $1", world.owner.person_id
            )
    await world.clock.advance(MINUTE)
    tries = 0
    async with mailing(world, sink) as owner:
        while (reading := await owner.next_deadline()).deadline is not None:
            await world.clock.set(reading.deadline)
            assert await passes(owner) == Done(1)
            tries += 1
    assert tries == 25, "after a minute, and then each hour until it is a day old"
    assert sink.senders == []


async def test_whom_a_notice_is_for_is_judged_when_it_is_sent(world: World, sink: MailSink) -> None:
    await failed(world)
    await leave(world, world.moderator)
    await world.clock.advance(MINUTE)
    async with mailing(world, sink) as owner:
        await passes(owner)
        await sink.mail_to(OWNER)
    assert sink.to(MODERATOR) == []


async def test_who_wants_mail_again_gets_what_was_put_off(world: World, sink: MailSink) -> None:
    await failed(world)
    await world.run("update people set email_verified_at = null")
    await world.clock.advance(MINUTE)
    async with mailing(world, sink) as owner:
        await passes(owner)
        await verify_addresses(world)
        await world.clock.advance(HOUR)
        await passes(owner)
        await sink.mail_to(MODERATOR)
    assert await waiting(world) == 0


async def test_without_a_mail_server_nothing_waits(world: World) -> None:
    await failed(world)
    await world.clock.advance(MINUTE)
    assert await passes(mail_owner(world, world.mailer)) == Done(1)
    assert await waiting(world) == 0
    assert await world.run("select count(*) from operation_digests") == 0


class HeldMailer(Mailer):
    """Stops where the digest is claimed and not committed yet."""

    reached: asyncio.Event
    released: asyncio.Event

    async def post(self, tx: Transaction, mail: Mail, mail_id: UUID | None = None) -> None:
        self.reached.set()
        await self.released.wait()
        await super().post(tx, mail, mail_id)


async def two_at_one_digest(world: World, sink: MailSink, *, waits: bool) -> None:
    """One process claims a digest; another comes to it before the first has committed."""
    await failed(world)
    await world.clock.advance(MINUTE)
    server = mail_server(sink.url, FROM)
    slow = HeldMailer(world.db, server, PUBLIC_URL)
    slow.reached, slow.released = asyncio.Event(), asyncio.Event()
    async with slow.running(), Mailer(world.db, server, PUBLIC_URL).running() as fast:
        first = asyncio.create_task(passes(mail_owner(world, slow)))
        await slow.reached.wait()
        second = asyncio.create_task(passes(mail_owner(world, fast)))
        if waits:
            await wait_until_blocked(world.db, "insert into operation_digests")
            assert not second.done()
        else:
            await sink.mail_to(MODERATOR)
        slow.released.set()
        await asyncio.gather(first, second)


@pytest.mark.clause("RCV-05")
async def test_two_processes_at_one_digest_send_one_mail(world: World, sink: MailSink) -> None:
    await two_at_one_digest(world, sink, waits=True)
    assert len(sink.received) == 1
    assert await states(world) == [MailState.SENT]


async def test_without_the_claim_two_processes_would_send_two_mails(
    world: World, sink: MailSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: the digest's unique row is the guard. What it tells of is updated afterwards and keeps nobody out."""
    await world.run(
        "alter table operation_digests drop constraint operation_digests_club_id_request_id_revision_outcome_p_ede4"
    )
    claim = mail_module._CLAIM
    monkeypatch.setattr(mail_module, "_CLAIM", claim[: claim.index("on conflict")])
    await two_at_one_digest(world, sink, waits=False)
    assert len(sink.received) == 2


PROCESS = """
import asyncio, sys
sys.path.insert(0, sys.argv[3])
from lastcall.db.database import Database
from lastcall.deadlines.owner import Stop
from lastcall.mail.mailer import Mailer
from lastcall.mail.server import mail_server
from lastcall.operations.owners import operation_owners

async def main():
    db = await Database.open(sys.argv[1])
    async with Mailer(db, mail_server(sys.argv[2], "lastcall@club.example"), "http://localhost").running() as mailer:
        owner = next(one for one in operation_owners(db, mailer) if one.name == "operation_mail")
        await owner.run_pass(Stop())
        await asyncio.sleep(3600)

asyncio.run(main())
"""
"""A process that comes to the mail server, and stays there."""


@pytest.mark.parametrize("place", ["before the mail is handed over", "after it"])
async def test_a_process_killed_at_its_digest_leaves_it_unknown_and_nobody_sends_it_again(
    world: World, sink: MailSink, place: str
) -> None:
    await failed(world)
    await world.clock.advance(MINUTE)
    is_handed_over = place == "after it"
    never = asyncio.Event()
    if is_handed_over:
        sink.hang_after_data = never
    else:
        sink.hang = never
    source = str(mail_module.__file__).partition("lastcall/operations")[0]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROCESS, world.db.url, sink.url, source
    )
    try:
        await eventually(lambda: sink.received if is_handed_over else sink.senders, within=20)
    finally:
        process.kill()
        await process.wait()
    sink.hang = sink.hang_after_data = None
    async with mailing(world, sink) as owner:
        for _ in range(3):
            assert await passes(owner) == Done(0)
            await world.clock.advance(HOUR)
    assert len(sink.received) == int(is_handed_over)
    assert await waiting(world) == 0
    assert UNKNOWN_AFTER <= HOUR
    assert await states(world) == [MailState.UNKNOWN]
