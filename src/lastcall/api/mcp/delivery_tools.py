"""Tools of an agent with its own key, on what it is told."""

from __future__ import annotations

from typing import Any

from lastcall.api.mcp.agent_tools import NoArguments
from lastcall.api.mcp.tool import AgentTool
from lastcall.api.v1.routes.agent_deliveries import Acknowledge, AgentDeliveries, deliveries_shape
from lastcall.api.v1.shapes import Shape, known_in
from lastcall.db.database import Database
from lastcall.decisions.deliveries.handing import acknowledge, hand_over
from lastcall.people.actor import AgentActor


class Acknowledged(Shape, frozen=True):
    """How many of them were yours and not acknowledged yet."""

    count: int


async def _fetch(db: Database, agent: AgentActor, _: NoArguments) -> AgentDeliveries:
    handed, _again_in = await hand_over(db, agent)
    return deliveries_shape(handed)


async def _acknowledge(db: Database, agent: AgentActor, asked: Acknowledge) -> Acknowledged:
    ids = [known_in(each, f"ids.{number}") for number, each in enumerate(asked.ids)]
    return Acknowledged(count=await acknowledge(db, agent, ids))


TOOLS: tuple[AgentTool[Any], ...] = (
    AgentTool(
        name="fetch_deliveries",
        words="What you were told: what became of what you asked for, and what was archived. Acknowledge what you have,"
        " else it is handed over again.",
        asked=NoArguments,
        run=_fetch,
        grant=None,
    ),
    AgentTool(
        name="acknowledge_deliveries",
        words="Say that you have these deliveries, so that they are handed over no more.",
        asked=Acknowledge,
        run=_acknowledge,
        grant=None,
        repeats=True,
    ),
)
