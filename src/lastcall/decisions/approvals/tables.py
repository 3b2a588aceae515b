"""Approvals, what was said about them, and what they said before they were changed."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base, TenantTable, tenant_reference
from lastcall.decisions.askers import BODY_MOST, DATABASE_NOW, Asked, asked_constraints

OPEN = "status in ('pending', 'revision_requested')"


class Approval(Asked, TenantTable, Base):
    """A question that waits for a yes or a no, and what is done when the answer is yes.

    ``type`` is what sort of question it is, in the asker's words; ``subject_kind`` and ``subject_key`` what it is
    about, where ``is_only_one`` lets one of a type and subject wait at a time. ``effect_name`` and ``effect_body`` are
    what approving it does (``decisions.effects``), ``effect_result`` what that answered. ``revision`` counts what it
    said. ``archive_due_at`` and ``is_archived`` are derived by retention and written by it alone. ``decided_by`` is
    null where the asker withdrew it.
    """

    __tablename__ = "approvals"
    __table_args__ = (
        *asked_constraints(),
        CheckConstraint(
            "status in ('pending', 'revision_requested', 'approved', 'rejected', 'withdrawn')", name="status"
        ),
        CheckConstraint(
            f"case when {OPEN} then num_nonnulls(decided_at, decided_by, decision_note) = 0"
            " else decided_at is not null and (decided_by is null) = (status = 'withdrawn') end",
            name="decided",
        ),
        CheckConstraint("(subject_kind is null) = (subject_key is null)", name="subject"),
        CheckConstraint("(effect_name is null) = (effect_body is null)", name="effect"),
        CheckConstraint(
            "effect_result is null or (effect_name is not null and status = 'approved')", name="effect_result"
        ),
        CheckConstraint("not is_only_one or subject_key is not null", name="only_one"),
        CheckConstraint("revision >= 1", name="revision"),
        Index(
            "approvals_only_one_key",
            "club_id",
            "type",
            "subject_kind",
            "subject_key",
            unique=True,
            postgresql_where=text(f"is_only_one and {OPEN}"),
        ),
        # What waits for a decision, in the order of the inbox; and everything, in that of the list.
        Index(
            "approvals_inbox_idx",
            "club_id",
            "is_archived",
            "activity_at",
            "id",
            postgresql_where=text("status = 'pending'"),
        ),
        Index(None, "club_id", "activity_at", "id"),
        Index("approvals_of_agent_idx", "club_id", "requested_by_agent_id", "activity_at", "id"),
        Index("approvals_of_person_idx", "requested_by_person_id", "club_id", "activity_at", "id"),
        # Everything that is due and nothing that is not, in the sweep's order (DEC-02).
        Index(
            "approvals_archive_due_at_idx",
            "archive_due_at",
            "id",
            postgresql_where=text("status = 'pending' and archive_due_at is not null"),
        ),
    )

    club_id: Mapped[UUID] = mapped_column(
        ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True, sort_order=-2
    )
    type: Mapped[str]
    subject_kind: Mapped[str | None]
    subject_key: Mapped[str | None]
    is_only_one: Mapped[bool] = mapped_column(server_default=text("false"))
    effect_name: Mapped[str | None]
    effect_body: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    effect_result: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    status: Mapped[str] = mapped_column(server_default=text("'pending'"))
    revision: Mapped[int] = mapped_column(server_default=text("1"))
    archive_due_at: Mapped[datetime | None]
    is_archived: Mapped[bool] = mapped_column(server_default=text("false"))


class ApprovalComment(TenantTable, Base):
    """Something said about an approval, by its asker or by somebody who may decide it. ``kind`` tells an ask for a
    change from what was only said.
    """

    __tablename__ = "approval_comments"
    __table_args__ = (
        tenant_reference("approvals", "approval_id", on_delete="cascade"),
        tenant_reference("agents", "agent_id"),
        CheckConstraint("num_nonnulls(person_id, agent_id) = 1", name="author"),
        CheckConstraint(
            "kind = 'comment' or (kind = 'revision_requested' and person_id is not null)", name="kind"
        ),
        CheckConstraint(f"char_length(body) between 1 and {BODY_MOST}", name="body"),
        Index(None, "club_id", "approval_id", "created_at", "id"),
        Index(None, "person_id"),
    )

    approval_id: Mapped[UUID]
    kind: Mapped[str] = mapped_column(server_default=text("'comment'"))
    person_id: Mapped[UUID | None] = mapped_column(ForeignKey("people.id"))
    agent_id: Mapped[UUID | None]
    body: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class ApprovalRevision(TenantTable, Base):
    """What an approval said before its asker changed it: one row a revision that is no longer the current one."""

    __tablename__ = "approval_revisions"
    __table_args__ = (
        tenant_reference("approvals", "approval_id", on_delete="cascade"),
        UniqueConstraint("club_id", "approval_id", "revision"),
        CheckConstraint("revision >= 1", name="revision"),
    )

    approval_id: Mapped[UUID]
    revision: Mapped[int]
    title: Mapped[str]
    body: Mapped[str]
    effect_body: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    replaced_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
