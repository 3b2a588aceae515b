"""Accounts with their keys, the fleet, allowances; connections with their gates, leases and evidence."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006_connections"
down_revision = "0005_decisions"
branch_labels = None
depends_on = None

NOW = sa.text("lastcall_now()")
FALSE = sa.text("false")
RANGE = "requests_per_minute between 1 and 6000"


def _time(name: str, *, nullable: bool = False, default: sa.TextClause | None = None) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable, server_default=default)


def _to_connection() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["club_id", "connection_id"], ["connections.club_id", "connections.id"], ondelete="CASCADE"
    )


def upgrade() -> None:
    _create_accounts()
    _create_workers()
    _create_connections()
    _create_leases()


def _create_accounts() -> None:
    op.create_table(
        "fleet_settings",
        sa.Column("id", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("kill_switch", sa.Boolean, nullable=False, server_default=FALSE),
        sa.Column("requests_per_minute", sa.Integer, nullable=False, server_default=sa.text("30")),
        sa.CheckConstraint("id = 1", name="one_row"),
        sa.CheckConstraint(RANGE, name="range"),
    )
    op.execute("insert into fleet_settings (id) values (1)")
    op.create_table(
        "accounts",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("alias", sa.Text, nullable=False, unique=True),
        sa.Column("vrchat_user_id", sa.Text, nullable=False, unique=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("kill_switch", sa.Boolean, nullable=False, server_default=FALSE),
        sa.Column("requests_per_minute", sa.Integer, nullable=False, server_default=sa.text("30")),
        sa.Column("credential_generation", sa.Integer, nullable=False, server_default=sa.text("0")),
        _time("cooldown_until", nullable=True),
        _time("created_at", default=NOW),
        _time("updated_at", default=NOW),
        sa.CheckConstraint(
            "state in ('provisioning', 'ready', 'degraded', 'cooldown', 'auth_required', 'quarantined',"
            " 'retiring', 'retired')",
            name="state",
        ),
        sa.CheckConstraint("state <> 'cooldown' or cooldown_until is not null", name="cooldown"),
        sa.CheckConstraint(RANGE, name="range"),
    )


def _create_workers() -> None:
    op.create_table(
        "worker_keys",
        sa.Column("account_id", sa.Uuid, sa.ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("generation", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("key_hash", postgresql.BYTEA, nullable=False, unique=True),
        _time("created_at", default=NOW),
        _time("revoked_at", nullable=True),
    )
    op.create_table(
        "collectors",
        sa.Column("account_id", sa.Uuid, sa.ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("worker_id", sa.Uuid, primary_key=True),
        sa.Column("journal_id", sa.Uuid, nullable=False),
        sa.Column("release", sa.Text, nullable=False),
        _time("last_hello_at"),
    )
    op.create_table(
        "allowances",
        sa.Column("scope", sa.Text, primary_key=True),
        _time("window_start"),
        sa.Column("granted", sa.Integer, nullable=False),
        sa.Column(
            "recent_until",
            postgresql.ARRAY(sa.DateTime(timezone=True)),
            nullable=False,
            server_default=sa.text("'{}'"),
        ),
        sa.Column(
            "recent_granted", postgresql.ARRAY(sa.Integer), nullable=False, server_default=sa.text("'{}'")
        ),
        sa.CheckConstraint("cardinality(recent_until) = cardinality(recent_granted)", name="side_by_side"),
    )


def _create_connections() -> None:
    op.create_table(
        "connections",
        sa.Column("club_id", sa.Uuid, sa.ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("group_id", sa.Text, nullable=False),
        sa.Column("group_name", sa.Text, nullable=False),
        sa.Column("account_id", sa.Uuid, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        _time("epoch"),
        sa.Column("features", postgresql.ARRAY(sa.Text), nullable=False),
        sa.Column("kill_switch", sa.Boolean, nullable=False, server_default=FALSE),
        sa.Column("requests_per_minute", sa.Integer, nullable=False, server_default=sa.text("4")),
        sa.Column("lease_generation", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        _time("frozen_at", nullable=True),
        sa.Column("frozen_reason", sa.Text),
        sa.Column("consecutive_failures", sa.Integer, nullable=False, server_default=sa.text("0")),
        _time("backoff_until", nullable=True),
        _time("created_at", default=NOW),
        _time("updated_at", default=NOW),
        sa.CheckConstraint(
            "state in ('connecting', 'awaiting_approval', 'awaiting_invite', 'active', 'degraded',"
            " 'auth_required', 'disconnecting', 'disconnected', 'blocked')",
            name="state",
        ),
        sa.CheckConstraint(
            "features <@ array['analytics', 'membership_management', 'posts', 'instances']", name="features"
        ),
        sa.CheckConstraint("(frozen_at is null) = (frozen_reason is null)", name="frozen"),
        sa.CheckConstraint(RANGE, name="range"),
    )
    current = sa.text("state <> 'disconnected'")
    op.create_index(
        "connections_current_key", "connections", ["club_id"], unique=True, postgresql_where=current
    )
    op.create_index("connections_account_idx", "connections", ["account_id"], postgresql_where=current)


def _create_leases() -> None:
    op.create_table(
        "connection_gates",
        sa.Column("club_id", sa.Uuid, primary_key=True),
        sa.Column("connection_id", sa.Uuid, primary_key=True),
        sa.Column("generation", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        _to_connection(),
    )
    op.create_table(
        "leases",
        sa.Column("club_id", sa.Uuid, primary_key=True),
        sa.Column("connection_id", sa.Uuid, primary_key=True),
        sa.Column("account_id", sa.Uuid, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("worker_id", sa.Uuid, nullable=False),
        sa.Column("fencing_token", sa.BigInteger, nullable=False),
        _time("claimed_at"),
        _time("expires_at"),
        _time("released_at", nullable=True),
        _to_connection(),
    )
    op.create_index(
        "leases_open_idx",
        "leases",
        ["expires_at", "connection_id"],
        postgresql_where=sa.text("released_at is null"),
    )
    op.create_table(
        "evidence",
        sa.Column("club_id", sa.Uuid, primary_key=True),
        sa.Column("connection_id", sa.Uuid, primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("subject", sa.Text, primary_key=True),
        _time("epoch"),
        sa.Column("body", postgresql.JSONB, nullable=False),
        _time("observed_at"),
        sa.Column("account_id", sa.Uuid, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("worker_id", sa.Uuid, nullable=False),
        _to_connection(),
        sa.CheckConstraint("kind in ('own_member')", name="kind"),
    )
