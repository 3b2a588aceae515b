"""Lists of operations by kind and state, and of what became of one person, world or post."""

from __future__ import annotations

import sqlalchemy as sa

from lastcall.db.migrations.indexes import create_index_concurrently, drop_index_concurrently

revision = "0075_operation_lists"
down_revision = "0066_operation_link_indexes"
branch_labels = None
depends_on = None

SUBJECT = "lower(coalesce(payload ->> 'targetUserId', payload ->> 'worldId', payload ->> 'postId'))"


def upgrade() -> None:
    create_index_concurrently(
        "operations_agenda_idx",
        "operations",
        ["club_id", "kind", "state", "due_at", "id"],
        where="completed_at is null",
    )
    create_index_concurrently(
        "operations_past_idx",
        "operations",
        ["club_id", "kind", "state", "completed_at", "id"],
        where="completed_at is not null",
    )
    create_index_concurrently(
        "operations_subject_idx",
        "operations",
        ["club_id", sa.text(SUBJECT), "completed_at", "id"],
        where="completed_at is not null",
    )
    drop_index_concurrently("operations_upcoming_idx", "operations")
    drop_index_concurrently("operations_history_idx", "operations")
