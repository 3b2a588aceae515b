"""The rows of outgoing mail, as the mailer writes them."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import insert

from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.mail.smtp import Outcome
from lastcall.mail.tables import OutgoingMail

# Only an attempt that has no outcome yet gets one.
_SETTLE = """
update outgoing_mail
set state = $2, error = $3, sent_at = case when $2 = 'sent' then (select lastcall_now()) end
where id = $1 and state = 'sending'
"""


async def begin(tx: Transaction, mail_id: UUID, kind: str, address: str) -> None:
    """Say that an attempt is about to be made. From the commit on it is made at most once, by this process."""
    await tx.execute(insert(OutgoingMail).values(id=mail_id, kind=kind, address=address))


async def settle(db: Database, mail_id: UUID, outcome: Outcome) -> None:
    """Say what became of it."""
    await db.pool.execute(_SETTLE, mail_id, outcome.state, outcome.error)
