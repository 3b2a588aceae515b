"""A mail server on a loopback port that keeps what it is given, and does wrong what a test tells it to.

async with MailSink() as sink:
    settings = Settings(mail_url=sink.url, mail_from="Lastcall <lastcall@club.example>")
    ...
    mail = await sink.mail_to("sam@example.org")
    assert mail.link in mail.text
"""

from __future__ import annotations

import asyncio
import email
import email.policy
import re
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Self
from urllib.parse import urlsplit

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from lastcall.testing.waiting import WITHIN, eventually

_URL = re.compile(r"https?://\S+")
_CODE = re.compile(r"^    (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Received:
    """One mail as the server got it."""

    sender: str
    recipients: list[str]
    raw: bytes

    @property
    def message(self) -> EmailMessage:
        return email.message_from_bytes(self.raw, policy=email.policy.default)

    @property
    def subject(self) -> str:
        return str(self.message["Subject"])

    @property
    def text(self) -> str:
        return self._part("plain")

    @property
    def html(self) -> str:
        return self._part("html")

    @property
    def link(self) -> str:
        """The first address in the text. ``AssertionError`` without one."""
        found = _URL.search(self.text)
        assert found, f"no link in {self.text!r}"
        return found[0]

    @property
    def path(self) -> str:
        """The link's path, which is what a test asks the server for."""
        return urlsplit(self.link).path

    @property
    def code(self) -> str:
        """The code in the text. ``AssertionError`` without one."""
        found = _CODE.search(self.text)
        assert found, f"no code in {self.text!r}"
        return found[1]

    def _part(self, kind: str) -> str:
        part = self.message.get_body((kind,))
        assert part is not None, f"no {kind} part"
        return str(part.get_content()).replace("\r\n", "\n")


class MailSink:
    """``received`` is what it took, ``senders`` who began to hand something over.

    ``refuse_rcpt``, ``refuse_data``: what to answer instead of taking the mail (``550 no such user``).

    ``drop_after_data``: cut the connection after the mail arrived, without an answer. ``hang`` (an event): say
    nothing at RCPT until it is set; ``hang_after_data`` likewise once the mail has arrived. ``tls``: offer
    STARTTLS with this context. ``logins``: the user and the password that it wants, with or without encryption.
    """

    def __init__(self, *, tls: ssl.SSLContext | None = None, logins: tuple[str, str] | None = None) -> None:
        self.received: list[Received] = []
        self.senders: list[str] = []
        self.connections = 0
        self.refuse_rcpt: str | None = None
        self.refuse_data: str | None = None
        self.drop_after_data = False
        self.hang: asyncio.Event | None = None
        self.hang_after_data: asyncio.Event | None = None
        self._tls = tls
        self._logins = logins
        self._server: asyncio.Server
        self._protocols: list[SMTP] = []

    @property
    def port(self) -> int:
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """For ``LASTCALL_MAIL_URL``."""
        return f"smtp://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for one in self._protocols:
            _cut(one)
        await self._server.wait_closed()

    def to(self, address: str) -> list[Received]:
        """What came for ``address`` so far."""
        return [one for one in self.received if address in one.recipients]

    async def mail_to(self, address: str, *, number: int = 1, within: float = WITHIN) -> Received:
        """The mail that comes ``number``-th for ``address``. ``AssertionError`` when there is none in time."""
        found: list[Received] = await eventually(
            lambda: self.to(address)[number - 1 :],
            within=within,
            message=f"mail {number} for {address} did not come",
        )
        return found[0]

    # What aiosmtpd calls.

    async def handle_MAIL(  # noqa: N802
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        self.senders.append(address)
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(  # noqa: N802
        self, _server: SMTP, session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if self._logins is not None and not session.authenticated:
            return "530 log in first"
        if self.hang is not None:
            await self.hang.wait()
        if self.refuse_rcpt:
            return self.refuse_rcpt
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.refuse_data:
            return self.refuse_data
        content = envelope.content
        assert isinstance(content, bytes)
        self.received.append(Received(str(envelope.mail_from), list(envelope.rcpt_tos), content))
        if self.hang_after_data is not None:
            await self.hang_after_data.wait()
        if self.drop_after_data:
            _cut(server)
        return "250 OK"

    def _log_in(
        self, _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: object
    ) -> AuthResult:
        is_right = isinstance(data, LoginPassword) and self._logins == (
            data.login.decode(),
            data.password.decode(),
        )
        return AuthResult(success=is_right)

    def _protocol(self) -> SMTP:
        self.connections += 1
        one = SMTP(
            self,
            hostname="sink.example",
            enable_SMTPUTF8=True,
            tls_context=self._tls,
            authenticator=None if self._logins is None else self._log_in,
            auth_require_tls=self._logins is None,
        )
        self._protocols.append(one)
        return one


def _cut(connection: SMTP) -> None:
    transport = connection.transport
    if isinstance(transport, asyncio.Transport):
        transport.abort()
