"""What an agent is told, and how it says that it has it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, cast

from litestar import Request, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta

from lastcall.api.departure import unless_departed
from lastcall.api.v1.answers import answers
from lastcall.api.v1.requests import FOR_AGENTS, ApiRequest
from lastcall.api.v1.shapes import Id, Input, Shape, known_in
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.decisions.deliveries.handing import AT_ONCE, WAIT_MOST, AgentWaits, Handed, acknowledge
from lastcall.people.actor import AgentActor

TAGS = ["For agents"]

Wait = Annotated[
    int,
    QueryParameter(
        ge=0,
        le=int(WAIT_MOST.total_seconds()),
        description="Seconds to wait where nothing is there; the answer comes as soon as something is.",
    ),
]


class DeliverySource(Shape, frozen=True):
    """What a delivery is about: `kind` is `approval` or `decision`."""

    kind: str
    id: Id


class AgentDelivery(Shape, frozen=True):
    """Something that the agent is told. `data` holds ids, counts and choices, nothing of what the source says.
    `attempt`: how often it was handed over by now.
    """

    id: Id
    kind: str
    source: DeliverySource | None
    data: dict[str, Any]
    told_at: datetime
    attempt: int


class AgentDeliveries(Shape, frozen=True):
    """The oldest first. Acknowledge what you have; what is not acknowledged is handed over again after 30 seconds, then
    after a minute, and so on, eight times at most.
    """

    items: list[AgentDelivery]


class Acknowledge(Input, frozen=True):
    """The ids of the deliveries that you have."""

    ids: Annotated[list[Id], Meta(max_length=AT_ONCE)]


@get("/agent/deliveries", tags=TAGS, opt=FOR_AGENTS, responses=answers(409))
async def fetch_deliveries(
    request: ApiRequest, agent: NamedDependency[AgentActor], wait: Wait = 0
) -> AgentDeliveries:
    """What you were told: what became of what you asked for, what was archived. A newer call ends one that waits."""
    waits = _waits(request)
    handed = await unless_departed(request, waits.fetch(agent, timedelta(seconds=wait)))
    return deliveries_shape(handed)


@post("/agent/deliveries/ack", status_code=204, tags=TAGS, opt=FOR_AGENTS, responses=answers(409, body=True))
async def acknowledge_deliveries(
    db: NamedDependency[Database], agent: NamedDependency[AgentActor], data: JSONBody[Acknowledge]
) -> None:
    """Say that you have these. Saying it twice is saying it once."""
    await acknowledge(db, agent, [known_in(each, f"ids.{number}") for number, each in enumerate(data.ids)])


def deliveries_shape(handed: list[Handed]) -> AgentDeliveries:
    """As agents get them, over the API and MCP alike."""
    return AgentDeliveries(
        items=[
            AgentDelivery(
                id=encode_id(one.id),
                kind=one.kind,
                source=None
                if one.source is None
                else DeliverySource(kind=one.source.kind, id=encode_id(one.source.id)),
                data=dict(one.data),
                told_at=one.told_at,
                attempt=one.attempt,
            )
            for one in handed
        ]
    )


def _waits(request: Request[Any, Any, Any]) -> AgentWaits:
    return cast("AgentWaits", request.app.state.agent_waits)


HANDLERS = (fetch_deliveries, acknowledge_deliveries)
