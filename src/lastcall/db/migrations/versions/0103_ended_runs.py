"""Runs of agents are found by when they ended, to be removed ninety days later."""

from __future__ import annotations

from lastcall.db.migrations.indexes import create_index_concurrently

revision = "0103_ended_runs"
down_revision = "0116_spending"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_index_concurrently("agent_runs_finished_at_idx", "agent_runs", ["finished_at"])
