"""The clock, the directory and the record of applied routines."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001_clock"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        create function lastcall_now() returns timestamptz
        language sql volatile
        as $$ select clock_timestamp() $$
        """
    )
    op.create_table(
        "directory",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("club_id", sa.Uuid, nullable=False),
    )
    op.create_index(None, "directory", ["club_id"])
    op.create_table(
        "routine_versions",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column(
            "applied_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("lastcall_now()")
        ),
    )
