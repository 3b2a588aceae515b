"""Retention of approvals, beside that of join requests."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0106_approval_retention"
down_revision = "0113_inbox"
branch_labels = None
depends_on = None

SOURCE = "num_nonnulls(join_request_id, approval_id) = 1 and id = coalesce(join_request_id, approval_id)"


def upgrade() -> None:
    op.add_column("retention", sa.Column("approval_id", sa.Uuid(), nullable=True))
    op.create_foreign_key(
        op.f("retention_club_id_approval_id_fkey"),
        "retention",
        "approvals",
        ["club_id", "approval_id"],
        ["club_id", "id"],
        ondelete="CASCADE",
    )
    op.create_index(
        "retention_club_id_approval_id_idx",
        "retention",
        ["club_id", "approval_id"],
        postgresql_where=sa.text("approval_id is not null"),
    )
    op.drop_constraint(op.f("retention_source_check"), "retention")
    op.create_check_constraint(op.f("retention_source_check"), "retention", SOURCE)
