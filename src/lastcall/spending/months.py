"""The owner of the month's end: what a monthly budget stopped goes on when the next month begins.

Only an incident that is not resolved has a deadline, its month's end. With none there is nothing to wait for.
"""

from __future__ import annotations

from sqlalchemy import select

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.clubs.gates import bump_gate
from lastcall.db.database import Database
from lastcall.deadlines.due_rows import DueRows, Order
from lastcall.deadlines.poison import Candidate
from lastcall.deadlines.sweep import SweepOwner
from lastcall.spending.judging import BUDGET_MONTHS, judge, this_month
from lastcall.spending.tables import Budget, BudgetIncident

# budget_incidents_ends_at_idx holds what has a deadline and nothing else.
MONTHS_ORDER = Order("budget_incidents", "ends_at", "ends_at is not null")


class BudgetMonths(DueRows):
    """A transaction an incident, with its club's gate moved as by whoever reports a cost."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, MONTHS_ORDER)

    async def settle(self, candidate: Candidate) -> None:
        """Judge the incident's budget by the month that it is now, which resolves it."""
        async with self._db.transaction() as tx:
            await bump_gate(tx, candidate.club_id)
            found = (
                await tx.execute(
                    select(Budget.agent_id)
                    .join(
                        BudgetIncident,
                        (BudgetIncident.club_id == Budget.club_id) & (BudgetIncident.budget_id == Budget.id),
                    )
                    .where(BudgetIncident.club_id == candidate.club_id, BudgetIncident.id == candidate.id)
                )
            ).one_or_none()
            if found is not None:
                await judge(tx, candidate.club_id, found.agent_id, await this_month(tx))


def budget_months_owner(db: Database, clock: Clock = SYSTEM_CLOCK) -> SweepOwner:
    """The owner to register with the scheduler."""
    return SweepOwner(BUDGET_MONTHS, BudgetMonths(db), clock)
