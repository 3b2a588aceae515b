"""Requests, their operations, and results that came too late to count."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007_operations"
down_revision = "0006_connections"
branch_labels = None
depends_on = None

NOW = sa.text("lastcall_now()")
BOUNDED = "octet_length(result::text) <= 8192"


def upgrade() -> None:
    _create_requests()
    _create_operations()
    _create_indexes()
    _create_late_results()


def _time(name: str, *, nullable: bool = False, default: sa.TextClause | None = None) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable, server_default=default)


def _tenant_key() -> list[sa.schema.SchemaItem]:
    return [sa.Column("club_id", sa.Uuid, primary_key=True), sa.Column("id", sa.Uuid, primary_key=True)]


def _to(table: str, column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["club_id", column], [f"{table}.club_id", f"{table}.id"], ondelete="CASCADE"
    )


def _create_requests() -> None:
    op.create_table(
        "operation_requests",
        *_tenant_key(),
        sa.Column("request_key", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("size", sa.SmallInteger, nullable=False),
        sa.Column("created_by", sa.Uuid, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("digest", postgresql.BYTEA, nullable=False),
        sa.Column("schedule", postgresql.JSONB, nullable=False),
        _time("due_at"),
        _time("created_at", default=NOW),
        sa.ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        sa.UniqueConstraint("club_id", "request_key"),
        sa.CheckConstraint("request_key ~ '^[A-Za-z0-9_-]{8,100}$'", name="request_key"),
        sa.CheckConstraint("octet_length(digest) = 32", name="digest"),
        sa.CheckConstraint("size between 1 and 100", name="size"),
    )


# Any row of the shape of an operation: the table does not exist yet.
_OPERATION_IS_WHOLE = """
    create function operation_is_whole(p_row record) returns boolean
    language plpgsql immutable
    as $$
    begin
        return concat(
                p_row.state,
                num_nonnulls(
                    p_row.claim_nonce, p_row.claim_account_id, p_row.claim_worker_id, p_row.claim_journal_id,
                    p_row.claim_fencing_token, p_row.claim_generation, p_row.claim_expires_at),
                num_nonnulls(p_row.submitted_at), num_nonnulls(p_row.completed_at), num_nonnulls(p_row.code)
            ) in (
                'pending0000', 'pending0001', 'claimed7000', 'submitted7100', 'succeeded7110', 'rejected7111',
                'rejected0011', 'indeterminate7111', 'cancelled0011', 'missed0011')
            and p_row.ready_at >= p_row.due_at
            and p_row.lane between 1 and 3
            and (p_row.schedule_kind is null or p_row.schedule_kind in ('immediate', 'fixed'))
            and (p_row.result is null or octet_length(p_row.result::text) <= 8192);
    end
    $$
"""


def _create_operations() -> None:
    op.execute(_OPERATION_IS_WHOLE)
    op.create_table(
        "operations",
        *_tenant_key(),
        sa.Column("request_id", sa.Uuid, nullable=False),
        sa.Column("position", sa.SmallInteger, nullable=False),
        sa.Column("connection_id", sa.Uuid, nullable=False),
        _time("epoch"),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("payload", postgresql.JSONB, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("schedule_kind", sa.Text),
        _time("due_at"),
        _time("ready_at"),
        sa.Column("lane", sa.SmallInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False, server_default=sa.text("'pending'")),
        sa.Column("revision", sa.Integer, nullable=False, server_default=sa.text("1")),
        sa.Column("actor_id", sa.Uuid, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("preflight_failures", sa.SmallInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("claim_nonce", sa.Uuid),
        sa.Column("claim_account_id", sa.Uuid),
        sa.Column("claim_worker_id", sa.Uuid),
        sa.Column("claim_journal_id", sa.Uuid),
        sa.Column("claim_fencing_token", sa.BigInteger),
        sa.Column("claim_generation", sa.Integer),
        _time("claim_expires_at", nullable=True),
        _time("submitted_at", nullable=True),
        sa.Column("result", postgresql.JSONB),
        sa.Column("code", sa.Text),
        _time("completed_at", nullable=True),
        _time("created_at", default=NOW),
        _to("operation_requests", "request_id"),
        _to("connections", "connection_id"),
        sa.UniqueConstraint("club_id", "request_id", "target"),
        sa.CheckConstraint("operation_is_whole(operations)", name="whole"),
    )


def _create_indexes() -> None:
    """The table is new, so nobody waits for these."""
    pending, claimed, submitted = (
        sa.text(f"state = '{state}'") for state in ("pending", "claimed", "submitted")
    )
    for name, columns, where in (
        ("runnable", ["club_id", "connection_id", "epoch", "lane", "ready_at", "id"], pending),
        ("pending_due", ["due_at", "id"], pending),
        ("claimed_due", ["due_at", "id"], claimed),
        ("claimed_expiry", ["claim_expires_at", "id"], claimed),
        ("submitted_expiry", ["claim_expires_at", "id"], submitted),
        ("upcoming", ["club_id", "kind", "due_at", "id"], sa.text("completed_at is null")),
        ("history", ["club_id", "kind", "completed_at", "id"], sa.text("completed_at is not null")),
    ):
        op.create_index(f"operations_{name}_idx", "operations", columns, postgresql_where=where)


def _create_late_results() -> None:
    op.create_table(
        "late_results",
        *_tenant_key(),
        sa.Column("operation_id", sa.Uuid, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("code", sa.Text),
        sa.Column("result", postgresql.JSONB),
        _time("reported_at", default=NOW),
        _to("operations", "operation_id"),
        sa.UniqueConstraint("club_id", "operation_id"),
        sa.CheckConstraint("outcome in ('succeeded', 'rejected', 'indeterminate')", name="outcome"),
        sa.CheckConstraint(BOUNDED, name="result"),
    )
