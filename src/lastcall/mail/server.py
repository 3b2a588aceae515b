"""The mail server that mail is handed to, as the settings ``mail_url`` and ``mail_from`` name it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.policy import default
from enum import StrEnum
from urllib.parse import unquote, urlsplit

from lastcall.errors import Invalid
from lastcall.mail.addresses import valid_address
from lastcall.mail.words import one_line

_EXAMPLE = "It looks like smtp+starttls://user:password@smtp.example.org:587."


class Security(StrEnum):
    """The scheme of ``mail_url``: how the connection is protected."""

    PLAIN = "smtp"
    """Not at all: for a mail server on this computer."""
    STARTTLS = "smtp+starttls"
    """Encrypted before anything is said; a server that does not offer it gets nothing."""
    TLS = "smtps"


_PORTS = {Security.PLAIN: 25, Security.STARTTLS: 587, Security.TLS: 465}


@dataclass(frozen=True)
class MailServer:
    """Where mail goes out and under which name."""

    host: str
    port: int
    security: Security
    sender: Address
    """Who it comes from; bounces go there too."""
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def shown(self) -> str:
        """The server without user and password."""
        return f"{self.security}://{self.host}:{self.port}"


def mail_server(mail_url: str | None, mail_from: str | None) -> MailServer | None:
    """The server that the two settings name, ``None`` without ``mail_url``. Raises ``Invalid``."""
    if mail_url is None:
        return None
    try:
        parts = urlsplit(mail_url)
        security, port = Security(parts.scheme), parts.port
    except ValueError:
        raise _wrong("mail_url", "is no address of a mail server", _EXAMPLE) from None
    if not parts.hostname or parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise _wrong("mail_url", "is no address of a mail server", _EXAMPLE)
    if bool(parts.username) != bool(parts.password):
        raise _wrong("mail_url", "has only one of user and password", _EXAMPLE)
    if parts.password and security is Security.PLAIN and not _is_here(parts.hostname):
        raise _wrong(
            "mail_url", "would send its password unencrypted", "Use smtp+starttls:// or smtps:// instead."
        )
    return MailServer(
        host=parts.hostname,
        port=port or _PORTS[security],
        security=security,
        sender=_sender(mail_from),
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
    )


def _sender(mail_from: str | None) -> Address:
    advice = "It looks like Lastcall <lastcall@example.org>."
    if mail_from is None:
        raise _wrong("mail_from", "is needed with mail_url", advice)
    given = default.header_factory("From", one_line(mail_from)).addresses
    try:
        if len(given) != 1:
            raise ValueError
        return Address(given[0].display_name or "Lastcall", addr_spec=valid_address(given[0].addr_spec))
    except (Invalid, ValueError):
        raise _wrong("mail_from", f"is no sender, but {mail_from!r}", advice) from None


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _wrong(setting: str, what: str, advice: str) -> Invalid:
    return Invalid("wrong_setting", f"The setting {setting} {what}.", advice=advice, field=setting)
