"""Tools of staff who manage a club's agents. Keys and secrets are made on pages and by the HTTP API only: what a tool
answers is read by whoever runs the model.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from lastcall.api.mcp.tool import Club, Tool
from lastcall.api.v1.routes.agents import block_one_agent, list_agents, pause_one_agent, resume_one_agent
from lastcall.api.v1.shapes import Id, Input


class OneClub(Input, frozen=True):
    """Which club is meant."""

    club: Club


class OneAgent(Input, frozen=True):
    """Which agent is meant."""

    club: Club
    agent_id: Annotated[Id, Meta(description="The agent's id, as list_agents tells it.")]


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="list_agents",
        words="The agents of a club: what each was given, whether it is paused or blocked, who answers for it.",
        asked=OneClub,
        run=lambda db, actor, asked: list_agents.fn(db=db, actor=actor, club=asked.club),
        reads=True,
    ),
    Tool(
        name="pause_agent",
        words="Stop what an agent of the club does until somebody resumes it. Its key stays good.",
        asked=OneAgent,
        run=lambda db, actor, asked: pause_one_agent.fn(
            db=db, actor=actor, club=asked.club, agent_id=asked.agent_id
        ),
        repeats=True,
    ),
    Tool(
        name="resume_agent",
        words="Let an agent of the club go on that somebody paused.",
        asked=OneAgent,
        run=lambda db, actor, asked: resume_one_agent.fn(
            db=db, actor=actor, club=asked.club, agent_id=asked.agent_id
        ),
        repeats=True,
    ),
    Tool(
        name="block_agent",
        words="Shut an agent of the club out at once. Its keys end for good; only a person can make a new one.",
        asked=OneAgent,
        run=lambda db, actor, asked: block_one_agent.fn(
            db=db, actor=actor, club=asked.club, agent_id=asked.agent_id
        ),
        destroys=True,
        repeats=True,
    ),
)
