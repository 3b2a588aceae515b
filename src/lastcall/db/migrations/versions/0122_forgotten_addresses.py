"""An invite whose address is forgotten goes on saying that it was for one, so it is no longer among those to forget."""

from __future__ import annotations

import sqlalchemy as sa

from lastcall.db.migrations.indexes import create_index_concurrently, drop_index_concurrently

revision = "0122_forgotten_addresses"
down_revision = "0103_ended_runs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    drop_index_concurrently("invites_address_end_idx", "invites")
    create_index_concurrently(
        "invites_address_end_idx",
        "invites",
        [sa.text("least(expires_at, revoked_at, accepted_at)"), "id"],
        where="email is not null and email <> 'forgotten'",
    )
