"""Retention, beside its source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005_decisions"
down_revision = "0004_access"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "retention",
        sa.Column("club_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("join_request_id", sa.Uuid(), nullable=True),
        sa.Column("keep", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("archived_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("archived_reason", sa.Text(), nullable=True),
        sa.Column("archived_by_kind", sa.Text(), nullable=True),
        sa.Column("archived_by_person_id", sa.Uuid(), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("archive_version", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("source_activity_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("lastcall_now()"), nullable=False
        ),
        sa.Column(
            "updated_at", sa.DateTime(timezone=True), server_default=sa.text("lastcall_now()"), nullable=False
        ),
        sa.CheckConstraint(
            "case when archived_at is null"
            " then archived_reason is null and archived_by_kind is null and archived_by_person_id is null"
            " else archived_reason in ('idle', 'manual') and case archived_by_kind"
            " when 'system' then archived_by_person_id is null"
            " when 'person' then archived_by_person_id is not null"
            " else false end end",
            name=op.f("retention_archived_check"),
        ),
        sa.CheckConstraint("num_nonnulls(join_request_id) = 1", name=op.f("retention_source_check")),
        sa.CheckConstraint(
            "version >= 1 and archive_version between 0 and version", name=op.f("retention_versions_check")
        ),
        sa.ForeignKeyConstraint(
            ["archived_by_person_id"], ["people.id"], name=op.f("retention_archived_by_person_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["club_id", "join_request_id"],
            ["join_requests.club_id", "join_requests.id"],
            name=op.f("retention_club_id_join_request_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("club_id", "id", name=op.f("retention_pkey")),
        sa.UniqueConstraint("club_id", "join_request_id", name=op.f("retention_club_id_join_request_id_key")),
    )
