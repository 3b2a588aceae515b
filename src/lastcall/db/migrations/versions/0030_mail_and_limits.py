"""Limits counted in the database, and the ledger of outgoing mail."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030_mail_and_limits"
down_revision = "0021_people_indexes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rate_limits",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("key_hash", sa.LargeBinary, primary_key=True),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
    )
    op.create_index("rate_limits_ends_at_idx", "rate_limits", ["ends_at"])
    op.create_table(
        "outgoing_mail",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False, server_default=sa.text("'sending'")),
        sa.Column("error", sa.Text),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("lastcall_now()")
        ),
        sa.Column("sent_at", sa.DateTime(timezone=True)),
        sa.Column("bounced_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint("state in ('sending', 'sent', 'failed', 'unknown')", name="state"),
        sa.CheckConstraint("(state = 'sent') = (sent_at is not null)", name="sent_at"),
    )
    op.create_index("outgoing_mail_created_at_id_idx", "outgoing_mail", ["created_at", "id"])
    op.create_index(
        "outgoing_mail_trouble_idx",
        "outgoing_mail",
        ["created_at", "id"],
        postgresql_where=sa.text("state <> 'sent' or bounced_at is not null"),
    )
