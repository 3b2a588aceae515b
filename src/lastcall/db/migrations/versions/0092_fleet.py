"""How many clubs an account takes and how much it writes a day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0092_fleet"
down_revision = "0096_telemetry"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name, usual in (("capacity", "100"), ("reserved_headroom", "15"), ("writes_per_day", "1000")):
        op.add_column("accounts", sa.Column(name, sa.Integer, nullable=False, server_default=sa.text(usual)))
    op.add_column("accounts", sa.Column("joined_on", sa.Date))
    for name, rule in (
        ("capacity", "capacity between 1 and 10000"),
        ("headroom", "reserved_headroom between 0 and capacity"),
        ("writes", "writes_per_day between 1 and 100000"),
    ):
        op.create_check_constraint(op.f(f"accounts_{name}_check"), "accounts", rule)
    op.add_column("allowances", sa.Column("writes_day", sa.Date))
    op.add_column("allowances", sa.Column("writes", sa.Integer, nullable=False, server_default=sa.text("0")))
