"""Runs of agents, as the agents report them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base, TenantTable, tenant_reference
from lastcall.decisions.askers import BODY_MOST, DATABASE_NOW, TITLE_MOST


class AgentRun(TenantTable, Base):
    """One run of an agent. ``key`` is the agent's own name for it, once an agent; ``thread_key`` is what it works on.
    ``superseded_at``: a newer run of that agent on the same thing was reported, so a failure here is history.
    """

    __tablename__ = "agent_runs"
    __table_args__ = (
        tenant_reference("agents", "agent_id"),
        UniqueConstraint("club_id", "agent_id", "key"),
        CheckConstraint("status in ('running', 'succeeded', 'failed', 'cancelled')", name="status"),
        CheckConstraint("(status = 'running') = (finished_at is null)", name="finished"),
        CheckConstraint("error is null or status = 'failed'", name="error"),
        CheckConstraint("finished_at >= started_at", name="times"),
        CheckConstraint(f"char_length(title) between 1 and {TITLE_MOST}", name="title"),
        CheckConstraint(
            f"char_length(detail) <= {BODY_MOST} and char_length(error) <= {BODY_MOST}", name="texts"
        ),
        # What people must see: failures that no newer run made history of.
        Index(
            "agent_runs_failed_idx",
            "club_id",
            "finished_at",
            "id",
            postgresql_where=text("status = 'failed' and superseded_at is null"),
        ),
        Index(
            "agent_runs_current_idx",
            "club_id",
            "agent_id",
            "thread_key",
            postgresql_where=text("superseded_at is null"),
        ),
        Index(None, "finished_at"),
        Index(None, "club_id", "started_at", "id"),
        Index(None, "club_id", "agent_id", "started_at", "id"),
    )

    club_id: Mapped[UUID] = mapped_column(
        ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True, sort_order=-2
    )
    agent_id: Mapped[UUID]
    key: Mapped[str]
    thread_key: Mapped[str]
    title: Mapped[str]
    status: Mapped[str]
    detail: Mapped[str | None]
    error: Mapped[str | None]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    superseded_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
