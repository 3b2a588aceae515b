"""Tools on what waits for a decision: for a person's token, and for an agent with its own key."""

from __future__ import annotations

from typing import Any

from lastcall.api.mcp.tool import AgentTool, Club, PageCursor, PageSize, Tool
from lastcall.api.v1.routes.inbox import list_agent_inbox, list_club_inbox
from lastcall.api.v1.shapes import Input, Shape
from lastcall.db.database import Database
from lastcall.decisions.inbox.item import Shelf
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.agent_grants import AgentGrant


class ListInbox(Input, frozen=True):
    """Which club, shelf and page are wanted."""

    club: Club
    shelf: Shelf = Shelf.WAITING
    limit: PageSize = 20
    cursor: PageCursor | None = None


class ListOwnInbox(Input, frozen=True):
    """Which shelf and page are wanted."""

    shelf: Shelf = Shelf.WAITING
    limit: PageSize = 20
    cursor: PageCursor | None = None


async def _of_person(db: Database, actor: Actor, asked: ListInbox) -> Shape:
    answer: Shape = await list_club_inbox.fn(db, actor, asked.club, asked.shelf, asked.limit, asked.cursor)
    return answer


async def _of_agent(db: Database, agent: AgentActor, asked: ListOwnInbox) -> Shape:
    answer: Shape = await list_agent_inbox.fn(db, agent, asked.shelf, asked.limit, asked.cursor)
    return answer


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="list_inbox",
        words="What waits for a decision in a club, why, when it is archived by itself, and what may be done.",
        asked=ListInbox,
        run=_of_person,
        reads=True,
    ),
)
AGENT_TOOLS: tuple[AgentTool[Any], ...] = (
    AgentTool(
        name="list_waiting",
        words="What waits for a decision in your club, without people's names and addresses.",
        asked=ListOwnInbox,
        run=_of_agent,
        grant=AgentGrant.READ_INBOX,
        reads=True,
    ),
)
