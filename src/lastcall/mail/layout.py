"""From what a room says to a message: text and HTML of one content, in one layout."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lastcall.db.ids import LENGTH, decode_id, encode_id
from lastcall.errors import Invalid
from lastcall.mail.addresses import valid_address
from lastcall.mail.messages import Mail
from lastcall.mail.words import one_line, say

SUBJECT_LENGTH = 150  # characters; mail programs show about sixty
TEXT_WIDTH = 72  # characters of a line of the text part

_MESSAGE_ID = re.compile(rf"<lastcall\.([0-9a-z]{{{LENGTH}}})@[^<>\s]+>")
_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True)
class Layout:
    """What all mails of one server have in common."""

    sender: Address
    public_url: str

    def render(self, mail: Mail, mail_id: UUID, now: datetime) -> EmailMessage:
        """The whole message. Raises ``Invalid`` for an address that mail is not sent to, and ``ValueError`` for
        an action that leads elsewhere.
        """
        message = EmailMessage(policy=SMTP)
        message["From"] = self.sender
        message["To"] = Address(addr_spec=valid_address(mail.to))
        message["Subject"] = _subject(mail.subject)
        message["Date"] = now
        message["Message-ID"] = f"<lastcall.{encode_id(mail_id)}@{self.sender.domain}>"
        # No answer of a machine to this one (RFC 3834).
        message["Auto-Submitted"] = "auto-generated"
        url = self._own(mail.action.path) if mail.action else None
        message.set_content(self._text(mail, url), cte="quoted-printable")
        message.add_alternative(self._html(mail, url), subtype="html", cte="quoted-printable")
        return message

    def _own(self, path: str) -> str:
        parts = urlsplit(path)
        is_ours = path.startswith("/") and not path.startswith("//") and not parts.netloc
        if not is_ours or "\\" in path or not path.isprintable():
            raise ValueError("A mail leads to a path of our own.")
        return self.public_url.rstrip("/") + path

    def _text(self, mail: Mail, url: str | None) -> str:
        parts = [textwrap.fill(one, TEXT_WIDTH, break_long_words=False) for one in mail.paragraphs]
        if mail.action and url:
            parts.append(f"{mail.action.label}:\n{url}")
        if mail.code:
            parts.append(f"    {mail.code}")
        parts += [textwrap.fill(one, TEXT_WIDTH, break_long_words=False) for one in mail.closing]
        return "\n\n".join([*parts, f"-- \n{self._footer}"]) + "\n"

    def _html(self, mail: Mail, url: str | None) -> str:
        return _ENVIRONMENT.get_template("mail.html").render(mail=mail, url=url, footer=self._footer)

    @property
    def _footer(self) -> str:
        return f"{say('Sent by Lastcall at')} {urlsplit(self.public_url).netloc}"


def id_of_message(text: str) -> UUID | None:
    """The ledger's id of the mail whose Message-ID stands in ``text``, if one of ours does."""
    found = _MESSAGE_ID.search(text)
    try:
        return decode_id(found[1]) if found else None
    except Invalid:
        return None


def _subject(text: str) -> str:
    """One line, and nothing in it that a mail program would decode into something else."""
    plain = " ".join(one_line(text).split())
    while "=?" in plain:
        plain = plain.replace("=?", "= ?")
    return plain[:SUBJECT_LENGTH]
