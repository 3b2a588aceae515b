"""The answers to creating calls, by the key that the caller gave each."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0055_idempotency_keys"
down_revision = "0030_mail_and_limits"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("person_id", sa.Uuid, sa.ForeignKey("people.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("answer", sa.LargeBinary),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("lastcall_now()"),
            nullable=False,
        ),
        sa.CheckConstraint("octet_length(digest) = 32", name="digest"),
    )
    op.create_index("idempotency_keys_created_at_idx", "idempotency_keys", ["created_at"])
