"""The ledger of outgoing mail: one row an attempt, written before it is made. Bodies are kept nowhere, because
they hold tokens.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base
from lastcall.mail.states import MailState

IN_TROUBLE = "state <> 'sent' or bounced_at is not null"


class OutgoingMail(Base):
    """One mail and what became of it. ``sending`` for over an hour reads as unknown (``states``)."""

    __tablename__ = "outgoing_mail"
    __table_args__ = (
        CheckConstraint(f"state in ({', '.join(repr(str(one)) for one in MailState)})", name="state"),
        CheckConstraint("(state = 'sent') = (sent_at is not null)", name="sent_at"),
        Index(None, "created_at", "id"),
        Index("outgoing_mail_trouble_idx", "created_at", "id", postgresql_where=text(IN_TROUBLE)),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    kind: Mapped[str]
    address: Mapped[str]
    state: Mapped[str] = mapped_column(server_default=text("'sending'"))
    error: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=text("lastcall_now()"))
    sent_at: Mapped[datetime | None]
    bounced_at: Mapped[datetime | None]
