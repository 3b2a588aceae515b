"""What is told to whom, by which channel, and what became of that; and which clubs have something to be told of."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base, TenantTable, tenant_reference

DATABASE_NOW = text("lastcall_now()")
DEDUP_MOST = 200
"""Characters of what makes a message the same message."""

_OPEN = "state in ('pending', 'delivering')"
_SENT = text("next_at is not null and channel <> 'agent'")
_FETCHED = text("next_at is not null and channel = 'agent'")
_NOTICE = text("channel = 'app' and dismissed_at is null")


class Delivery(TenantTable, Base):
    """One message to one person or agent by one channel, once: a second one of the same ``kind`` and ``dedup`` is the
    same message. It holds nothing of what its source says, so it cannot leak it; the source is a nullable reference a
    kind, and the row goes with it.

    ``app`` is a notice on the recipient's pages, delivered with the row. ``mail`` and ``slack`` are sent when
    ``next_at`` has come; ``agent`` waits to be fetched, and from ``next_at`` on may be handed over (again).
    ``attempts`` counts what was begun. ``unknown``: it may have arrived and is never sent again. ``dead``: eight
    attempts came to nothing, and a person may begin anew. ``dropped``: it was not for this recipient any more.
    """

    __tablename__ = "deliveries"
    __table_args__ = (
        ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        tenant_reference("agents", "agent_id", on_delete="cascade"),
        tenant_reference("approvals", "approval_id", on_delete="cascade"),
        tenant_reference("decisions", "decision_id", on_delete="cascade"),
        UniqueConstraint("club_id", "person_id", "channel", "kind", "dedup"),
        UniqueConstraint("club_id", "agent_id", "kind", "dedup"),
        CheckConstraint(
            "case when channel = 'agent' then agent_id is not null and person_id is null"
            " else channel in ('app', 'mail', 'slack') and person_id is not null and agent_id is null end",
            name="recipient",
        ),
        CheckConstraint("num_nonnulls(approval_id, decision_id) <= 1", name="source"),
        CheckConstraint(
            "state in ('pending', 'delivering', 'delivered', 'unknown', 'dead', 'dropped')", name="state"
        ),
        CheckConstraint(f"({_OPEN}) = (next_at is not null) and ({_OPEN}) = (ended_at is null)", name="open"),
        CheckConstraint(f"char_length(dedup) between 1 and {DEDUP_MOST}", name="dedup"),
        CheckConstraint("attempts >= 0", name="attempts"),
        CheckConstraint("mail_id is null or channel = 'mail'", name="mail"),
        CheckConstraint("dismissed_at is null or channel = 'app'", name="dismissed"),
        Index("deliveries_sent_idx", "next_at", "id", postgresql_where=_SENT),
        Index("deliveries_fetched_idx", "club_id", "agent_id", "next_at", "id", postgresql_where=_FETCHED),
        Index("deliveries_notices_idx", "club_id", "person_id", "created_at", "id", postgresql_where=_NOTICE),
        Index("deliveries_dead_idx", "ended_at", "id", postgresql_where=text("state = 'dead'")),
        Index(
            "deliveries_dead_of_club_idx",
            "club_id",
            "ended_at",
            "id",
            postgresql_where=text("state = 'dead'"),
        ),
        Index(None, "ended_at"),
        # For the cascades.
        Index(None, "club_id", "approval_id", postgresql_where=text("approval_id is not null")),
        Index(None, "club_id", "decision_id", postgresql_where=text("decision_id is not null")),
    )

    kind: Mapped[str]
    channel: Mapped[str]
    person_id: Mapped[UUID | None] = mapped_column(ForeignKey("people.id"))
    agent_id: Mapped[UUID | None]
    approval_id: Mapped[UUID | None]
    decision_id: Mapped[UUID | None]
    dedup: Mapped[str]
    data: Mapped[dict[str, Any]]
    state: Mapped[str]
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    next_at: Mapped[datetime | None]
    mail_id: Mapped[UUID | None]
    last_error: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    ended_at: Mapped[datetime | None]
    dismissed_at: Mapped[datetime | None]


class RetentionTelling(Base):
    """A club that is to be told of what retention does on one day in UTC: what will be archived on it (``reminder``) or
    was (``digest``). Noted in the transaction that makes it so, and gone once it was told.
    """

    __tablename__ = "retention_tellings"
    __table_args__ = (
        CheckConstraint("kind in ('reminder', 'digest')", name="kind"),
        Index(
            "retention_tellings_reminder_idx",
            "tell_at",
            "club_id",
            postgresql_where=text("kind = 'reminder'"),
        ),
        Index(
            "retention_tellings_digest_idx", "tell_at", "club_id", postgresql_where=text("kind = 'digest'")
        ),
    )

    club_id: Mapped[UUID] = mapped_column(ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)
    day: Mapped[date] = mapped_column(primary_key=True)
    tell_at: Mapped[datetime]
