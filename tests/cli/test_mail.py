"""``lastcall mail``: the real command against a real mail server that keeps what it gets."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from typing import Any

from tests.mail.test_bounces import report

from lastcall.testing.mail import MailSink

Start = Callable[..., "subprocess.Popen[str]"]
SAM = "sam@example.org"


async def run(start: Start, *arguments: str, given: str = "", **environment: Any) -> tuple[int, str]:
    """The command in a process of its own, while this one goes on being its mail server."""
    process = start("mail", *arguments, **environment)
    out, err = await asyncio.to_thread(process.communicate, given, 60)
    return process.returncode, out + err


async def test_mail_is_tried_listed_and_marked_as_bounced(start: Start, database_url: str) -> None:
    async with MailSink() as sink:
        settings = {
            "DATABASE_URL": database_url,
            "LASTCALL_MAIL_URL": sink.url,
            "LASTCALL_MAIL_FROM": "lastcall@club.example",
        }
        status, said = await run(start, "test", SAM, **settings)
        assert (status, "took the mail" in said) == (0, True)
        message_id = str((await sink.mail_to(SAM)).message["Message-ID"])
        sink.refuse_rcpt = "550 no such user"
        status, said = await run(start, "test", "robin@example.org", **settings)
        assert (status, "was not sent: 550 no such user." in said) == (1, True)
        status, said = await run(start, "bounced", given=report(message_id).decode(), **settings)
        assert (status, "Marked as bounced: 5.1.1" in said) == (0, True)
        status, said = await run(start, "list", "--trouble", **settings)
        assert [line.split()[2:5] for line in said.splitlines()] == [
            ["failed", "test", "robin@example.org"],
            ["bounced", "test", SAM],
        ]
        status, said = await run(start, "test", SAM, **settings | {"LASTCALL_MAIL_URL": ""})
        assert (status, "LASTCALL_MAIL_URL" in said) == (1, True)
