"""Tools on what waits for a decision: for a person's token, and for an agent with its own key."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta

from lastcall.api.mcp.tool import AgentTool, Club, PageCursor, PageSize, Tool
from lastcall.api.v1.routes.inbox import (
    PutItem,
    PutItems,
    Sight,
    list_agent_inbox,
    list_club_inbox,
    put_inbox_items,
)
from lastcall.api.v1.shapes import Input, Shape
from lastcall.db.database import Database
from lastcall.decisions.inbox.item import Shelf
from lastcall.decisions.inbox.queries import PAGE_MOST
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


class PutAway(Input, frozen=True):
    """Which items are to be out of the person's sight, or back in it."""

    club: Club
    sight: Annotated[
        Sight,
        Meta(
            description="snooze puts items away until a time, dismiss until something happens to them; show brings them"
            " back."
        ),
    ]
    items: Annotated[list[PutItem], Meta(min_length=1, max_length=PAGE_MOST)]
    until: Annotated[datetime | None, Meta(description="Until when to snooze them; with snooze alone.")] = (
        None
    )


async def _of_person(db: Database, actor: Actor, asked: ListInbox) -> Shape:
    answer: Shape = await list_club_inbox.fn(db, actor, asked.club, asked.shelf, asked.limit, asked.cursor)
    return answer


async def _put(db: Database, actor: Actor, asked: PutAway) -> Shape:
    data = PutItems(items=asked.items, until=asked.until)
    answer: Shape = await put_inbox_items.fn(db, actor, asked.club, asked.sight, data)
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
    Tool(
        name="put_away",
        words="Snooze or dismiss items of the person's own inbox, or show them again. It decides none of them.",
        asked=PutAway,
        run=_put,
        repeats=True,
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
