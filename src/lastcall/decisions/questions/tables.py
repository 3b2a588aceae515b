"""Decisions: questions with options that are answered, called off, or expire."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base, TenantTable
from lastcall.decisions.askers import Asked, asked_constraints

OPTIONS_FEWEST, OPTIONS_MOST = 2, 10


class Decision(Asked, TenantTable, Base):
    """A question with options. ``options`` are ``{key, label, detail}`` in the order they are shown; ``decided_option``
    is the key that somebody chose. ``action_name`` and ``action_body`` are what choosing does
    (``decisions.questions.actions``), ``action_result`` what that answered. ``expires_at`` is the saved deadline of an
    open one (DEC-03). ``decided_by`` is null where nobody decided: it was called off, or expired.
    """

    __tablename__ = "decisions"
    __table_args__ = (
        *asked_constraints(),
        CheckConstraint("status in ('open', 'decided', 'expired', 'cancelled')", name="status"),
        CheckConstraint(
            "(status = 'open') = (decided_at is null) and (status = 'decided') = (decided_option is not null)"
            " and (status = 'decided') = (decided_by is not null)"
            " and (status = 'decided' or (decision_note is null and action_result is null))",
            name="decided",
        ),
        CheckConstraint(
            f"jsonb_typeof(options) = 'array'"
            f" and jsonb_array_length(options) between {OPTIONS_FEWEST} and {OPTIONS_MOST}",
            name="options",
        ),
        CheckConstraint("(action_name is null) = (action_body is null)", name="action"),
        CheckConstraint("expires_at > created_at", name="expires_at"),
        Index("decisions_open_idx", "club_id", "activity_at", "id", postgresql_where=text("status = 'open'")),
        Index(
            "decisions_open_of_agent_idx",
            "club_id",
            "requested_by_agent_id",
            postgresql_where=text("status = 'open'"),
        ),
        Index(None, "club_id", "activity_at", "id"),
        Index("decisions_of_agent_idx", "club_id", "requested_by_agent_id", "activity_at", "id"),
        Index("decisions_of_person_idx", "requested_by_person_id", "club_id", "activity_at", "id"),
        # Everything that expires some day, in the sweep's order.
        Index("decisions_expires_at_idx", "expires_at", "id", postgresql_where=text("status = 'open'")),
    )

    club_id: Mapped[UUID] = mapped_column(
        ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True, sort_order=-2
    )
    options: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    action_name: Mapped[str | None]
    action_body: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    action_result: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    status: Mapped[str] = mapped_column(server_default=text("'open'"))
    expires_at: Mapped[datetime]
    decided_option: Mapped[str | None]
