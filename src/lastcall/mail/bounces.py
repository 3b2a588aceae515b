"""Delivery reports (RFC 3464) that come back to ``mail_from``, and which mail of ours they are about."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from uuid import UUID

import structlog

from lastcall.db.database import Database
from lastcall.errors import Invalid, NotFound
from lastcall.mail.layout import id_of_message
from lastcall.mail.smtp import plain

REPORT_LIMIT = 1024 * 1024  # bytes; a report repeats at most the mail, which has a few thousand

# A second report about the same mail keeps the time of the first.
_BOUNCED = """
update outgoing_mail set bounced_at = coalesce(bounced_at, (select lastcall_now())), error = $2
where id = $1 returning address
"""

log = structlog.get_logger()


@dataclass(frozen=True)
class Bounce:
    """``is_final``: the mail will not arrive. Else it is late, or did arrive, and nothing is to be done."""

    mail_id: UUID
    is_final: bool
    reason: str


def read_bounce(raw: bytes) -> Bounce:
    """What a report says. Raises ``Invalid`` for anything that is none, or is about no mail of ours."""
    if len(raw) > REPORT_LIMIT:
        raise _no_report(f"It is larger than {REPORT_LIMIT // 1024} KiB.")
    # Reports are made by all kinds of programs, so the lenient parser: it takes what it can read.
    message = email.message_from_bytes(raw, policy=email.policy.compat32)
    blocks = [block for block in _status_blocks(message) if block.get("Action")]
    if not blocks:
        raise _no_report("It has no part of the type message/delivery-status.")
    mail_id = id_of_message(raw.decode("latin-1"))
    if mail_id is None:
        raise _no_report("It does not name a Message-ID of a mail that Lastcall sent.")
    failed = [block for block in blocks if str(block["Action"]).strip().lower() == "failed"]
    block = (failed or blocks)[0]
    said = str(block.get("Diagnostic-Code", "")).partition(";")[2]
    return Bounce(mail_id, bool(failed), plain(f"{block.get('Status', '')} {said}") or "no reason given")


async def record_bounce(db: Database, bounce: Bounce) -> str:
    """Write a final bounce into the ledger; answers the address. Raises ``NotFound`` for a mail it has not."""
    address = await db.pool.fetchval(_BOUNCED, bounce.mail_id, bounce.reason)
    if address is None:
        raise NotFound("mail_unknown", "The report is about a mail that this server has no row of.")
    log.warning("mail_bounced", mail=str(bounce.mail_id), reason=bounce.reason)
    return str(address)


def _status_blocks(message: Message) -> Iterator[Message]:
    for part in message.walk():
        if part.get_content_type() == "message/delivery-status":
            payload = part.get_payload()
            if isinstance(payload, list):
                yield from (block for block in payload if isinstance(block, Message))


def _no_report(why: str) -> Invalid:
    return Invalid(
        "not_a_delivery_report",
        f"This is no delivery report that can be used. {why}",
        advice="Hand over the whole message, as the mail server delivered it.",
    )
