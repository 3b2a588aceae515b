"""Agents report what they cost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.access.agents.policy import require_known_agent
from lastcall.clubs.gates import bump_gate
from lastcall.db.bus import Hint
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid
from lastcall.names import valid_name
from lastcall.people.actor import AgentActor
from lastcall.people.agent_grants import AgentGrant
from lastcall.spending.judging import SPENDING_TOPIC, Month, judge, this_month
from lastcall.spending.tables import DESCRIPTION_MOST, CostEvent, SpendingTotal

AMOUNT_MOST = Decimal(1_000_000_000)
"""Cents that one cost or budget can be: ten million of the currency, far below what the columns hold."""
DECIMALS = 6
"""Decimal places of a cent that are kept."""
_KEY = re.compile(r"[A-Za-z0-9_.:-]{1,200}\Z")


@dataclass(frozen=True)
class Cost:
    """What an agent reports: ``key`` is its own name for this cost, ``amount`` in cents."""

    key: str
    amount: Decimal
    description: str = ""


@dataclass(frozen=True)
class Reported:
    """What became of it. ``is_stopped``: a budget of the agent or its club is used up, and it should do no more."""

    id: UUID
    is_stopped: bool


async def report_cost(db: Database, agent: AgentActor, cost: Cost) -> Reported:
    """Count a cost, once however often it is reported, and do what the budgets say about it in the same transaction.

    A paused agent may: what was spent was spent. It counts for the month in which it is reported. Raises ``Conflict``
    for another cost under the same key, ``NotAllowed`` without the grant and ``Invalid`` for a malformed one.
    """
    if _KEY.match(cost.key) is None:
        raise Invalid(
            "key_malformed",
            "The key is not one.",
            advice="Use 1 to 200 letters, digits and . _ : - .",
            field="key",
        )
    amount = valid_amount(cost.amount)
    description = valid_name(
        cost.description, "description", most=DESCRIPTION_MOST, least=0, what="The description"
    )
    async with db.transaction() as tx:
        await bump_gate(tx, agent.club_id)
        await require_known_agent(tx, agent, AgentGrant.REPORT_COSTS)
        month = await this_month(tx)
        cost_id = new_id()
        values = {"amount": amount, "description": description, "created_at": month.now}
        made = await tx.scalar(
            upsert(CostEvent)
            .values(club_id=agent.club_id, id=cost_id, agent_id=agent.agent_id, key=cost.key, **values)
            .on_conflict_do_nothing()
            .returning(CostEvent.id)
        )
        if made is None:
            cost_id = await _reported_before(tx, agent, cost.key, amount, description)
        else:
            await _add(tx, agent, amount, month)
            tx.publish(Hint(agent.club_id, SPENDING_TOPIC))
        return Reported(cost_id, await judge(tx, agent.club_id, agent.agent_id, month))


def valid_amount(amount: Decimal) -> Decimal:
    """The amount, in cents. Raises ``Invalid`` that names ``cents``, as programs send it."""
    if not amount.is_finite() or not 0 < amount <= AMOUNT_MOST or amount != round(amount, DECIMALS):
        raise Invalid(
            "amount_malformed",
            "The amount is not one that can be counted.",
            advice=f"Give cents, more than 0 and at most {AMOUNT_MOST:,}, with at most {DECIMALS} decimals.",
            field="cents",
        )
    return amount


async def _reported_before(
    tx: Transaction, agent: AgentActor, key: str, amount: Decimal, description: str
) -> UUID:
    before = (
        await tx.execute(
            select(CostEvent.id, CostEvent.amount, CostEvent.description).where(
                CostEvent.club_id == agent.club_id,
                CostEvent.agent_id == agent.agent_id,
                CostEvent.key == key,
            )
        )
    ).one()
    if (before.amount, before.description) != (amount, description):
        raise Conflict(
            "idempotency_key_used",
            "Another cost was reported under this key.",
            advice="Take a new key for each cost.",
            field="key",
        )
    return UUID(str(before.id))


async def _add(tx: Transaction, agent: AgentActor, amount: Decimal, month: Month) -> None:
    added = upsert(SpendingTotal).values(
        [
            {"club_id": agent.club_id, "id": new_id(), "agent_id": whose, "month": when, "spent": amount}
            for whose in (None, agent.agent_id)
            for when in (None, month.first)
        ]
    )
    await tx.execute(
        added.on_conflict_do_update(
            index_elements=["club_id", "agent_id", "month"],
            set_={"spent": SpendingTotal.spent + added.excluded.spent},
        )
    )
