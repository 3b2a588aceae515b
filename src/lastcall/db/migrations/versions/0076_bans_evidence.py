"""Evidence of the group's bans."""

from __future__ import annotations

from alembic import op

revision = "0076_bans_evidence"
down_revision = "0060_events"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_constraint(op.f("evidence_kind_check"), "evidence")
    op.create_check_constraint(op.f("evidence_kind_check"), "evidence", "kind in ('own_member', 'bans')")
