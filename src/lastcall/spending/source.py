"""Budgets that are nearly or wholly used up, in the inbox."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from lastcall.clubs.permissions import Permission
from lastcall.decisions.inbox.source import Severity, Shown, Source
from lastcall.people.scopes import Scope
from lastcall.spending.budgets import incident_unknown
from lastcall.spending.judging import SPENDING_TOPIC

_FACTS = """(
    select jsonb_build_object('level', s.level, 'period', b.period, 'agent', a.name,
        'amount', s.amount::text, 'spent', s.spent::text, 'hard_stop', b.hard_stop)
      from budgets b left join agents a on a.club_id = b.club_id and a.id = b.agent_id
     where b.club_id = s.club_id and b.id = s.budget_id)"""


def money(cents: Decimal | str) -> str:
    """An amount in whole units with two decimals; more where it is less than a cent."""
    value = Decimal(cents) / 100
    shown = f"{value:,.2f}"
    return shown if value == round(value, 2) else f"{value.normalize():,f}"


def _words(facts: dict[str, Any]) -> Shown:
    whose = f"the agent {facts['agent']}" if facts["agent"] else "the club"
    month = "monthly budget" if facts["period"] == "month" else "lifetime budget"
    spent = f"{money(facts['spent'])} of {money(facts['amount'])} spent"
    if facts["level"] == "limit":
        paused = "It is paused" if facts["agent"] else "The club is paused"
        return Shown(f"The {month} of {whose} is used up", f"{spent}. {paused} until the budget suffices.")
    return Shown(f"The {month} of {whose} is nearly used up", f"{spent}.")


def _page(_: UUID) -> str:
    return "spending"


BUDGETS = Source(
    name="budget",
    label="Budgets",
    icon="warning",
    table="budget_incidents",
    activity="activity_at",
    waits="s.status = 'open'",
    facts=_FACTS,
    words=_words,
    why="A budget is nearly or wholly used up. It leaves when the budget is raised, when its month ends, or when"
    " somebody decides to leave it as it is.",
    page=_page,
    permission=Permission.MANAGE_BUDGETS,
    severity=Severity.HIGH,
    scope=Scope.CLUBS,
    topics=(SPENDING_TOPIC,),
    unknown=incident_unknown,
)
