"""What a connection waits for, when its group is looked at next, and how the last looks went.

A group that is connected already is looked at at once where its aggregates are read.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0090_connection_life"
down_revision = "0068_operation_deadlines"
branch_labels = None
depends_on = None

UNKNOWN = sa.text("'unknown'")
MOMENTS = ("next_look_at", "waiting_since", "last_attempt_at", "last_success_at", "disconnected_at")


def upgrade() -> None:
    for name in MOMENTS:
        op.add_column("connections", sa.Column(name, sa.DateTime(timezone=True)))
    for name in ("join_policy", "group_visibility"):
        op.add_column("connections", sa.Column(name, sa.Text, nullable=False, server_default=UNKNOWN))
    op.add_column("connections", sa.Column("last_fault", sa.Text))
    op.add_column(
        "connections", sa.Column("has_visitors", sa.Boolean, nullable=False, server_default=sa.false())
    )
    op.add_column(
        "connections",
        sa.Column("telemetry_failures", sa.Integer, nullable=False, server_default=sa.text("0")),
    )
    op.create_check_constraint(
        op.f("connections_join_policy_check"),
        "connections",
        "join_policy in ('free', 'request', 'invite', 'unknown')",
    )
    op.create_check_constraint(
        op.f("connections_group_visibility_check"),
        "connections",
        "group_visibility in ('public', 'private', 'unknown')",
    )
    op.execute(
        "update connections set next_look_at = lastcall_now() "
        "where state in ('active', 'degraded') and 'analytics' = any (features)"
    )
    op.execute("update connections set disconnected_at = updated_at where state = 'disconnected'")
