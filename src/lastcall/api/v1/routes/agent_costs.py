"""What agents report that they cost."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from litestar import post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import Meta

from lastcall.api.v1.answers import answers
from lastcall.api.v1.requests import FOR_AGENTS
from lastcall.api.v1.shapes import Id, Input, Shape
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.people.actor import AgentActor
from lastcall.spending.costs import Cost, Reported, report_cost
from lastcall.spending.tables import DESCRIPTION_MOST

TAGS = ["For agents"]
Cents = Annotated[str, Meta(pattern=r"^[0-9]{1,10}(\.[0-9]{1,6})?$", examples=["12.5"])]
"""A decimal number as text, because a program's floating point would not keep it."""


class CostReport(Input, frozen=True):
    """One cost. `key` is your own name for it: reporting it again counts it once. `cents`: of the club's currency."""

    key: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:-]{1,200}$")]
    cents: Cents
    description: Annotated[str, Meta(max_length=DESCRIPTION_MOST)] = ""


class CostReported(Shape, frozen=True):
    """`isStopped`: a budget of yours or of the club is used up. Do nothing more that costs."""

    id: Id
    is_stopped: bool


@post("/agent/costs", status_code=200, tags=TAGS, opt=FOR_AGENTS, responses=answers(409, body=True))
async def report_one_cost(
    db: NamedDependency[Database], agent: NamedDependency[AgentActor], data: JSONBody[CostReport]
) -> CostReported:
    """Report what you cost, while you are paused too. It counts for the month in which it is reported."""
    return reported_shape(await report_cost(db, agent, Cost(data.key, Decimal(data.cents), data.description)))


def reported_shape(made: Reported) -> CostReported:
    return CostReported(id=encode_id(made.id), is_stopped=made.is_stopped)


HANDLERS = (report_one_cost,)
