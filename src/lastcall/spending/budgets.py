"""Staff set budgets, end them, and leave what a used-up one stopped as it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.access.agents.queries import agent_in
from lastcall.clubs.activity import log
from lastcall.clubs.gates import bump_gate
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require, require_open
from lastcall.db.bus import Hint
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid, NotFound
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope
from lastcall.spending.costs import valid_amount
from lastcall.spending.judging import SPENDING_TOPIC, judge, this_month
from lastcall.spending.queries import BudgetView, budget_in
from lastcall.spending.tables import Budget, BudgetIncident

WARN_PERCENT = 80
"""Of a budget, when staff are told, unless they say otherwise."""


class Period(StrEnum):
    """What a budget is for: a calendar month by UTC, or ever."""

    MONTH = "month"
    LIFETIME = "lifetime"


@dataclass(frozen=True)
class BudgetFields:
    """What staff set. ``amount`` in cents; ``hard_stop``: what it is for is paused when it is used up."""

    amount: Decimal
    warn_percent: int = WARN_PERCENT
    hard_stop: bool = True


async def set_budget(
    db: Database,
    actor: Actor,
    club_id: UUID,
    agent_id: UUID | None,
    period: Period,
    fields: BudgetFields,
    seen: datetime | None,
) -> BudgetView:
    """Set what the club (no ``agent_id``) or an agent may cost. Needs ``manage_budgets``. Raising it above what was
    spent resumes what it had paused, and setting it below pauses at once.

    ``seen`` is the version that was read; None where there was no such budget. Raises ``Conflict`` with the fresh one
    when it changed since, ``NotFound`` for an unknown agent and ``Invalid`` for what breaks a rule.
    """
    amount = valid_amount(fields.amount)
    if not 1 <= fields.warn_percent <= 100:
        raise Invalid(
            "warn_percent_malformed",
            "Staff are told at 1 to 100 percent of a budget.",
            advice="Give a number from 1 to 100.",
            field="warn_percent",
        )
    async with db.transaction() as tx:
        await _begin(tx, actor, club_id)
        await require_open(tx, club_id)
        if agent_id is not None:
            await agent_in(tx, club_id, agent_id)
        mine = (Budget.club_id == club_id, Budget.agent_id.is_not_distinct_from(agent_id))
        before = (
            await tx.execute(
                select(Budget.id, Budget.updated_at).where(*mine, Budget.period == period, Budget.is_active)
            )
        ).one_or_none()
        if (before.updated_at if before else None) != seen:
            raise await _changed(tx, club_id, before.id if before else None)
        values = {
            "amount": amount,
            "warn_percent": fields.warn_percent,
            "hard_stop": fields.hard_stop,
            "is_active": True,
        }
        budget_id: UUID = await tx.scalar(
            upsert(Budget)
            .values(club_id=club_id, id=new_id(), agent_id=agent_id, period=period, **values)
            .on_conflict_do_update(
                index_elements=["club_id", "agent_id", "period"],
                set_={**values, "updated_at": Budget.forward()},
            )
            .returning(Budget.id)
        )
        details = {
            "amount": str(amount),
            "period": period,
            "warn_percent": fields.warn_percent,
            "hard_stop": fields.hard_stop,
        }
        await _end(tx, actor, club_id, "budget.set", budget_id, details)
        await judge(tx, club_id, agent_id, await this_month(tx))
        return await budget_in(tx, club_id, budget_id)


async def end_budget(db: Database, actor: Actor, club_id: UUID, budget_id: UUID, seen: datetime) -> None:
    """Let a budget hold no more; what it had paused goes on. Needs ``manage_budgets``. Errors as for
    ``set_budget``."""
    async with db.transaction() as tx:
        await _begin(tx, actor, club_id)
        before = await budget_in(tx, club_id, budget_id)
        if before.version != seen:
            raise await _changed(tx, club_id, budget_id)
        await tx.execute(
            update(Budget)
            .where(Budget.club_id == club_id, Budget.id == budget_id)
            .values(is_active=False, updated_at=Budget.forward())
        )
        await _end(tx, actor, club_id, "budget.ended", budget_id, {"period": before.period})
        await judge(tx, club_id, before.agent_id, await this_month(tx))


async def leave_incident(db: Database, actor: Actor, club_id: UUID, incident_id: UUID) -> None:
    """Leave things as they are: the incident waits for nobody any more, and what is paused stays so until its budget
    suffices again. Needs ``manage_budgets``. Twice is once; raises ``Conflict`` for one that is resolved.
    """
    async with db.transaction() as tx:
        await _begin(tx, actor, club_id)
        mine = (BudgetIncident.club_id == club_id, BudgetIncident.id == incident_id)
        row = (
            await tx.execute(select(BudgetIncident.status, BudgetIncident.budget_id).where(*mine))
        ).one_or_none()
        if row is None:
            raise incident_unknown()
        if row.status == "resolved":
            raise Conflict(
                "incident_resolved", "The budget suffices again.", advice="There is nothing left to decide."
            )
        if row.status == "open":
            await tx.execute(update(BudgetIncident).where(*mine).values(status="dismissed"))
            await _end(tx, actor, club_id, "budget.left", row.budget_id, {})


def incident_unknown() -> NotFound:
    """The one answer for an incident that is not there and for one of another club."""
    return NotFound("incident_unknown", "There is no such incident.", advice="Look at the club's spending.")


async def _begin(tx: Transaction, actor: Actor, club_id: UUID) -> None:
    await bump_gate(tx, club_id)
    await require(tx, actor, club_id, Permission.MANAGE_BUDGETS, scope=Scope.CLUBS)


async def _end(
    tx: Transaction, actor: Actor, club_id: UUID, action: str, budget_id: UUID, details: dict[str, object]
) -> None:
    await log(tx, club_id, actor, action, "budget", budget_id, details)
    tx.publish(Hint(club_id, SPENDING_TOPIC))


async def _changed(tx: Transaction, club_id: UUID, budget_id: UUID | None) -> Conflict:
    return Conflict(
        "budget_changed",
        "Somebody changed this budget meanwhile.",
        advice="Look again.",
        fresh=None if budget_id is None else await budget_in(tx, club_id, budget_id),
    )
