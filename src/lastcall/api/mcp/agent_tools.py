"""Tools of an agent with its own key, on itself and on what its club publishes."""

from __future__ import annotations

from typing import Any

from lastcall.api.mcp.tool import AgentTool
from lastcall.api.v1.routes.agent import who_am_i
from lastcall.api.v1.shapes import Input


class NoArguments(Input, frozen=True):
    """Nothing is asked."""


TOOLS: tuple[AgentTool[Any], ...] = (
    AgentTool(
        name="who_am_i",
        words="Which agent you are, of which club, what you were given, and whether you are paused.",
        asked=NoArguments,
        run=lambda db, agent, _: who_am_i.fn(db=db, agent=agent),
        grant=None,
        reads=True,
    ),
)
