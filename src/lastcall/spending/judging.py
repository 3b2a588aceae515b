"""What budgets say about what was spent, and what follows: incidents, and the pause or resumption of the club and of
agents. Everything that changes spending or a budget calls ``judge``, so that there is one rule.

The order of locks is the club's gate first, which every caller has moved, so that two judgements of a club follow each
other. Nothing here sums over history: what was spent stands in ``spending_totals``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Row, TextClause, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.access.agents.service import pause_agent_for_budget, resume_agent_after_budget
from lastcall.clubs.activity import System, log
from lastcall.clubs.life import pause_for_budget, resume_after_budget
from lastcall.clubs.listeners import ClubChange
from lastcall.clubs.permissions import Permission
from lastcall.db.bus import Hint
from lastcall.db.ids import encode_id, new_id
from lastcall.db.transaction import Transaction
from lastcall.deadlines.signals import Signal
from lastcall.decisions.deliveries.deliver import Message, ToPerson, deliver
from lastcall.decisions.deliveries.recipients import holders
from lastcall.spending.tables import Budget, BudgetIncident

BUDGET_MONTHS = "budget_months"
"""Name of the owner of the month's end; signals carry it."""
SPENDING_TOPIC = "spending"
"""Topic of the ``Hint`` for pages that show costs and budgets."""
ACCOUNTING = System("accounting")

# Four branches: each is one look into the unique index, however many months and agents there are.
_SPENT = text("""
    coalesce(case
        when budgets.agent_id is null and budgets.period = 'month' then
            (select t.spent from spending_totals t
              where t.club_id = budgets.club_id and t.agent_id is null and t.month = :month)
        when budgets.agent_id is null then
            (select t.spent from spending_totals t
              where t.club_id = budgets.club_id and t.agent_id is null and t.month is null)
        when budgets.period = 'month' then
            (select t.spent from spending_totals t
              where t.club_id = budgets.club_id and t.agent_id = budgets.agent_id and t.month = :month)
        else
            (select t.spent from spending_totals t
              where t.club_id = budgets.club_id and t.agent_id = budgets.agent_id and t.month is null)
    end, 0) as spent""")


@dataclass(frozen=True)
class Month:
    """A calendar month by UTC, as it is at ``now``."""

    now: datetime
    first: date
    ends_at: datetime


async def this_month(tx: Transaction) -> Month:
    """The month by the database's clock. Ask it with the gate moved: what waited there may have waited for the turn
    of the month.
    """
    return month_of(await tx.scalar(select(func.lastcall_now())))


def month_of(now: datetime) -> Month:
    """The month in which that moment lies."""
    first = now.astimezone(UTC).date().replace(day=1)
    following = date(first.year + first.month // 12, first.month % 12 + 1, 1)
    return Month(now, first, datetime(following.year, following.month, 1, tzinfo=UTC))


async def judge(tx: Transaction, club_id: UUID, agent_id: UUID | None, month: Month) -> bool:
    """Make incidents and pauses what the budgets of the club, and of the agent where one is named, say now. Whether
    any of these is used up and stops what it is for. A fixed number of statements.
    """
    budgets = await _budgets(tx, club_id, agent_id, month)
    waiting = await _unresolved(tx, club_id, [budget.id for budget in budgets])
    stopped: set[UUID | None] = set()
    for budget in budgets:
        level = _level(budget)
        if level == "limit":
            stopped.add(budget.agent_id)
        at = month.first if budget.period == "month" else None
        over = [
            one
            for one in waiting
            if one.budget_id == budget.id
            and (level is None or (one.month, one.amount) != (at, budget.amount))
        ]
        for incident in over:
            await _resolve(tx, club_id, incident.id, month)
        if level is not None:
            await _note(tx, club_id, budget, level, month)
    await _stop(tx, club_id, None, is_used_up=None in stopped)
    if agent_id is not None:
        await _stop(tx, club_id, agent_id, is_used_up=agent_id in stopped)
    return bool(stopped)


async def club_changed(tx: Transaction, club_id: UUID, change: ClubChange) -> None:
    """A club that is brought back or goes on is paused again where its budget is used up still."""
    if change in (ClubChange.UNARCHIVED, ClubChange.RESUMED):
        await judge(tx, club_id, None, await this_month(tx))


def spent_of(month: Month) -> TextClause:
    """The column ``spent`` of a statement over ``budgets``: what was spent of each by now."""
    return _SPENT.bindparams(month=month.first)


def used_up_at(amount: Decimal, percent: int) -> Decimal:
    """What of a budget is spent when staff are told."""
    return amount * percent / 100


async def _budgets(
    tx: Transaction, club_id: UUID, agent_id: UUID | None, month: Month
) -> list[Row[tuple[Any, ...]]]:
    statement = (
        select(
            Budget.id,
            Budget.agent_id,
            Budget.period,
            Budget.amount,
            Budget.warn_percent,
            Budget.hard_stop,
            Budget.is_active,
            spent_of(month),
        )
        .where(Budget.club_id == club_id, or_(Budget.agent_id.is_(None), Budget.agent_id == agent_id))
        .order_by(Budget.id)
    )
    return list((await tx.execute(statement)).all())


async def _unresolved(tx: Transaction, club_id: UUID, budget_ids: list[UUID]) -> list[Row[tuple[Any, ...]]]:
    found = select(
        BudgetIncident.id, BudgetIncident.budget_id, BudgetIncident.month, BudgetIncident.amount
    ).where(
        BudgetIncident.club_id == club_id,
        BudgetIncident.budget_id.in_(budget_ids),
        BudgetIncident.status != "resolved",
    )
    return list((await tx.execute(found)).all())


def _level(budget: Row[tuple[Any, ...]]) -> str | None:
    if not budget.is_active:
        return None
    if budget.hard_stop and budget.spent >= budget.amount:
        return "limit"
    return "warning" if budget.spent >= used_up_at(budget.amount, budget.warn_percent) else None


async def _note(
    tx: Transaction, club_id: UUID, budget: Row[tuple[Any, ...]], level: str, month: Month
) -> None:
    """Open the incident, or raise it, and tell those who manage budgets, each level once; nothing where it says so
    already, open or dismissed."""
    is_monthly = budget.period == "month"
    said = {
        "level": level,
        "spent": budget.spent,
        "status": "open",
        "activity_at": month.now,
        "ends_at": month.ends_at if is_monthly else None,
        "resolved_at": None,
    }
    opened = await tx.scalar(
        upsert(BudgetIncident)
        .values(
            club_id=club_id,
            id=new_id(),
            budget_id=budget.id,
            month=month.first if is_monthly else None,
            amount=budget.amount,
            **said,
        )
        .on_conflict_do_update(
            index_elements=["club_id", "budget_id", "month", "amount"],
            set_=said,
            where=or_(BudgetIncident.status == "resolved", BudgetIncident.level != level),
        )
        .returning(BudgetIncident.id)
    )
    if opened is None:
        return
    action = "budget.used_up" if level == "limit" else "budget.warning"
    details = {"spent": str(budget.spent), "amount": str(budget.amount), "period": budget.period}
    await log(tx, club_id, ACCOUNTING, action, "budget", budget.id, details)
    people = [ToPerson(one) for one in await holders(tx, club_id, [Permission.MANAGE_BUDGETS])]
    await deliver(tx, club_id, people, Message(action, encode_id(opened), data={"period": budget.period}))
    tx.publish(Hint(club_id, SPENDING_TOPIC))
    if is_monthly:
        tx.publish(Signal(BUDGET_MONTHS, month.ends_at))


async def _resolve(tx: Transaction, club_id: UUID, incident_id: UUID, month: Month) -> None:
    await tx.execute(
        update(BudgetIncident)
        .where(BudgetIncident.club_id == club_id, BudgetIncident.id == incident_id)
        .values(status="resolved", resolved_at=month.now, ends_at=None)
    )
    tx.publish(Hint(club_id, SPENDING_TOPIC))


async def _stop(tx: Transaction, club_id: UUID, agent_id: UUID | None, *, is_used_up: bool) -> None:
    if agent_id is None:
        step = pause_for_budget if is_used_up else resume_after_budget
        await step(tx, club_id, by=ACCOUNTING)
    else:
        step_of_agent = pause_agent_for_budget if is_used_up else resume_agent_after_budget
        await step_of_agent(tx, club_id, agent_id, by=ACCOUNTING)
