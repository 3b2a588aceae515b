"""What was created under which idempotency key."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base


class IdempotencyKey(Base):
    """A creating call that was done: its answer, for the same call sent again. A key belongs to its person,
    and ``digest`` tells the same call from another. ``answer`` is JSON, and holds no secret: what is shown
    once is null in it. It is null itself only while the call is under way, which nobody else sees.
    """

    __tablename__ = "idempotency_keys"
    __table_args__ = (
        CheckConstraint("octet_length(digest) = 32", name="digest"),
        Index(None, "created_at"),
    )

    person_id: Mapped[UUID] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[bytes]
    answer: Mapped[bytes | None]
    created_at: Mapped[datetime] = mapped_column(server_default=text("lastcall_now()"))
