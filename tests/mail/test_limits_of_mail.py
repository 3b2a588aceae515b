"""A thousand mails asked for at once: exactly as many leave as the limits say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.mail.conftest import FROM, PUBLIC_URL, SAM, a_mail, post, rows

import lastcall.mail.limits as limits
from lastcall.db.database import Database
from lastcall.db.limits import Limit
from lastcall.db.transaction import Transaction
from lastcall.mail.mailer import Mailer
from lastcall.mail.messages import Mail
from lastcall.mail.server import mail_server
from lastcall.testing.mail import MailSink

HOUR = timedelta(hours=1)
THOUSAND = 1000


def ask(mailer: Mailer, to: str, source: str | None) -> None:
    async def make(_: Transaction) -> Mail | None:
        return a_mail(to)

    mailer.prepare(to, source, make)


def person(number: int) -> str:
    return f"p{number}@example.org"


def place(number: int) -> str:
    return f"10.0.{number // 250}.{number % 250}"


@pytest.mark.parametrize(
    ("to", "source", "sent", "statements"),
    [
        (lambda _: SAM, place, limits.PER_ADDRESS.count, 2),
        (person, lambda _: "192.0.2.1", limits.PER_SOURCE.count, 1),
        (person, lambda n: f"2001:db8::{n:x}", limits.PER_SOURCE.count, 1),
    ],
    ids=["to one address", "from one address", "from one network of IPv6"],
)
async def test_of_a_thousand_the_limit_leaves_and_a_refusal_costs_the_same_each_time(
    mailer: Mailer,
    sink: MailSink,
    database: Database,
    to: Callable[[int], str],
    source: Callable[[int], str],
    sent: int,
    statements: int,
) -> None:
    for number in range(THOUSAND // 2):
        ask(mailer, to(number), source(number))
    await mailer.stop()  # which waits until all of them are settled
    assert (len(sink.received), len(await rows(database))) == (sent, sent)
    before = database.statements
    for number in range(THOUSAND // 2, THOUSAND):
        ask(mailer, to(number), source(number))
    await mailer.start()
    await mailer.stop()
    assert (len(sink.received), sink.connections) == (sent, sent)
    assert database.statements - before == THOUSAND // 2 * statements


async def test_the_whole_server_sends_as_many_as_it_may_and_still_tells_people_of_their_accounts(
    database: Database, sink: MailSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes share the limit. Were notices counted with the rest, using that up would silence them."""
    monkeypatch.setattr(limits, "WHOLE_SERVER", Limit("mail_server", 30, HOUR))
    both = [Mailer(database, mail_server(sink.url, FROM), PUBLIC_URL) for _ in range(2)]
    for mailer in both:
        await mailer.start()
    for number in range(200):
        ask(both[number % 2], person(number), place(number))
    await asyncio.gather(*(mailer.stop() for mailer in both))
    assert len(sink.received) == 30
    notice = a_mail(kind="passkey_added", is_security=True)
    await both[0].start()
    async with database.transaction() as tx:
        await both[0].post(tx, notice)
        await both[0].post(tx, a_mail("robin@example.org", kind="invite"))
    await sink.mail_to(SAM)
    await both[0].stop()
    assert len(sink.received) == 31
    assert (await rows(database))[-1] == ("robin@example.org", "failed", "over the limit")
    # The twin: counted with the rest, the notice would not have left either.
    monkeypatch.setattr(limits, "SECURITY_WHOLE_SERVER", limits.WHOLE_SERVER)
    await both[0].start()
    await post(database, both[0], notice)
    await both[0].stop()
    assert len(sink.received) == 31


async def test_who_is_over_the_limit_cannot_use_up_what_an_address_has_left(
    mailer: Mailer, sink: MailSink
) -> None:
    for number in range(limits.PER_SOURCE.count):
        ask(mailer, person(number), "192.0.2.1")
    for _ in range(20):
        ask(mailer, SAM, "192.0.2.1")
    await mailer.stop()
    assert sink.to(SAM) == []
    ask(mailer, SAM.upper(), "192.0.2.2")
    await mailer.start()
    await sink.mail_to(SAM.upper())


async def test_strangers_cannot_keep_a_code_from_somebody_who_is_signed_in(
    mailer: Mailer, sink: MailSink, database: Database
) -> None:
    for number in range(20):
        ask(mailer, SAM, place(number))
    await mailer.stop()
    assert len(sink.to(SAM)) == limits.PER_ADDRESS.count
    await post(database, mailer, a_mail(kind="step_up", source="192.0.2.77"))
    await mailer.start()
    await sink.mail_to(SAM, number=limits.PER_ADDRESS.count + 1)
