"""Retention: what was decided about how long an item stays in view, beside the item itself."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base, TenantTable, tenant_reference

DATABASE_NOW = text("lastcall_now()")


class Retention(TenantTable, Base):
    """One row an item, made when somebody or the sweep first acts on it; an item without one has version 0. Its id is
    the item's own, so whoever knows the item finds it, whatever its kind.

    ``version`` rises with every change and is what a person's action is compared with (DEC-05).
    ``archive_version`` counts archives and never falls. The row holds nothing of what the item says, so it
    cannot leak it. Its source is a nullable reference a kind, exactly one of which is set; it goes with its
    source. ``revived_at`` is when it was last brought back: its days count from then.
    """

    __tablename__ = "retention"
    __table_args__ = (
        tenant_reference("join_requests", "join_request_id", on_delete="cascade"),
        tenant_reference("approvals", "approval_id", on_delete="cascade"),
        # What was archived by itself on a day, to be told of.
        Index(
            "retention_idle_idx", "club_id", "archived_at", postgresql_where=text("archived_reason = 'idle'")
        ),
        # For the cascades; the key makes them unique.
        Index(None, "club_id", "join_request_id", postgresql_where=text("join_request_id is not null")),
        Index(None, "club_id", "approval_id", postgresql_where=text("approval_id is not null")),
        CheckConstraint(
            "num_nonnulls(join_request_id, approval_id) = 1 and id = coalesce(join_request_id, approval_id)",
            name="source",
        ),
        CheckConstraint("version >= 1 and archive_version between 0 and version", name="versions"),
        CheckConstraint(
            "case when archived_at is null"
            " then archived_reason is null and archived_by_kind is null and archived_by_person_id is null"
            " else case archived_by_kind"
            " when 'system' then archived_reason = 'idle' and archived_by_person_id is null"
            " when 'person' then archived_reason in ('manual', 'accepted_proposal')"
            " and archived_by_person_id is not null"
            " else false end end",
            name="archived",
        ),
    )

    join_request_id: Mapped[UUID | None]
    approval_id: Mapped[UUID | None]
    keep: Mapped[bool] = mapped_column(server_default=text("false"))
    archived_at: Mapped[datetime | None]
    archived_reason: Mapped[str | None]
    archived_by_kind: Mapped[str | None]
    archived_by_person_id: Mapped[UUID | None] = mapped_column(ForeignKey("people.id"))
    revived_at: Mapped[datetime | None]
    version: Mapped[int] = mapped_column(server_default=text("1"))
    archive_version: Mapped[int] = mapped_column(server_default=text("0"))
    source_activity_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class RetentionRefresh(Base):
    """A club that changed as a whole, until the deadlines of its pending items follow. ``kind`` and ``after_id`` are
    how far the refresh has come; another change begins it anew."""

    __tablename__ = "retention_refreshes"
    __table_args__ = (Index(None, "asked_at", "club_id"),)

    club_id: Mapped[UUID] = mapped_column(ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True)
    asked_at: Mapped[datetime]
    kind: Mapped[str | None]
    after_id: Mapped[UUID | None]
