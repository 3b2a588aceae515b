"""A mail server that keeps what it gets, and a mailer that hands over to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from lastcall.db.database import Database
from lastcall.mail.mailer import Mailer
from lastcall.mail.messages import Action, Mail
from lastcall.mail.server import mail_server
from lastcall.testing.mail import MailSink
from lastcall.testing.waiting import eventually

FROM = "Night Shift <lastcall@club.example>"
PUBLIC_URL = "https://lastcall.club.example"
SAM = "sam@example.org"


def a_mail(to: str = SAM, **changes: Any) -> Mail:
    given: dict[str, Any] = {
        "kind": "sign_in",
        "to": to,
        "subject": "Sign in to Lastcall",
        "paragraphs": ("Somebody asked to sign in with this address.",),
        "action": Action("Sign in", "/sign-in/abc"),
        "code": "K7Q2-9XWM",
        "closing": ("It works once, for 15 minutes.",),
    }
    return Mail(**given | changes)


async def post(database: Database, mailer: Mailer, mail: Mail) -> None:
    """Post a mail in a transaction of its own."""
    async with database.transaction() as tx:
        await mailer.post(tx, mail)


async def rows(database: Database) -> list[tuple[str, str, str | None]]:
    """The ledger: address, state and error, in the order of writing."""
    found = await database.pool.fetch("select address, state, error from outgoing_mail order by id")
    return [(row["address"], row["state"], row["error"]) for row in found]


async def settled(database: Database, number: int = 1) -> list[tuple[str, str, str | None]]:
    """The ledger, once that many mails have an outcome."""
    over = "select count(*) >= $1 from outgoing_mail where state <> 'sending'"
    await eventually(lambda: database.pool.fetchval(over, number), within=15)
    return await rows(database)


@pytest.fixture
async def sink() -> AsyncIterator[MailSink]:
    async with MailSink() as sink:
        yield sink


@pytest.fixture
async def mailer(database: Database, sink: MailSink) -> AsyncIterator[Mailer]:
    async with Mailer(database, mail_server(sink.url, FROM), PUBLIC_URL).running() as mailer:
        yield mailer
