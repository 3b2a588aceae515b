"""What became of mails, for those who run the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from lastcall.db.cursor import LAST, Cursor
from lastcall.db.transaction import Reader
from lastcall.mail.states import UNKNOWN_AFTER, MailState
from lastcall.mail.tables import IN_TROUBLE

PAGE_MOST = 100  # rows of one page at most

_PAGE = """
select id, kind, address, error, created_at, bounced_at,
    case when state = 'sending' and created_at <= (select lastcall_now()) - $3::interval then 'unknown'
         else state end as state
from outgoing_mail
where (created_at, id) < ($1, $2) {only}
order by created_at desc, id desc limit $4
"""
_ALL = _PAGE.format(only="")
_TROUBLE = _PAGE.format(only=f"and ({IN_TROUBLE})")


@dataclass(frozen=True)
class MailView:
    """One mail as an operator sees it; ``state`` is what it reads as now."""

    id: UUID
    kind: str
    address: str
    state: MailState
    error: str | None
    created_at: datetime
    bounced_at: datetime | None

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.created_at, self.id)


async def mails(
    tx: Reader, *, only_trouble: bool, after: Cursor | None = None, limit: int = PAGE_MOST
) -> Sequence[MailView]:
    """The newest mails first. ``only_trouble``: those that bounced or of which nobody knows that they left."""
    start = after or LAST
    rows = await tx.raw.fetch(
        _TROUBLE if only_trouble else _ALL, start.time, start.id, UNKNOWN_AFTER, min(limit, PAGE_MOST + 1)
    )
    return [
        MailView(
            row["id"],
            row["kind"],
            row["address"],
            MailState(row["state"]),
            row["error"],
            row["created_at"],
            row["bounced_at"],
        )
        for row in rows
    ]
