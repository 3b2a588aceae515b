"""The event of an operation is one of its own club's."""

from __future__ import annotations

from alembic import op

revision = "0067_operation_events"
down_revision = "0080_notices"
branch_labels = None
depends_on = None

NAMES = {column: f"operations_club_id_{column}_fkey" for column in ("event_id", "dependency_event_id")}


def upgrade() -> None:
    for column, name in NAMES.items():
        # First for new rows, then for those that are there: writers are not kept out while these are read.
        op.execute(f"alter table operations drop constraint if exists {name}")
        op.execute(
            f"alter table operations add constraint {name} foreign key (club_id, {column})"
            " references events (club_id, id) on delete cascade not valid"
        )
    with op.get_context().autocommit_block():
        for name in NAMES.values():
            op.execute(f"alter table operations validate constraint {name}")
