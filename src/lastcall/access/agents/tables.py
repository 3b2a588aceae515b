"""Agents and their keys. What a join request knows of its agent lies in ``access.tables``."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.clubs.tables import Forward
from lastcall.db.base import Base, TenantTable, tenant_reference

DATABASE_NOW = text("lastcall_now()")
KEY_HASH_BYTES = 32  # SHA-256


class Agent(Forward, TenantTable, Base):
    """A program that staff let into the club. ``responsible_id`` is the person who answers for it: whoever let it
    in, until somebody takes that over.

    A paused agent keeps its keys and is refused at what it does; a blocked one has none. ``pause_reason`` says who
    may end the pause: a manager a manual one, the accounting the one of a budget.
    """

    __tablename__ = "agents"
    __table_args__ = (
        CheckConstraint("status in ('active', 'paused', 'blocked')", name="status"),
        CheckConstraint(
            "(status = 'paused') = (paused_at is not null) and (status = 'paused') = (pause_reason is not null)"
            " and pause_reason in ('manual', 'budget')",
            name="paused",
        ),
        Index("agents_lower_name_key", "club_id", text("lower(name)"), unique=True),
        Index(None, "responsible_id"),
    )

    club_id: Mapped[UUID] = mapped_column(
        ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True, sort_order=-2
    )
    name: Mapped[str]
    description: Mapped[str | None]
    status: Mapped[str] = mapped_column(server_default=text("'active'"))
    pause_reason: Mapped[str | None]
    paused_at: Mapped[datetime | None]
    grants: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    responsible_id: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    last_seen_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class AgentKey(TenantTable, Base):
    """One key of an agent, stored as a hash; the directory keeps the hash unique over all clubs. ``hint`` is how it
    begins. ``expires_at`` is null until a newer generation replaces it.
    """

    __tablename__ = "agent_keys"
    __table_args__ = (
        tenant_reference("agents", "agent_id", on_delete="cascade"),
        UniqueConstraint("club_id", "key_hash"),
        UniqueConstraint("club_id", "agent_id", "generation"),
        CheckConstraint(f"octet_length(key_hash) = {KEY_HASH_BYTES}", name="key_hash_length"),
        CheckConstraint("generation >= 1", name="generation"),
    )

    agent_id: Mapped[UUID]
    generation: Mapped[int]
    key_hash: Mapped[bytes]
    hint: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
