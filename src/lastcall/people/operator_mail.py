"""Outgoing mail for operators: it holds other people's addresses, so only they see it."""

from __future__ import annotations

from collections.abc import Sequence

from lastcall.db.cursor import Cursor
from lastcall.db.transaction import Reader
from lastcall.mail.queries import PAGE_MOST, MailView, mails
from lastcall.people.actor import Actor
from lastcall.people.holding import require_operator_now


async def mail_in_trouble(
    tx: Reader, actor: Actor | None, after: Cursor | None = None, limit: int = PAGE_MOST
) -> Sequence[MailView]:
    """Mails that failed, bounced or are unknown, the newest first. Raises ``NotAllowed`` for others."""
    await require_operator_now(tx, actor)
    return await mails(tx, only_trouble=True, after=after, limit=limit)
