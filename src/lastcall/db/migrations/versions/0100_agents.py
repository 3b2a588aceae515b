"""Agents, their keys, what a join request knows of its agent, and entries of the log by agents."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0100_agents"
down_revision = "0111_retention_digest"
branch_labels = None
depends_on = None

NOW = sa.text("lastcall_now()")
ACTOR = (
    "case actor_kind when 'person' then actor_id is not null and actor_name is null"
    " when 'agent' then actor_id is not null and actor_name is not null"
    " when 'system' then actor_id is null and actor_name is not null else false end"
)


def upgrade() -> None:
    _create_agents()
    _create_keys()
    _widen_join_requests()
    op.drop_constraint(op.f("activity_log_actor_check"), "activity_log")
    op.create_check_constraint("actor", "activity_log", ACTOR)


def _moment(name: str, **more: object) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), **more)  # type: ignore[arg-type]


def _create_agents() -> None:
    op.create_table(
        "agents",
        sa.Column("club_id", sa.Uuid, sa.ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("status", sa.Text, nullable=False, server_default=sa.text("'active'")),
        sa.Column("pause_reason", sa.Text),
        _moment("paused_at"),
        sa.Column("grants", ARRAY(sa.Text()), nullable=False, server_default=sa.text("'{}'")),
        sa.Column("responsible_id", sa.Uuid, sa.ForeignKey("people.id"), nullable=False),
        _moment("last_seen_at"),
        _moment("created_at", nullable=False, server_default=NOW),
        _moment("updated_at", nullable=False, server_default=NOW),
        sa.CheckConstraint("status in ('active', 'paused', 'blocked')", name="status"),
        sa.CheckConstraint(
            "(status = 'paused') = (paused_at is not null) and (status = 'paused') = (pause_reason is not null)"
            " and pause_reason in ('manual', 'budget')",
            name="paused",
        ),
    )
    op.create_index("agents_lower_name_key", "agents", ["club_id", sa.text("lower(name)")], unique=True)
    op.create_index("agents_responsible_id_idx", "agents", ["responsible_id"])


def _create_keys() -> None:
    op.create_table(
        "agent_keys",
        sa.Column("club_id", sa.Uuid, primary_key=True),
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("key_hash", sa.LargeBinary, nullable=False),
        sa.Column("hint", sa.Text, nullable=False),
        _moment("created_at", nullable=False, server_default=NOW),
        _moment("expires_at"),
        _moment("revoked_at"),
        _moment("last_used_at"),
        sa.ForeignKeyConstraint(["club_id", "agent_id"], ["agents.club_id", "agents.id"], ondelete="CASCADE"),
        sa.UniqueConstraint("club_id", "key_hash"),
        sa.UniqueConstraint("club_id", "agent_id", "generation"),
        sa.CheckConstraint("octet_length(key_hash) = 32", name="key_hash_length"),
        sa.CheckConstraint("generation >= 1", name="generation"),
    )


def _widen_join_requests() -> None:
    op.add_column("join_requests", sa.Column("agent_id", sa.Uuid))
    op.add_column("join_requests", sa.Column("claim_secret_hash", sa.LargeBinary))
    op.add_column("join_requests", _moment("claim_expires_at"))
    op.add_column("join_requests", _moment("claimed_at"))
    op.create_foreign_key(None, "join_requests", "agents", ["club_id", "agent_id"], ["club_id", "id"])
    op.create_check_constraint(
        "claim_secret",
        "join_requests",
        "claim_secret_hash is null or subject_kind = 'agent' and octet_length(claim_secret_hash) = 32",
    )
    op.create_check_constraint(
        "agent",
        "join_requests",
        "case when agent_id is null then num_nonnulls(claim_expires_at, claimed_at) = 0"
        " else subject_kind = 'agent' and status = 'approved' and claim_expires_at is not null end",
    )
    op.create_index(
        "join_requests_agent_key",
        "join_requests",
        ["club_id", "agent_id"],
        unique=True,
        postgresql_where=sa.text("agent_id is not null"),
    )
