"""The club that these tests act in."""

from __future__ import annotations

import pytest
from dependents_kit import Evening
from operations_world import World, make_world

from lastcall.db.database import Database
from lastcall.operations import listeners
from lastcall.testing.clock import TestClock


@pytest.fixture
async def world(database: Database, test_clock: TestClock) -> World:
    return await make_world(database, test_clock)


@pytest.fixture
async def evening(world: World) -> Evening:
    await world.run("update connections set features = '{membership_management,instances}'")
    listeners.register()
    return Evening(world)
