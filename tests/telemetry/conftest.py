"""A connection that is active, and a collector's side of its aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import count

import pytest
from tests.connections.conftest import Site, build_site

import lastcall.telemetry.listeners
from lastcall.connections.worker import LeaseHeld
from lastcall.db.database import Database
from lastcall.telemetry.collecting import InstancePopulation, record_sample
from lastcall.telemetry.queries import CoverageView, coverage_of

WORLD = "wrld_00000000-0000-4000-8000-000000000001"
_polls = count(1)


def place(number: int, group: str = "grp_1", tags: str = "") -> str:
    """The location of an instance of the group."""
    return f"{WORLD}:{number}~group({group}){tags}"


def people(**populations: int) -> list[InstancePopulation]:
    """Instances by their number: ``people(_1=5)``."""
    return [
        InstancePopulation(place(int(name[1:])), WORLD, population)
        for name, population in populations.items()
    ]


@dataclass
class Stage:
    """A site, and the lease that its collector holds."""

    site: Site
    held: LeaseHeld

    @property
    def db(self) -> Database:
        return self.site.db

    async def sample(
        self,
        instances: list[InstancePopulation] | None = None,
        *,
        poll_id: str | None = None,
        age: timedelta = timedelta(0),
        member_count: int | None = None,
        held: LeaseHeld | None = None,
    ) -> bool:
        """A look at the group under a fresh lease, or under the one given."""
        return await record_sample(
            self.db,
            self.site.worker,
            held or await self.site.lease(),
            poll_id=poll_id or f"poll-{next(_polls):016d}",
            age=age,
            member_count=member_count,
            instances=instances or [],
        )

    async def coverage(self) -> CoverageView:
        async with self.db.read() as tx:
            found = await coverage_of(tx, self.site.club_id)
        assert found is not None
        return found

    async def windows(self) -> list[str]:
        """The states of all windows, oldest first; the one that is open has a star."""
        rows = await self.db.pool.fetch(
            "select state, ended_at from telemetry_coverage order by started_at, ended_at nulls last"
        )
        return [row["state"] + ("" if row["ended_at"] else "*") for row in rows]


@pytest.fixture
async def stage(database: Database) -> Stage:
    lastcall.telemetry.listeners.register()
    site = await build_site(database)
    return Stage(site, await site.lease())
