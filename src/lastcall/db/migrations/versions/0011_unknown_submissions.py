"""The submissions of journals that the database did not know, each of which freezes its connection once."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011_unknown_submissions"
down_revision = "0010_retention_index"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "unknown_submissions",
        sa.Column("club_id", sa.Uuid, primary_key=True),
        sa.Column("connection_id", sa.Uuid, primary_key=True),
        sa.Column("nonce", sa.Text, primary_key=True),
        sa.Column("operation_id", sa.Uuid, nullable=False),
        sa.Column("reported_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["club_id", "connection_id"], ["connections.club_id", "connections.id"], ondelete="CASCADE"
        ),
    )
