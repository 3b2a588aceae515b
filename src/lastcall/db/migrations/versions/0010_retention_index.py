"""The index of join requests that are due some day: built concurrently, and nothing else (RET-24)."""

from __future__ import annotations

from lastcall.db.migrations.indexes import create_index_concurrently

revision = "0010_retention_index"
down_revision = "0007_operations"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_index_concurrently(
        "join_requests_archive_due_at_idx",
        "join_requests",
        ["archive_due_at", "id"],
        where="status = 'pending_approval' and archive_due_at is not null",
    )
