"""Tools on what waits for a decision and leaves by itself: when, and keep, archive, revive by hand."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from lastcall.api.mcp.tool import Club, Tool
from lastcall.api.v1.routes.retention import KindName, ManyItems, SeenItem, control_retention, show_retention
from lastcall.api.v1.shapes import Id, Input, Shape
from lastcall.db.database import Database
from lastcall.decisions.retention.many import MOST_ITEMS, Control
from lastcall.people.actor import Actor


class OneItem(Input, frozen=True):
    """Which item is meant."""

    club: Club
    kind: KindName
    item_id: Annotated[Id, Meta(description="The id of the join request or the approval.")]


class ControlItems(Input, frozen=True):
    """What is to be done to which items."""

    club: Club
    control: Annotated[
        Control,
        Meta(
            description="keep and unkeep say whether they may be archived by themselves; archive takes them out of view"
            " and revive brings them back, with their days beginning anew."
        ),
    ]
    items: Annotated[list[SeenItem], Meta(min_length=1, max_length=MOST_ITEMS)]


async def _explain(db: Database, actor: Actor, asked: OneItem) -> Shape:
    answer: Shape = await show_retention.fn(db, actor, asked.club, asked.kind, asked.item_id)
    return answer


async def _control(db: Database, actor: Actor, asked: ControlItems) -> Shape:
    many = ManyItems(items=asked.items)
    answer: Shape = await control_retention.fn(db, actor, asked.club, asked.control, many)
    return answer


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="explain_retention",
        words="When an item that waits for a decision will be archived by itself, or why it will not.",
        asked=OneItem,
        run=_explain,
        reads=True,
    ),
    Tool(
        name="control_retention",
        words="Keep, unkeep, archive or revive items that wait for a decision. It decides none of them.",
        asked=ControlItems,
        run=_control,
        repeats=True,
    ),
)
