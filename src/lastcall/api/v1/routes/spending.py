"""What a club's agents cost, and its budgets, as its staff manage them."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal, cast

from litestar import delete, get, post, put
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta

from lastcall.api.v1.answers import answers
from lastcall.api.v1.paging import CURSOR, After, Limit
from lastcall.api.v1.routes.agent_costs import Cents
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, known_in, spelled, utc
from lastcall.db.cursor import read_cursor, write_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.people.actor import Actor
from lastcall.spending.budgets import (
    WARN_PERCENT,
    BudgetFields,
    Period,
    end_budget,
    leave_incident,
    set_budget,
)
from lastcall.spending.queries import LISTING, BudgetView, TotalView, costs_of, spending_of

TAGS = ["Spending"]


class Spent(Shape, frozen=True):
    """What an agent (`agentId` null: the whole club) cost, in cents."""

    agent_id: Id | None
    agent: str | None
    this_month: str
    ever: str


class Budget(Shape, frozen=True):
    """A budget in cents and what is spent of it. `agentId` null: the whole club's."""

    id: Id
    agent_id: Id | None
    agent: str | None
    period: Period
    cents: str
    warn_percent: int
    hard_stop: bool
    spent: str
    updated_at: datetime


class BudgetIncident(Shape, frozen=True):
    """A budget that is nearly (`warning`) or wholly (`limit`) used up. `endsAt` is when its month ends."""

    id: Id
    budget_id: Id
    agent: str | None
    period: Period
    level: Literal["warning", "limit"]
    cents: str
    spent: str
    status: Literal["open", "dismissed"]
    ends_at: datetime | None


class Spending(Shape, frozen=True):
    """All but the single costs. `isPaused`: the club's budget paused it."""

    month: date
    month_ends_at: datetime
    is_paused: bool
    club: Spent
    agents: list[Spent]
    budgets: list[Budget]
    incidents: list[BudgetIncident]


class CostEvent(Shape, frozen=True):
    """A cost as its agent reported it."""

    id: Id
    agent_id: Id
    agent: str
    key: str
    cents: str
    description: str
    created_at: datetime


class Costs(Shape, frozen=True):
    """The newest first. `next` is the cursor of the next page; null at the end."""

    items: list[CostEvent]
    next: str | None


class BudgetEdit(Input, frozen=True):
    """A budget as a whole. `agentId` null: the whole club's. `seen` is the `updatedAt` that it was read with; null
    where there is none.
    """

    agent_id: Id | None
    period: Period
    cents: Cents
    warn_percent: Annotated[int, Meta(ge=1, le=100)] = WARN_PERCENT
    hard_stop: bool = True
    seen: datetime | None = None


@get("/clubs/{club:str}/spending", tags=TAGS, responses=answers(404))
async def show_spending(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId
) -> Spending:
    """What the club's agents cost this month and ever, its budgets and what happened to them; needs
    `manage_budgets`.
    """
    async with db.read() as tx:
        view = await spending_of(tx, actor, known(club))
    return Spending(
        month=view.month,
        month_ends_at=view.month_ends_at,
        is_paused=view.is_paused,
        club=_spent(view.club),
        agents=[_spent(one) for one in view.agents],
        budgets=[_budget(one) for one in view.budgets],
        incidents=[
            BudgetIncident(
                id=encode_id(one.id),
                budget_id=encode_id(one.budget_id),
                agent=one.agent,
                period=Period(one.period),
                level=cast('Literal["warning", "limit"]', one.level),
                cents=cents(one.amount),
                spent=cents(one.spent),
                status=cast('Literal["open", "dismissed"]', one.status),
                ends_at=one.ends_at,
            )
            for one in view.incidents
        ],
    )


@get("/clubs/{club:str}/costs", tags=TAGS, responses=answers(404))
async def list_costs(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
) -> Costs:
    """The costs that agents of the club reported; needs `manage_budgets`."""
    after = read_cursor(LISTING, cursor, field=CURSOR)
    async with db.read() as tx:
        page = await costs_of(tx, actor, known(club), after=after, limit=limit)
    return Costs(
        items=[
            CostEvent(
                id=encode_id(one.id),
                agent_id=encode_id(one.agent_id),
                agent=one.agent,
                key=one.key,
                cents=cents(one.amount),
                description=one.description,
                created_at=one.created_at,
            )
            for one in page.costs
        ],
        next=None if page.next is None else write_cursor(LISTING, page.next),
    )


@put("/clubs/{club:str}/budgets", tags=TAGS, responses=answers(404, 409, body=True))
async def set_one_budget(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, data: JSONBody[BudgetEdit]
) -> Budget:
    """Set what the club or an agent may cost in a month or ever. Raising it above what is spent resumes what it had
    paused; needs `manage_budgets`.
    """
    agent_id = None if data.agent_id is None else known_in(data.agent_id, "agentId")
    fields = BudgetFields(Decimal(data.cents), data.warn_percent, data.hard_stop)
    seen = None if data.seen is None else utc(data.seen, "seen")
    return _budget(await set_budget(db, actor, known(club), agent_id, data.period, fields, seen))


@delete("/clubs/{club:str}/budgets/{budget_id:str}", status_code=204, tags=TAGS, responses=answers(404, 409))
async def end_one_budget(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    budget_id: PathId,
    seen: Annotated[datetime, QueryParameter(description="The `updatedAt` that it was read with.")],
) -> None:
    """Let a budget hold no more; what it had paused goes on. Needs `manage_budgets`."""
    await end_budget(db, actor, known(club), known(budget_id), utc(seen, "seen"))


@post(
    "/clubs/{club:str}/budget-incidents/{incident_id:str}/leave",
    status_code=204,
    tags=TAGS,
    responses=answers(404, 409),
)
async def leave_one_incident(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, incident_id: PathId
) -> None:
    """Leave what a budget stopped as it is: it waits in no inbox any more. Needs `manage_budgets`."""
    await leave_incident(db, actor, known(club), known(incident_id))


def cents(amount: Decimal) -> str:
    """As the API spells an amount: no exponent, no zeros at the end."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _spent(view: TotalView) -> Spent:
    return Spent(
        agent_id=spelled(view.agent_id),
        agent=view.agent,
        this_month=cents(view.this_month),
        ever=cents(view.ever),
    )


def _budget(view: BudgetView) -> Budget:
    return Budget(
        id=encode_id(view.id),
        agent_id=spelled(view.agent_id),
        agent=view.agent,
        period=Period(view.period),
        cents=cents(view.amount),
        warn_percent=view.warn_percent,
        hard_stop=view.hard_stop,
        spent=cents(view.spent),
        updated_at=view.version,
    )


HANDLERS = (show_spending, list_costs, set_one_budget, end_one_budget, leave_one_incident)
