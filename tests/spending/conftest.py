"""A club with its owner and an agent that costs something, in a database that the tests of one module share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from tests.clubs.house import House, open_house

from lastcall.app import register
from lastcall.clubs.queries import read_settings
from lastcall.db.database import Database
from lastcall.people.actor import AgentActor
from lastcall.spending.budgets import BudgetFields, Period, end_budget, set_budget
from lastcall.spending.costs import Cost, Reported, report_cost
from lastcall.spending.queries import BudgetView, SpendingView, spending_of
from lastcall.testing.agents import let_in_agent

KEYS = count(1)


@dataclass
class Books:
    """What is spent in a club and what its budgets say."""

    house: House
    agent: AgentActor

    @property
    def db(self) -> Database:
        return self.house.db

    async def cost(self, cents: object, key: str | None = None, what: str = "") -> Reported:
        return await report_cost(
            self.db, self.agent, Cost(key or f"key-{next(KEYS)}", Decimal(str(cents)), what)
        )

    async def budget(
        self,
        cents: int,
        *,
        of_agent: bool = False,
        period: Period = Period.MONTH,
        seen: BudgetView | None = None,
        **more: Any,
    ) -> BudgetView:
        fields = BudgetFields(Decimal(cents), **more)
        agent_id = self.agent.agent_id if of_agent else None
        version = seen.version if seen else None
        return await set_budget(
            self.db, self.house.owner, self.house.club_id, agent_id, period, fields, version
        )

    async def end(self, budget: BudgetView) -> None:
        await end_budget(self.db, self.house.owner, self.house.club_id, budget.id, budget.version)

    async def view(self) -> SpendingView:
        async with self.db.read() as tx:
            return await spending_of(tx, self.house.owner, self.house.club_id)

    async def club(self) -> tuple[str, str | None]:
        async with self.db.read() as tx:
            found = await read_settings(tx, self.house.club_id)
        return found.state, found.pause_reason

    async def agents(self) -> tuple[str, str | None]:
        row = await self.db.pool.fetchrow(
            "select status, pause_reason from agents where id = $1", self.agent.agent_id
        )
        return row["status"], row["pause_reason"]

    async def incidents(self) -> list[tuple[str, str]]:
        rows = await self.db.pool.fetch(
            "select level, status from budget_incidents where club_id = $1 order by id", self.house.club_id
        )
        return [(row["level"], row["status"]) for row in rows]

    async def incident_id(self) -> UUID:
        return (await self.view()).incidents[0].id


@asynccontextmanager
async def _made(db: Database) -> AsyncIterator[Books]:
    register()
    house = await open_house(db)
    yield Books(house, (await let_in_agent(db, house.club_id, house.owner.person_id))[0])


@pytest.fixture
async def books(db: Database) -> AsyncIterator[Books]:
    async with _made(db) as made:
        yield made


@pytest.fixture
async def alone(database: Database) -> AsyncIterator[Books]:
    """The same in a database of its own."""
    async with _made(database) as made:
        yield made
