"""Raw aggregates of a group, how completely they were collected, and its audit log without people."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0096_telemetry"
down_revision = "0090_connection_life"
branch_labels = None
depends_on = None

NOW = sa.text("lastcall_now()")


def _id(name: str, *, key: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.Uuid, nullable=False, primary_key=key)


def _text(name: str, *, key: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, primary_key=key)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=nullable)


def _counted(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, server_default=sa.text("0"))


def _time(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _now(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, server_default=NOW)


def _to(table: str, column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["club_id", column], [f"{table}.club_id", f"{table}.id"], ondelete="CASCADE"
    )


def upgrade() -> None:
    _create_samples()
    _create_coverage()
    _create_audit()


def _create_samples() -> None:
    op.create_table(
        "telemetry_samples",
        _id("club_id", key=True),
        _id("id", key=True),
        _id("connection_id"),
        _time("epoch"),
        _text("poll_id"),
        _time("observed_at"),
        _now("received_at"),
        _number("member_count", nullable=True),
        _number("population"),
        _number("instance_count"),
        _to("connections", "connection_id"),
        sa.UniqueConstraint("club_id", "connection_id", "poll_id"),
        sa.CheckConstraint("member_count >= 0", name="member_count"),
        sa.CheckConstraint("population >= 0", name="population"),
        sa.CheckConstraint("instance_count between 0 and 200", name="instance_count"),
    )
    op.create_index(
        "telemetry_samples_observed_idx", "telemetry_samples", ["club_id", "connection_id", "observed_at"]
    )
    op.create_table(
        "telemetry_instances",
        _id("club_id", key=True),
        _id("sample_id", key=True),
        _text("location", key=True),
        _text("world_id"),
        _number("population"),
        _to("telemetry_samples", "sample_id"),
        sa.CheckConstraint("population >= 0", name="population"),
        sa.CheckConstraint("position('usr_' in lower(location)) = 0", name="location"),
    )


def _create_coverage() -> None:
    op.create_table(
        "telemetry_coverage",
        _id("club_id", key=True),
        _id("id", key=True),
        _id("connection_id"),
        _time("epoch"),
        _text("state"),
        _time("started_at"),
        _time("ended_at", nullable=True),
        _to("connections", "connection_id"),
        sa.CheckConstraint("state in ('observed', 'stale', 'degraded', 'unknown')", name="state"),
        sa.CheckConstraint("ended_at >= started_at", name="order"),
    )
    op.create_index(
        "telemetry_coverage_open_key",
        "telemetry_coverage",
        ["club_id", "connection_id"],
        unique=True,
        postgresql_where=sa.text("ended_at is null"),
    )
    op.create_index(
        "telemetry_coverage_started_idx", "telemetry_coverage", ["club_id", "connection_id", "started_at"]
    )


def _create_audit() -> None:
    op.create_table(
        "audit_scans",
        _id("club_id", key=True),
        _id("id", key=True),
        _id("connection_id"),
        _time("epoch"),
        _time("starts_at"),
        _time("ends_at"),
        _counted("next_offset"),
        _now("created_at"),
        _time("finished_at", nullable=True),
        _to("connections", "connection_id"),
        sa.CheckConstraint("starts_at < ends_at", name="order"),
        sa.CheckConstraint("next_offset >= 0", name="next_offset"),
    )
    op.create_index(
        "audit_scans_open_key",
        "audit_scans",
        ["club_id", "connection_id", "epoch"],
        unique=True,
        postgresql_where=sa.text("finished_at is null"),
    )
    op.create_index("audit_scans_ends_idx", "audit_scans", ["club_id", "connection_id", "ends_at"])
    op.create_table(
        "audit_entries",
        _id("club_id", key=True),
        _id("connection_id", key=True),
        _text("entry_id", key=True),
        _time("at"),
        _text("event"),
        _to("connections", "connection_id"),
    )
    op.create_index("audit_entries_at_idx", "audit_entries", ["club_id", "connection_id", "at"])
