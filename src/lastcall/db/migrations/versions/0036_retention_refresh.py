"""Clubs whose pending items must be derived anew, because the club itself changed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036_retention_refresh"
down_revision = "0035_clubs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "retention_refreshes",
        sa.Column("club_id", sa.Uuid(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("after_id", sa.Uuid(), nullable=True),
        sa.ForeignKeyConstraint(
            ["club_id"], ["clubs.id"], name=op.f("retention_refreshes_club_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("club_id", name=op.f("retention_refreshes_pkey")),
    )
    op.create_index(
        op.f("retention_refreshes_asked_at_club_id_idx"), "retention_refreshes", ["asked_at", "club_id"]
    )
