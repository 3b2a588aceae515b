"""Tools of an agent with its own key, on itself and on what its club publishes."""

from __future__ import annotations

from typing import Any

from lastcall.api.mcp.tool import AgentTool, PageCursor, PageSize
from lastcall.api.v1.routes.agent import list_published_events, who_am_i
from lastcall.api.v1.shapes import Input
from lastcall.people.agent_grants import AgentGrant


class NoArguments(Input, frozen=True):
    """Nothing is asked."""


class ListPublishedEvents(Input, frozen=True):
    """Which page is wanted."""

    limit: PageSize = 20
    cursor: PageCursor | None = None


TOOLS: tuple[AgentTool[Any], ...] = (
    AgentTool(
        name="who_am_i",
        words="Which agent you are, of which club, what you were given, and whether you are paused.",
        asked=NoArguments,
        run=lambda db, agent, _: who_am_i.fn(db=db, agent=agent),
        grant=None,
        reads=True,
    ),
    AgentTool(
        name="list_published_events",
        words="The club's published events that are not over, the next first.",
        asked=ListPublishedEvents,
        run=lambda db, agent, asked: list_published_events.fn(
            db=db, agent=agent, limit=asked.limit, cursor=asked.cursor
        ),
        grant=AgentGrant.READ_EVENTS,
        reads=True,
    ),
)
