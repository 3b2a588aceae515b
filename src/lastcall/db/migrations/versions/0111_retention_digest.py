"""What was archived by itself on a day, found by index."""

from __future__ import annotations

from lastcall.db.migrations.indexes import create_index_concurrently

revision = "0111_retention_digest"
down_revision = "0108_invite_uses"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_index_concurrently(
        "retention_idle_idx", "retention", ["club_id", "archived_at"], where="archived_reason = 'idle'"
    )
