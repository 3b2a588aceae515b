"""What hangs on an event and on a creation, found among what is not over; and the rows that stood before are held to
the new rules."""

from __future__ import annotations

from alembic import op

from lastcall.db.migrations.indexes import create_index_concurrently

revision = "0066_operation_link_indexes"
down_revision = "0065_operation_links"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_index_concurrently(
        "operations_event_idx",
        "operations",
        ["club_id", "event_id", "id"],
        where="event_id is not null and completed_at is null",
    )
    create_index_concurrently(
        "operations_dependents_idx",
        "operations",
        ["club_id", "depends_on", "id"],
        where="depends_on is not null and completed_at is null",
    )
    create_index_concurrently(
        "operations_dependency_event_idx",
        "operations",
        ["club_id", "dependency_event_id", "id"],
        where="dependency_event_id <> event_id and completed_at is null",
    )
    with op.get_context().autocommit_block():
        op.execute("alter table operations validate constraint operations_whole_check")
        op.execute("alter table operations validate constraint operations_club_id_depends_on_fkey")
