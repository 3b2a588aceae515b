"""What staff prepare before anything is queued: lists of recipients and drafts of posts."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Index, Text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import PRIVATE, Base, TenantTable, tenant_reference
from lastcall.operations.tables import DATABASE_NOW

NAME_MOST = 80
"""Characters of the name of a recipient list."""
RECIPIENTS_MOST = 100
"""People on one list: as many as a request holds."""


class RecipientList(TenantTable, Base):
    """People who are invited together again and again, by their VRChat ids in small letters, in the order given
    (ENQ-14). ``revision`` rises with each change; who changes it names the one they saw.
    """

    __tablename__ = "recipient_lists"
    __table_args__ = (
        ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        CheckConstraint(f"char_length(name) between 1 and {NAME_MOST}", name="name"),
        CheckConstraint(f"cardinality(user_ids) between 1 and {RECIPIENTS_MOST}", name="user_ids"),
        CheckConstraint("revision >= 1", name="revision"),
        Index(None, "club_id", "updated_at", "id"),
    )

    name: Mapped[str]
    user_ids: Mapped[list[str]] = mapped_column(ARRAY(Text))
    revision: Mapped[int]
    created_by: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    updated_by: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class PostDraft(TenantTable, Base):
    """A post that somebody writes, with when it is to be published; nobody but them sees it.

    The browser chooses its id, so that saving it a second time makes no second one. Its ``request_id`` is what it was
    queued as: from then on it stays as it is.
    """

    __tablename__ = "post_drafts"
    __table_args__ = (
        ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        tenant_reference("operation_requests", "request_id"),
        CheckConstraint("revision >= 1", name="revision"),
        Index(None, "club_id", "created_by", "updated_at", "id"),
    )

    created_by: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    fields: Mapped[dict[str, Any]] = mapped_column(info={PRIVATE: True})
    schedule: Mapped[dict[str, Any]] = mapped_column(info={PRIVATE: True})
    revision: Mapped[int]
    request_id: Mapped[UUID | None]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
