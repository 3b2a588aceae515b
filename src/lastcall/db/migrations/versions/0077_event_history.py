"""What became of the operations of one event."""

from __future__ import annotations

from lastcall.db.migrations.indexes import create_index_concurrently

revision = "0077_event_history"
down_revision = "0076_bans_evidence"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_index_concurrently(
        "operations_event_past_idx",
        "operations",
        ["club_id", "event_id", "completed_at", "id"],
        where="event_id is not null and completed_at is not null",
    )
