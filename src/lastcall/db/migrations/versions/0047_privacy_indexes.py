"""What is to be forgotten, by the time at which its use ended; invites by who made them
and whom they are for.
"""

from __future__ import annotations

import sqlalchemy as sa

from lastcall.db.migrations.indexes import create_index_concurrently

revision = "0047_privacy_indexes"
down_revision = "0036_retention_refresh"
branch_labels = None
depends_on = None

END = sa.text("least(expires_at, revoked_at)")


def upgrade() -> None:
    create_index_concurrently("sign_in_links_expires_at_idx", "sign_in_links", ["expires_at"])
    create_index_concurrently("sessions_end_idx", "sessions", [END])
    create_index_concurrently("api_tokens_end_idx", "api_tokens", [END])
    create_index_concurrently(
        "join_requests_address_end_idx",
        "join_requests",
        ["decided_at"],
        where="email is not null and email <> 'forgotten'",
    )
    create_index_concurrently("invites_invited_by_idx", "invites", ["invited_by"])
    create_index_concurrently(
        "invites_lower_email_idx", "invites", [sa.text("lower(email)")], where="email is not null"
    )
