"""What agents cost, budgets, and what happened to those."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0116_spending"
down_revision = "0106_approval_retention"
branch_labels = None
depends_on = None

NOW = sa.text("lastcall_now()")
CENTS = sa.Numeric(20, 6)
AGENT = (["club_id", "agent_id"], ["agents.club_id", "agents.id"])


def _key(club: sa.ForeignKey | None) -> tuple[sa.Column[object], sa.Column[object]]:
    references = [] if club is None else [club]
    return sa.Column("club_id", sa.Uuid, *references, primary_key=True), sa.Column(
        "id", sa.Uuid, primary_key=True
    )


def _club() -> sa.ForeignKey:
    return sa.ForeignKey("clubs.id", ondelete="CASCADE")


def _at(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, server_default=NOW)


def _once(*columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint("club_id", *columns, postgresql_nulls_not_distinct=True)


def upgrade() -> None:
    _create_costs()
    _create_totals()
    _create_budgets()
    _create_incidents()


def _create_costs() -> None:
    op.create_table(
        "cost_events",
        *_key(_club()),
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("amount", CENTS, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        _at("created_at"),
        sa.ForeignKeyConstraint(*AGENT),
        sa.UniqueConstraint("club_id", "agent_id", "key"),
        sa.CheckConstraint("amount > 0", name="amount"),
        sa.CheckConstraint("char_length(description) <= 200", name="description"),
    )
    op.create_index("cost_events_club_id_created_at_id_idx", "cost_events", ["club_id", "created_at", "id"])


def _create_totals() -> None:
    op.create_table(
        "spending_totals",
        *_key(_club()),
        sa.Column("agent_id", sa.Uuid),
        sa.Column("month", sa.Date),
        sa.Column("spent", CENTS, nullable=False),
        sa.ForeignKeyConstraint(*AGENT),
        _once("agent_id", "month"),
        sa.CheckConstraint("spent >= 0", name="spent"),
        sa.CheckConstraint("extract(day from month) = 1", name="month"),
    )


def _create_budgets() -> None:
    op.create_table(
        "budgets",
        *_key(_club()),
        sa.Column("agent_id", sa.Uuid),
        sa.Column("period", sa.Text, nullable=False),
        sa.Column("amount", CENTS, nullable=False),
        sa.Column("warn_percent", sa.Integer, nullable=False),
        sa.Column("hard_stop", sa.Boolean, nullable=False),
        sa.Column("is_active", sa.Boolean, nullable=False, server_default=sa.text("true")),
        _at("created_at"),
        _at("updated_at"),
        sa.ForeignKeyConstraint(*AGENT),
        _once("agent_id", "period"),
        sa.CheckConstraint("period in ('month', 'lifetime')", name="period"),
        sa.CheckConstraint("amount > 0", name="amount"),
        sa.CheckConstraint("warn_percent between 1 and 100", name="warn_percent"),
    )


def _create_incidents() -> None:
    op.create_table(
        "budget_incidents",
        *_key(None),
        sa.Column("budget_id", sa.Uuid, nullable=False),
        sa.Column("month", sa.Date),
        sa.Column("level", sa.Text, nullable=False),
        sa.Column("amount", CENTS, nullable=False),
        sa.Column("spent", CENTS, nullable=False),
        sa.Column("status", sa.Text, nullable=False, server_default=sa.text("'open'")),
        _at("activity_at"),
        sa.Column("ends_at", sa.DateTime(timezone=True)),
        sa.Column("resolved_at", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(
            ["club_id", "budget_id"], ["budgets.club_id", "budgets.id"], ondelete="CASCADE"
        ),
        _once("budget_id", "month", "amount"),
        sa.CheckConstraint("level in ('warning', 'limit')", name="level"),
        sa.CheckConstraint("status in ('open', 'resolved', 'dismissed')", name="status"),
        sa.CheckConstraint("(status = 'resolved') = (resolved_at is not null)", name="resolved"),
        sa.CheckConstraint(
            "(ends_at is not null) = (month is not null and status <> 'resolved')", name="ends_at"
        ),
    )
    op.create_index(
        "budget_incidents_open_idx",
        "budget_incidents",
        ["club_id", "activity_at", "id"],
        postgresql_where=sa.text("status = 'open'"),
    )
    op.create_index(
        "budget_incidents_ends_at_idx",
        "budget_incidents",
        ["ends_at", "id"],
        postgresql_where=sa.text("ends_at is not null"),
    )
