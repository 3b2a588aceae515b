"""Provider reads, who waits for them, and evidence of what they told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0094_reads"
down_revision = "0092_fleet"
branch_labels = None
depends_on = None

EVIDENCE = "kind in ('own_member', 'bans', 'requests', 'invites', 'member', 'posts', 'instances')"
IS_IDLE = "state <> 'running'"
IS_UNANSWERED = "state <> 'succeeded'"


def _id(name: str, *, nullable: bool = False, key: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.Uuid, nullable=nullable, primary_key=key)


def _moment(name: str, *, nullable: bool = True) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def upgrade() -> None:
    op.drop_constraint(op.f("evidence_kind_check"), "evidence")
    op.create_check_constraint(op.f("evidence_kind_check"), "evidence", EVIDENCE)
    _create_reads()
    op.create_table(
        "provider_read_askers",
        _id("club_id", key=True),
        _id("read_id", key=True),
        sa.Column("person_id", sa.Uuid, sa.ForeignKey("people.id"), primary_key=True),
        sa.ForeignKeyConstraint(
            ["club_id", "read_id"], ["provider_reads.club_id", "provider_reads.id"], ondelete="CASCADE"
        ),
    )


def _create_reads() -> None:
    claim = ("claim_worker_id", "claim_fencing_token", "claim_nonce", "claimed_at")
    op.create_table(
        "provider_reads",
        _id("club_id", key=True),
        _id("id", key=True),
        _id("connection_id"),
        _moment("epoch", nullable=False),
        sa.Column("account_id", sa.Uuid, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("credential_generation", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("params", JSONB, nullable=False),
        sa.Column("params_key", sa.LargeBinary, nullable=False),
        sa.Column("evidence_subject", sa.Text),
        sa.Column("state", sa.Text, nullable=False, server_default=sa.text("'pending'")),
        _moment("requested_at", nullable=False),
        _id("claim_worker_id", nullable=True),
        sa.Column("claim_fencing_token", sa.BigInteger),
        _id("claim_nonce", nullable=True),
        _moment("claimed_at"),
        _moment("observed_at"),
        sa.Column("items", JSONB),
        sa.Column("next_offset", sa.Integer),
        sa.Column("total", sa.Integer),
        sa.Column("code", sa.Text),
        sa.ForeignKeyConstraint(
            ["club_id", "connection_id"], ["connections.club_id", "connections.id"], ondelete="CASCADE"
        ),
        sa.CheckConstraint("state in ('pending', 'running', 'succeeded', 'failed')", name="state"),
        sa.CheckConstraint(" and ".join(f"({name} is null) = ({IS_IDLE})" for name in claim), name="claim"),
        sa.CheckConstraint(
            f"(items is null) = ({IS_UNANSWERED}) and (observed_at is null) = ({IS_UNANSWERED})", name="items"
        ),
        sa.CheckConstraint("(code is null) = (state <> 'failed')", name="code"),
    )
    op.create_index(
        "provider_reads_waiting_idx",
        "provider_reads",
        ["club_id", "connection_id", "requested_at", "id"],
        postgresql_where=sa.text("state in ('pending', 'running')"),
    )
    op.create_index(
        "provider_reads_same_idx",
        "provider_reads",
        ["club_id", "connection_id", "params_key", "requested_at"],
    )
    op.create_index("provider_reads_requested_at_id_idx", "provider_reads", ["requested_at", "id"])
