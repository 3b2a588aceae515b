"""How long what agents report of their runs is kept."""

from __future__ import annotations

from datetime import timedelta

from lastcall.people.data_retention import Rule

RULES = (
    Rule("what an agent reported of a run, after it ended", "agent_runs", "finished_at", timedelta(days=90)),
)
