"""What an agent is told goes with the agent, and what is told of an approval or a decision goes with that."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0112_delivery_sources"
down_revision = "0102_approvals"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table, column in (("agents", "agent_id"), ("approvals", "approval_id"), ("decisions", "decision_id")):
        op.create_foreign_key(
            op.f(f"deliveries_club_id_{column}_fkey"),
            "deliveries",
            table,
            ["club_id", column],
            ["club_id", "id"],
            ondelete="CASCADE",
        )
    for column in ("approval_id", "decision_id"):
        op.create_index(
            f"deliveries_club_id_{column}_idx",
            "deliveries",
            ["club_id", column],
            postgresql_where=sa.text(f"{column} is not null"),
        )
