"""Each mail is tried at most once, after what it tells of is committed, and its row says what became of it."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import pytest
from tests.mail.conftest import FROM, PUBLIC_URL, SAM, a_mail, post, rows, settled

import lastcall.mail.mailer as mailing
import lastcall.mail.smtp as smtp
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.errors import Invalid, Unavailable
from lastcall.mail.mailer import Mailer
from lastcall.mail.messages import Mail
from lastcall.mail.queries import mails
from lastcall.mail.server import mail_server
from lastcall.mail.smtp import Attempt, Outcome
from lastcall.mail.states import UNKNOWN_AFTER, MailState
from lastcall.testing.clock import TestClock
from lastcall.testing.mail import MailSink
from lastcall.testing.quiet import assert_quiet
from lastcall.testing.waiting import eventually

SHORT = timedelta(seconds=0.5)


async def states(database: Database) -> list[MailState]:
    async with database.read() as tx:
        return [one.state for one in await mails(tx, only_trouble=False)]


async def test_a_mail_arrives_as_text_and_html_of_one_content(
    mailer: Mailer, sink: MailSink, database: Database
) -> None:
    await post(database, mailer, a_mail())
    mail = await sink.mail_to(SAM)
    assert (mail.sender, mail.recipients) == ("lastcall@club.example", [SAM])
    assert mail.subject == "Sign in to Lastcall"
    assert (mail.link, mail.path, mail.code) == (f"{PUBLIC_URL}/sign-in/abc", "/sign-in/abc", "K7Q2-9XWM")
    for part in (mail.text, mail.html):
        assert "Somebody asked to sign in with this address." in part
        assert f"{PUBLIC_URL}/sign-in/abc" in part
        assert "K7Q2-9XWM" in part
        assert "It works once, for 15 minutes." in part
    assert await settled(database) == [(SAM, "sent", None)]
    stored = await database.pool.fetchval("select string_agg(t::text, ' ') from outgoing_mail t")
    assert "K7Q2" not in stored
    assert "abc" not in stored


async def test_a_mail_hangs_on_the_transaction_it_tells_of(
    mailer: Mailer, sink: MailSink, database: Database
) -> None:
    async with database.transaction() as tx:
        await mailer.post(tx, a_mail())
        assert await rows(database) == [], "nobody else sees the row yet"
    await sink.mail_to(SAM)
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as tx:
            await mailer.post(tx, a_mail("robin@example.org"))
            _ = 1 / 0
    await post(database, mailer, a_mail("kim@example.org"))
    await sink.mail_to("kim@example.org")
    assert [(row[0], row[1]) for row in await settled(database, 2)] == [
        (SAM, "sent"),
        ("kim@example.org", "sent"),
    ]
    assert len(sink.received) == 2


async def test_a_process_that_ends_in_between_leaves_an_unknown_mail_and_nobody_sends_it(
    database: Database, sink: MailSink, test_clock: TestClock
) -> None:
    dying = Mailer(database, mail_server(sink.url, FROM), PUBLIC_URL)  # its hands never begin
    async with database.transaction() as tx:
        await dying.post(tx, a_mail())
    async with Mailer(database, mail_server(sink.url, FROM), PUBLIC_URL).running() as next_one:
        await post(database, next_one, a_mail("robin@example.org"))
        await sink.mail_to("robin@example.org")
    assert await states(database) == ["sent", "sending"]
    await test_clock.advance(UNKNOWN_AFTER)
    assert await states(database) == ["sent", "unknown"]
    assert sink.to(SAM) == []


async def test_a_refusal_is_a_failure_in_the_servers_words(
    mailer: Mailer, sink: MailSink, database: Database
) -> None:
    sink.refuse_rcpt = "550 5.1.1 no such\x00 user"
    await post(database, mailer, a_mail("first@example.org"))
    await settled(database, 1)
    sink.refuse_rcpt, sink.refuse_data = None, "554 5.7.1 looks like spam"
    await post(database, mailer, a_mail("second@example.org"))
    assert await settled(database, 2) == [
        ("first@example.org", "failed", "550 5.1.1 no such user"),
        ("second@example.org", "failed", "554 5.7.1 looks like spam"),
    ]
    assert sink.received == []


async def test_a_server_that_hangs_before_it_has_the_mail_did_not_take_it(
    mailer: Mailer, sink: MailSink, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp, "ATTEMPT_TIMEOUT", SHORT)
    sink.hang = asyncio.Event()
    await post(database, mailer, a_mail())
    assert await settled(database) == [(SAM, "failed", "the mail server did not answer in time")]
    assert sink.received == []


@pytest.mark.parametrize("how", ["hangs", "is gone"])
async def test_after_the_mail_was_handed_over_silence_is_unknown_and_nothing_is_sent_twice(
    mailer: Mailer, sink: MailSink, database: Database, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(smtp, "ATTEMPT_TIMEOUT", SHORT)
    if how == "hangs":
        sink.hang_after_data = asyncio.Event()
    else:
        sink.drop_after_data = True
    await post(database, mailer, a_mail())
    assert [row[:2] for row in await settled(database)] == [(SAM, "unknown")]
    await mailer.stop()
    assert (len(sink.received), sink.connections) == (1, 1)
    # The twin: an attempt that did not remember the moment would call a mail that arrived a failure.
    monkeypatch.setattr(Attempt, "broken_off", lambda _, why: Outcome(MailState.FAILED, why))
    await mailer.start()
    await post(database, mailer, a_mail("robin@example.org"))
    assert [row[:2] for row in await settled(database, 2)][1] == ("robin@example.org", "failed")
    assert len(sink.to("robin@example.org")) == 1


async def test_a_stop_finishes_what_waits(database: Database, sink: MailSink) -> None:
    mailer = Mailer(database, mail_server(sink.url, FROM), PUBLIC_URL)
    async with mailer.running():
        for number in range(10):
            await post(database, mailer, a_mail(f"p{number}@example.org"))
    assert sorted(one.recipients[0] for one in sink.received) == [f"p{n}@example.org" for n in range(10)]
    assert {row[1] for row in await rows(database)} == {"sent"}


async def test_a_stop_waits_a_limited_time_and_says_what_was_not_sent(
    database: Database, sink: MailSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mailing, "DRAIN", SHORT)
    monkeypatch.setattr(mailing, "HANDS", 1)
    sink.hang = asyncio.Event()
    mailer = Mailer(database, mail_server(sink.url, FROM), PUBLIC_URL)
    await mailer.start()
    async with database.transaction() as tx:
        await mailer.post(tx, a_mail("first@example.org"))
        await mailer.post(tx, a_mail("second@example.org"))
    await eventually(lambda: sink.senders)
    began = time.monotonic()
    await mailer.stop()
    assert time.monotonic() - began < 5
    assert await rows(database) == [
        ("first@example.org", "failed", "the server was stopped"),
        ("second@example.org", "failed", "the server was stopped"),
    ]
    sink.hang, sink.hang_after_data = None, asyncio.Event()
    await mailer.start()
    await post(database, mailer, a_mail("third@example.org"))
    await sink.mail_to("third@example.org")
    await mailer.stop()
    assert (await rows(database))[2] == ("third@example.org", "unknown", "the server was stopped")


async def test_what_a_room_gets_wrong_costs_nobody_elses_mail(
    mailer: Mailer, sink: MailSink, database: Database
) -> None:
    async def fails(_: Transaction) -> Mail | None:
        raise RuntimeError("the database is away")

    async def nothing(_: Transaction) -> Mail | None:
        return None

    async def right(_: Transaction) -> Mail | None:
        return a_mail()

    for number, make in enumerate([fails, nothing] * 4):
        mailer.prepare(f"p{number}@example.org", f"192.0.2.{number}", make)
    mailer.prepare(SAM, "192.0.2.99", right)
    await sink.mail_to(SAM)
    assert [row[0] for row in await settled(database)] == [SAM]


async def test_an_idle_mailer_asks_the_database_nothing(mailer: Mailer, database: Database) -> None:
    async with assert_quiet(database, 1.5):
        pass
    assert mailer.is_configured


async def test_without_a_mail_server_posting_is_nothing_and_a_test_says_what_to_set(
    database: Database,
) -> None:
    mailer = Mailer(database, None, PUBLIC_URL)
    async with mailer.running():
        await post(database, mailer, a_mail())
        mailer.prepare(SAM, None, lambda _: pytest.fail("nothing is prepared"))
        with pytest.raises(Unavailable, match="no mail server"):
            await mailer.send_now(a_mail())
    assert not mailer.is_configured
    assert await rows(database) == []


async def test_a_malformed_address_stops_whoever_posts(mailer: Mailer, database: Database) -> None:
    with pytest.raises(Invalid, match="not an e-mail address"):
        async with database.transaction() as tx:
            await mailer.post(tx, a_mail("sam@example.org\nBcc: robin@example.org"))
    assert await rows(database) == []
