"""What a person records about an unknown outcome is called a finding, in the database too."""

from __future__ import annotations

from alembic import op

revision = "0099_findings"
down_revision = "0098_ended_epochs"
branch_labels = None
depends_on = None

CONSTRAINTS = (
    "pkey",
    "club_id_operation_id_number_key",
    "note_check",
    "number_check",
    "reason_check",
    "verdict_check",
    "club_id_operation_id_fkey",
    "settled_by_fkey",
)


def upgrade() -> None:
    op.rename_table("operation_settlements", "operation_findings")
    for name in CONSTRAINTS:
        op.execute(
            f"alter table operation_findings"
            f" rename constraint operation_settlements_{name} to operation_findings_{name}"
        )
