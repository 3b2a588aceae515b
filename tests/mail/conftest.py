"""A mail server that keeps what it gets, and a mailer that hands over to it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lastcall.db.database import Database
from lastcall.mail.mailer import Mailer
from lastcall.mail.server import mail_server
from lastcall.testing.mail import MailSink

FROM = "Night Shift <lastcall@club.example>"
PUBLIC_URL = "https://lastcall.club.example"


@pytest.fixture
async def sink() -> AsyncIterator[MailSink]:
    async with MailSink() as sink:
        yield sink


@pytest.fixture
async def mailer(database: Database, sink: MailSink) -> AsyncIterator[Mailer]:
    async with Mailer(database, mail_server(sink.url, FROM), PUBLIC_URL).running() as mailer:
        yield mailer
