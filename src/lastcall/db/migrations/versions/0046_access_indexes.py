"""Invites by age and by the end of those with an address; join requests by person."""

from __future__ import annotations

import sqlalchemy as sa

from lastcall.db.migrations.indexes import create_index_concurrently

revision = "0046_access_indexes"
down_revision = "0045_invites"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_index_concurrently("invites_club_id_created_at_id_idx", "invites", ["club_id", "created_at", "id"])
    create_index_concurrently(
        "invites_address_end_idx",
        "invites",
        [sa.text("least(expires_at, revoked_at, accepted_at)"), "id"],
        where="email is not null",
    )
    create_index_concurrently(
        "join_requests_person_id_club_id_idx", "join_requests", ["person_id", "club_id"]
    )
