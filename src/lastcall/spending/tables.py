"""Costs, what they come to, budgets, and what happened to those. Amounts are cents of the club's own currency."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, Numeric, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.clubs.tables import Forward
from lastcall.db.base import Base, TenantTable, tenant_reference

DATABASE_NOW = text("lastcall_now()")
DESCRIPTION_MOST = 200  # characters
Cents = Annotated[Decimal, mapped_column(Numeric(20, 6))]
"""Cents and fractions of one: a call of a model often costs less than a cent."""


class CostEvent(TenantTable, Base):
    """One cost that an agent reported, once: ``key`` is the agent's own name for it. ``created_at`` is when it was
    reported, and the month it counts for.
    """

    __tablename__ = "cost_events"
    __table_args__ = (
        tenant_reference("agents", "agent_id"),
        UniqueConstraint("club_id", "agent_id", "key"),
        CheckConstraint("amount > 0", name="amount"),
        CheckConstraint(f"char_length(description) <= {DESCRIPTION_MOST}", name="description"),
        Index(None, "club_id", "created_at", "id"),
    )

    club_id: Mapped[UUID] = mapped_column(
        ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True, sort_order=-2
    )
    agent_id: Mapped[UUID]
    key: Mapped[str]
    amount: Mapped[Cents]
    description: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class SpendingTotal(TenantTable, Base):
    """What the costs of a club (``agent_id`` null) or of one agent come to: in a calendar month by UTC, or since ever
    (``month`` null). It grows with each cost in the same transaction, so that nothing is ever summed over history.
    """

    __tablename__ = "spending_totals"
    __table_args__ = (
        tenant_reference("agents", "agent_id"),
        UniqueConstraint("club_id", "agent_id", "month", postgresql_nulls_not_distinct=True),
        CheckConstraint("spent >= 0", name="spent"),
        CheckConstraint("extract(day from month) = 1", name="month"),
    )

    club_id: Mapped[UUID] = mapped_column(
        ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True, sort_order=-2
    )
    agent_id: Mapped[UUID | None]
    month: Mapped[date | None]
    spent: Mapped[Cents]


class Budget(Forward, TenantTable, Base):
    """What a club (``agent_id`` null) or one agent may cost in a calendar month, or ever. At ``warn_percent`` of it
    staff are told; when it is used up and ``hard_stop`` is set, the club or the agent is paused.
    """

    __tablename__ = "budgets"
    __table_args__ = (
        tenant_reference("agents", "agent_id"),
        UniqueConstraint("club_id", "agent_id", "period", postgresql_nulls_not_distinct=True),
        CheckConstraint("period in ('month', 'lifetime')", name="period"),
        CheckConstraint("amount > 0", name="amount"),
        CheckConstraint("warn_percent between 1 and 100", name="warn_percent"),
    )

    club_id: Mapped[UUID] = mapped_column(
        ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True, sort_order=-2
    )
    agent_id: Mapped[UUID | None]
    period: Mapped[str]
    amount: Mapped[Cents]
    warn_percent: Mapped[int]
    hard_stop: Mapped[bool]
    is_active: Mapped[bool] = mapped_column(server_default=text("true"))
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class BudgetIncident(TenantTable, Base):
    """A budget came near its end (``warning``) or was used up (``limit``): once a budget, month and amount.

    ``spent`` is what was spent when it last changed. An open one waits in the inbox; it is resolved when the budget
    suffices again, and dismissed when staff leave things as they are. ``ends_at`` is when the month's end resolves it;
    null for a lifetime's and once it is resolved.
    """

    __tablename__ = "budget_incidents"
    __table_args__ = (
        tenant_reference("budgets", "budget_id", on_delete="cascade"),
        UniqueConstraint("club_id", "budget_id", "month", "amount", postgresql_nulls_not_distinct=True),
        CheckConstraint("level in ('warning', 'limit')", name="level"),
        CheckConstraint("status in ('open', 'resolved', 'dismissed')", name="status"),
        CheckConstraint("(status = 'resolved') = (resolved_at is not null)", name="resolved"),
        CheckConstraint(
            "(ends_at is not null) = (month is not null and status <> 'resolved')", name="ends_at"
        ),
        Index(
            "budget_incidents_open_idx",
            "club_id",
            "activity_at",
            "id",
            postgresql_where=text("status = 'open'"),
        ),
        Index(
            "budget_incidents_ends_at_idx",
            "ends_at",
            "id",
            postgresql_where=text("ends_at is not null"),
        ),
    )

    budget_id: Mapped[UUID]
    month: Mapped[date | None]
    level: Mapped[str]
    amount: Mapped[Cents]
    spent: Mapped[Cents]
    status: Mapped[str] = mapped_column(server_default=text("'open'"))
    activity_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    ends_at: Mapped[datetime | None]
    resolved_at: Mapped[datetime | None]
