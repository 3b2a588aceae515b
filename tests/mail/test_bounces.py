"""Delivery reports find the mail they are about, and say nothing about any other."""

from __future__ import annotations

from uuid import UUID

import pytest
from tests.mail.conftest import SAM, a_mail, post, settled

from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id
from lastcall.errors import Invalid, NotFound
from lastcall.mail.bounces import REPORT_LIMIT, read_bounce, record_bounce
from lastcall.mail.mailer import Mailer
from lastcall.mail.queries import mails
from lastcall.testing.mail import MailSink

REPORT = """\
From: MAILER-DAEMON@smtp.example.org
To: lastcall@club.example
Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="B"

--B
Content-Type: text/plain

I'm sorry to have to inform you.
--B
Content-Type: message/delivery-status

Reporting-MTA: dns; smtp.example.org

Final-Recipient: rfc822; sam@example.org
Action: {action}
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 <sam@example.org>: user
 unknown{cruel}

--B
Content-Type: text/rfc822-headers

Message-ID: {message_id}
To: sam@example.org
--B--
"""


def report(mail_id: UUID | str, action: str = "failed", cruel: str = "") -> bytes:
    named = mail_id if isinstance(mail_id, str) else f"<lastcall.{encode_id(mail_id)}@club.example>"
    return REPORT.format(message_id=named, action=action, cruel=cruel).encode()


async def test_a_report_marks_the_mail_that_it_is_about(
    mailer: Mailer, sink: MailSink, database: Database
) -> None:
    await post(database, mailer, a_mail())
    await post(database, mailer, a_mail("robin@example.org"))
    await settled(database, 2)
    bounce = read_bounce(report(str((await sink.mail_to(SAM)).message["Message-ID"])))
    assert bounce.is_final
    assert await record_bounce(database, bounce) == SAM
    async with database.read() as tx:
        trouble = await mails(tx, only_trouble=True)
        first_page = await mails(tx, only_trouble=False, limit=1)
        second_page = await mails(tx, only_trouble=False, after=first_page[-1].cursor)
    assert [(one.address, one.state, one.error) for one in trouble] == [
        (SAM, "sent", "5.1.1 550 5.1.1 <sam@example.org>: user unknown")
    ]
    assert trouble[0].bounced_at is not None
    assert {one.address for one in (*first_page, *second_page)} == {SAM, "robin@example.org"}
    with pytest.raises(NotFound, match="no row of"):
        await record_bounce(database, read_bounce(report(new_id())))


@pytest.mark.parametrize("action", ["delayed", "delivered", "relayed", "expanded"])
def test_a_report_of_anything_else_is_not_final(action: str) -> None:
    assert not read_bounce(report(new_id(), action)).is_final


def test_what_a_foreign_server_says_is_kept_as_one_short_plain_line() -> None:
    reason = read_bounce(report(new_id(), cruel="\n \x1b[31m<b>\u202e" + "x" * 5000)).reason
    assert len(reason) <= 300
    assert reason.isprintable()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xfe not a mail",
        b"Subject: Re: sign in\n\nthanks!",
        report("<something@else.example>"),
        report(new_id()).replace(b"message/delivery-status", b"text/plain"),
        report(new_id()).replace(b"Action", b"X-Action"),
        report(new_id()) + b"x" * REPORT_LIMIT,
    ],
)
def test_anything_else_is_refused_in_a_sentence(raw: bytes) -> None:
    with pytest.raises(Invalid, match="no delivery report"):
        read_bounce(raw)
