"""What a person put out of their own sight. It changes nothing for anybody else."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import PRIVATE, Base, TenantTable


class InboxDismissal(TenantTable, Base):
    """One item that one person does not want to see: until a time (``until``, a snooze), or, without one, until
    something happens to it after ``activity_at``, the activity that they had seen.

    ``item_id`` is the item's own id, of whatever source; ids are unique over all of them. An item that waits no more
    leaves its row behind until the person next puts something away.
    """

    __tablename__ = "inbox_dismissals"
    __table_args__ = (
        UniqueConstraint("club_id", "person_id", "item_id"),
        Index(None, "person_id"),
    )

    club_id: Mapped[UUID] = mapped_column(
        ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True, sort_order=-2
    )
    person_id: Mapped[UUID] = mapped_column(ForeignKey("people.id"), info={PRIVATE: True})
    item_id: Mapped[UUID] = mapped_column(info={PRIVATE: True})
    until: Mapped[datetime | None] = mapped_column(info={PRIVATE: True})
    activity_at: Mapped[datetime] = mapped_column(info={PRIVATE: True})
    created_at: Mapped[datetime] = mapped_column(server_default=text("lastcall_now()"), info={PRIVATE: True})
