"""Epochs that ended and of which something unsent is left to reject."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0098_ended_epochs"
down_revision = "0094_reads"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "ended_epochs",
        sa.Column("club_id", sa.Uuid, primary_key=True),
        sa.Column("connection_id", sa.Uuid, primary_key=True),
        sa.Column("epoch", sa.DateTime(timezone=True), primary_key=True),
        sa.Column("code", sa.Text, nullable=False),
        sa.Column(
            "ended_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("lastcall_now()")
        ),
        sa.ForeignKeyConstraint(
            ["club_id", "connection_id"], ["connections.club_id", "connections.id"], ondelete="CASCADE"
        ),
        sa.CheckConstraint("code in ('connection_changed', 'database_restored')", name="code"),
    )
    op.create_index("ended_epochs_ended_at_connection_id_idx", "ended_epochs", ["ended_at", "connection_id"])
