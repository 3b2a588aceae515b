"""Reads of costs and budgets for screens and API. Nothing here writes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Select, func, or_, select, tuple_

from lastcall.access.agents.tables import Agent
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.clubs.tables import Club
from lastcall.db.cursor import LAST, Cursor
from lastcall.db.transaction import Reader
from lastcall.errors import NotFound
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.scopes import Scope
from lastcall.spending.judging import Month, month_of, spent_of
from lastcall.spending.tables import Budget, BudgetIncident, CostEvent, SpendingTotal

PAGE_MOST = 100
"""Costs of one page at most."""
LISTING = "costs"


@dataclass(frozen=True)
class BudgetView:
    """A budget that holds. ``agent`` is its agent's name, None for the whole club's; ``spent`` is what was spent of
    it by now; ``version`` is what a change is compared with."""

    id: UUID
    agent_id: UUID | None
    agent: str | None
    period: str
    amount: Decimal
    warn_percent: int
    hard_stop: bool
    spent: Decimal
    version: datetime


@dataclass(frozen=True)
class TotalView:
    """What an agent (or the club, ``agent_id`` None) cost this month and ever."""

    agent_id: UUID | None
    agent: str | None
    this_month: Decimal
    ever: Decimal


@dataclass(frozen=True)
class IncidentView:
    """Something that happened to a budget and is not resolved."""

    id: UUID
    budget_id: UUID
    agent: str | None
    period: str
    level: str
    amount: Decimal
    spent: Decimal
    status: str
    ends_at: datetime | None


@dataclass(frozen=True)
class CostView:
    """A cost as its agent reported it."""

    id: UUID
    agent_id: UUID
    agent: str
    key: str
    amount: Decimal
    description: str
    created_at: datetime

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.created_at, self.id)


@dataclass(frozen=True)
class SpendingView:
    """The club's spending as those see it who manage budgets. ``month`` is the first day of this month by UTC;
    ``unbudgeted`` is what can have a budget and has none: whose (no id: the whole club's), their name, the period."""

    month: date
    month_ends_at: datetime
    is_paused: bool
    club: TotalView
    agents: tuple[TotalView, ...]
    budgets: tuple[BudgetView, ...]
    incidents: tuple[IncidentView, ...]
    unbudgeted: tuple[tuple[UUID | None, str | None, str], ...]


@dataclass(frozen=True)
class CostPage:
    """The newest first; ``next`` is where the next page begins, None at the end."""

    costs: tuple[CostView, ...]
    next: Cursor | None


async def spending_of(tx: Reader, actor: Actor, club_id: UUID) -> SpendingView:
    """All but the single costs. Needs ``manage_budgets``; a fixed number of statements."""
    await require(tx, actor, club_id, Permission.MANAGE_BUDGETS, scope=Scope.READ)
    month = month_of(await tx.scalar(select(func.lastcall_now())))
    totals = await _totals(tx, club_id, month.first)
    nothing = TotalView(None, None, Decimal(0), Decimal(0))
    budgets = (await tx.execute(_budgets(club_id, month).order_by(Agent.name.nulls_first()))).all()
    incidents = (
        await tx.execute(
            select(
                BudgetIncident.id,
                BudgetIncident.budget_id,
                Agent.name.label("agent"),
                Budget.period,
                BudgetIncident.level,
                BudgetIncident.amount,
                BudgetIncident.spent,
                BudgetIncident.status,
                BudgetIncident.ends_at,
            )
            .join(
                Budget, (Budget.club_id == BudgetIncident.club_id) & (Budget.id == BudgetIncident.budget_id)
            )
            .outerjoin(Agent, (Agent.club_id == Budget.club_id) & (Agent.id == Budget.agent_id))
            .where(BudgetIncident.club_id == club_id, BudgetIncident.status != "resolved")
            .order_by(BudgetIncident.activity_at.desc(), BudgetIncident.id.desc())
        )
    ).all()
    reason = await tx.scalar(select(Club.pause_reason).where(Club.id == club_id))
    return SpendingView(
        month=month.first,
        month_ends_at=month.ends_at,
        is_paused=reason == "budget",
        club=totals.pop(None, nothing),
        agents=tuple(totals.values()),
        budgets=tuple(BudgetView(**row._mapping) for row in budgets),
        incidents=tuple(IncidentView(**row._mapping) for row in incidents),
        unbudgeted=await _unbudgeted(tx, club_id, {(one.agent_id, one.period) for one in budgets}),
    )


async def costs_of(
    tx: Reader, actor: Actor, club_id: UUID, *, after: Cursor | None = None, limit: int = 50
) -> CostPage:
    """Costs as they were reported, the newest first. Needs ``manage_budgets``."""
    await require(tx, actor, club_id, Permission.MANAGE_BUDGETS, scope=Scope.READ)
    start, most = after or LAST, min(limit, PAGE_MOST)
    rows = (
        await tx.execute(
            select(
                CostEvent.id,
                CostEvent.agent_id,
                Agent.name.label("agent"),
                CostEvent.key,
                CostEvent.amount,
                CostEvent.description,
                CostEvent.created_at,
            )
            .join(Agent, (Agent.club_id == CostEvent.club_id) & (Agent.id == CostEvent.agent_id))
            .where(
                CostEvent.club_id == club_id,
                tuple_(CostEvent.created_at, CostEvent.id) < tuple_(start.time, start.id),
            )
            .order_by(CostEvent.created_at.desc(), CostEvent.id.desc())
            .limit(most + 1)
        )
    ).all()
    costs = tuple(CostView(**row._mapping) for row in rows[:most])
    return CostPage(costs, costs[-1].cursor if len(rows) > most else None)


async def own_budgets(tx: Reader, agent: AgentActor) -> tuple[BudgetView, ...]:
    """The agent's own budgets, for itself: what it may still cost. Those of its club are the staff's."""
    month = month_of(await tx.scalar(select(func.lastcall_now())))
    found = _budgets(agent.club_id, month).where(Budget.agent_id == agent.agent_id)
    rows = (await tx.execute(found.order_by(Budget.period))).all()
    return tuple(BudgetView(**row._mapping) for row in rows)


async def budget_in(tx: Reader, club_id: UUID, budget_id: UUID) -> BudgetView:
    """One budget, for a caller who may see it. Raises ``NotFound`` for one that ended, too."""
    month = month_of(await tx.scalar(select(func.lastcall_now())))
    row = (await tx.execute(_budgets(club_id, month).where(Budget.id == budget_id))).one_or_none()
    if row is None:
        raise NotFound("budget_unknown", "There is no such budget.", advice="Look at the club's spending.")
    return BudgetView(**row._mapping)


async def _unbudgeted(
    tx: Reader, club_id: UUID, held: set[tuple[UUID | None, str]]
) -> tuple[tuple[UUID | None, str | None, str], ...]:
    agents = (
        await tx.execute(
            select(Agent.id, Agent.name)
            .where(Agent.club_id == club_id, Agent.status != "blocked")
            .order_by(Agent.name)
        )
    ).all()
    whose = [(None, None), *((row.id, row.name) for row in agents)]
    return tuple(
        (agent_id, name, period)
        for agent_id, name in whose
        for period in ("month", "lifetime")
        if (agent_id, period) not in held
    )


def _budgets(club_id: UUID, month: Month) -> Select[*tuple[Any, ...]]:
    return (
        select(
            Budget.id,
            Budget.agent_id,
            Agent.name.label("agent"),
            Budget.period,
            Budget.amount,
            Budget.warn_percent,
            Budget.hard_stop,
            spent_of(month),
            Budget.updated_at.label("version"),
        )
        .outerjoin(Agent, (Agent.club_id == Budget.club_id) & (Agent.id == Budget.agent_id))
        .where(Budget.club_id == club_id, Budget.is_active)
    )


async def _totals(tx: Reader, club_id: UUID, month: date) -> dict[UUID | None, TotalView]:
    rows = (
        await tx.execute(
            select(
                SpendingTotal.agent_id,
                Agent.name.label("agent"),
                func.coalesce(func.sum(SpendingTotal.spent).filter(SpendingTotal.month == month), 0).label(
                    "this_month"
                ),
                func.sum(SpendingTotal.spent).filter(SpendingTotal.month.is_(None)).label("ever"),
            )
            .outerjoin(Agent, (Agent.club_id == SpendingTotal.club_id) & (Agent.id == SpendingTotal.agent_id))
            .where(
                SpendingTotal.club_id == club_id,
                or_(SpendingTotal.month.is_(None), SpendingTotal.month == month),
            )
            .group_by(SpendingTotal.agent_id, Agent.name)
            .order_by(Agent.name)
        )
    ).all()
    return {row.agent_id: TotalView(**row._mapping) for row in rows}
