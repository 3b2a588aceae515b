"""Retention of every kind of item: its row has the item's own id, and an item can be brought back."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0105_retention"
down_revision = "0110_deliveries"
branch_labels = None
depends_on = None

ARCHIVED = (
    "case when archived_at is null"
    " then archived_reason is null and archived_by_kind is null and archived_by_person_id is null"
    " else case archived_by_kind"
    " when 'system' then archived_reason = 'idle' and archived_by_person_id is null"
    " when 'person' then archived_reason in ('manual', 'accepted_proposal')"
    " and archived_by_person_id is not null"
    " else false end end"
)


def upgrade() -> None:
    op.execute("update retention set id = join_request_id")
    op.drop_constraint("retention_club_id_join_request_id_key", "retention")
    op.create_index(
        "retention_club_id_join_request_id_idx",
        "retention",
        ["club_id", "join_request_id"],
        postgresql_where=sa.text("join_request_id is not null"),
    )
    op.drop_constraint(op.f("retention_source_check"), "retention")
    op.create_check_constraint(
        op.f("retention_source_check"),
        "retention",
        "num_nonnulls(join_request_id) = 1 and id = join_request_id",
    )
    op.drop_constraint(op.f("retention_archived_check"), "retention")
    op.create_check_constraint(op.f("retention_archived_check"), "retention", ARCHIVED)
    op.add_column("retention", sa.Column("revived_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("retention_refreshes", sa.Column("kind", sa.Text(), nullable=True))
