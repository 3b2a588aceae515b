"""Invites and join requests."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base, TenantTable, tenant_reference

DATABASE_NOW = text("lastcall_now()")
PENDING_PERSON = "status = 'pending_approval' and subject_kind = 'person'"
DUE_INDEX = "join_requests_archive_due_at_idx"
DUE_INDEX_WHERE = "status = 'pending_approval' and archive_due_at is not null"


class Invite(TenantTable, Base):
    """A way in. Whether it is revoked, accepted, expired or open is derived from its times, in that order."""

    __tablename__ = "invites"

    club_id: Mapped[UUID] = mapped_column(
        ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True, sort_order=-2
    )
    invited_by: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    accepted_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class JoinRequest(TenantTable, Base):
    """Somebody wants in: a person (an account, an address, or both) or an agent.

    The composite reference keeps request and invite in one club (RET-01), the unique constraints keep one
    request an invite and one pending request a person (ACC-15). ``activity_at`` is when the requester last
    did something. ``archive_due_at`` is derived from the facts and written by ``decisions/`` alone; null
    means that nothing is scheduled.
    """

    __tablename__ = "join_requests"
    __table_args__ = (
        tenant_reference("invites", "invite_id", on_delete="cascade"),
        UniqueConstraint("club_id", "invite_id"),
        CheckConstraint("status in ('pending_approval', 'approved', 'rejected', 'withdrawn')", name="status"),
        CheckConstraint(
            "case subject_kind"
            " when 'person' then agent_name is null and (person_id is not null or email is not null)"
            " when 'agent' then agent_name is not null and person_id is null and email is null"
            " else false end",
            name="subject",
        ),
        Index(
            "join_requests_pending_person_key",
            "club_id",
            "person_id",
            unique=True,
            postgresql_where=text(PENDING_PERSON),
        ),
        Index(
            "join_requests_pending_email_key",
            "club_id",
            text("lower(email)"),
            unique=True,
            postgresql_where=text(PENDING_PERSON),
        ),
        # Everything that is due and nothing that is not (RET-05, RET-20); its order is the sweep's.
        Index(DUE_INDEX, "archive_due_at", "id", postgresql_where=text(DUE_INDEX_WHERE)),
    )

    invite_id: Mapped[UUID]
    subject_kind: Mapped[str]
    person_id: Mapped[UUID | None] = mapped_column(ForeignKey("people.id"))
    email: Mapped[str | None]
    agent_name: Mapped[str | None]
    status: Mapped[str] = mapped_column(server_default=text("'pending_approval'"))
    activity_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    archive_due_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
