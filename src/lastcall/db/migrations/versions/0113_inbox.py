"""What waits is found without walking over what is archived, and what a person put away is kept for them alone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from lastcall.db.migrations.indexes import create_index_concurrently, drop_index_concurrently

revision = "0113_inbox"
down_revision = "0112_delivery_sources"
branch_labels = None
depends_on = None

NOW = sa.text("lastcall_now()")
ARCHIVED = """
    update join_requests j set is_archived = true from retention r
     where r.club_id = j.club_id and r.id = j.id and r.archived_at is not null
"""


def _is_archived() -> sa.Column[bool]:
    return sa.Column("is_archived", sa.Boolean, nullable=False, server_default=sa.text("false"))


def upgrade() -> None:
    for table in ("join_requests", "approvals"):
        op.add_column(table, _is_archived(), if_not_exists=True)
    op.execute(ARCHIVED)
    op.create_table(
        "inbox_dismissals",
        sa.Column("club_id", sa.Uuid, sa.ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("person_id", sa.Uuid, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("item_id", sa.Uuid, nullable=False),
        sa.Column("until", sa.DateTime(timezone=True)),
        sa.Column("activity_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=NOW),
        sa.UniqueConstraint("club_id", "person_id", "item_id"),
        if_not_exists=True,
    )
    op.create_index("inbox_dismissals_person_id_idx", "inbox_dismissals", ["person_id"], if_not_exists=True)
    for table, pending in (("join_requests", "pending_approval"), ("approvals", "pending")):
        create_index_concurrently(
            f"{table}_inbox_idx",
            table,
            ["club_id", "is_archived", "activity_at", "id"],
            where=f"status = '{pending}'",
        )
    drop_index_concurrently("approvals_pending_idx", "approvals")
