"""One attempt to hand one mail to the mail server, and what is known about it afterwards."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import aiosmtplib

from lastcall.mail.server import MailServer, Security
from lastcall.mail.states import MailState
from lastcall.mail.words import one_line

ATTEMPT_TIMEOUT = timedelta(seconds=30)
"""How long an attempt may take in all, and so how long a mail server that hangs keeps one of few hands busy."""
ERROR_LENGTH = 300  # characters kept of what a mail server said


@dataclass(frozen=True)
class Outcome:
    """``error`` says why not, in the mail server's words where it had some."""

    state: MailState
    error: str | None = None


class Attempt:
    """Connect, say who and to whom, hand over. Made once."""

    def __init__(self, server: MailServer, recipient: str, message: bytes) -> None:
        self._server = server
        self._recipient = recipient
        self._message = message
        self._is_handed_over = False

    async def make(self) -> Outcome:
        """What became of it. Never raises for what a mail server or the network does."""
        try:
            async with asyncio.timeout(ATTEMPT_TIMEOUT.total_seconds()):
                await self._deliver()
        except aiosmtplib.SMTPResponseException as error:
            # The server spoke: whatever it refused, it did not take the mail.
            return Outcome(MailState.FAILED, plain(f"{error.code} {error.message}"))
        except TimeoutError:
            return self.broken_off("the mail server did not answer in time")
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            return self.broken_off(str(error) or type(error).__name__)
        return Outcome(MailState.SENT)

    def broken_off(self, why: str) -> Outcome:
        """What is known of an attempt that ended at this point without an answer."""
        return Outcome(MailState.UNKNOWN if self._is_handed_over else MailState.FAILED, plain(why))

    async def _deliver(self) -> None:
        client = aiosmtplib.SMTP(
            hostname=self._server.host,
            port=self._server.port,
            use_tls=self._server.security is Security.TLS,
            # Never "where the server offers it": whoever sits in between would take the offer out.
            start_tls=self._server.security is Security.STARTTLS,
            username=self._server.username,
            password=self._server.password,
            local_hostname=self._server.sender.domain,
            timeout=ATTEMPT_TIMEOUT.total_seconds(),
        )
        try:
            await client.connect()
            await client.mail(self._server.sender.addr_spec)
            await client.rcpt(self._recipient)
            self._is_handed_over = True
            await client.data(self._message)
        finally:
            # Without QUIT: its answer could only be waited for, and it changes nothing.
            client.close()


def plain(text: str) -> str:
    """What another server said, as one line that can be stored and shown."""
    return " ".join(one_line(text).split())[:ERROR_LENGTH]
