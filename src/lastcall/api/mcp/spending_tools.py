"""Tools of agents on what they cost."""

from __future__ import annotations

from typing import Any

from lastcall.api.mcp.tool import AgentTool
from lastcall.api.v1.routes.agent_costs import CostReport, report_one_cost
from lastcall.people.agent_grants import AgentGrant

TOOLS: tuple[AgentTool[Any], ...] = (
    AgentTool(
        name="report_cost",
        words="Report what you cost, in cents. When the answer says that you are stopped, do nothing more that costs.",
        asked=CostReport,
        run=lambda db, agent, asked: report_one_cost.fn(db=db, agent=agent, data=asked),
        grant=AgentGrant.REPORT_COSTS,
        repeats=True,
    ),
)
