"""The club that most of these tests act in."""

from __future__ import annotations

import pytest
from tests.clubs.house import House, open_house
from tests.operations.operations_world import World, make_world

from lastcall.app import register
from lastcall.db.database import Database
from lastcall.testing.clock import TestClock


@pytest.fixture
async def club(db: Database) -> House:
    register()
    return await open_house(db)


@pytest.fixture
async def world(database: Database, test_clock: TestClock) -> World:
    register()
    world = await make_world(database, test_clock)
    await world.run("insert into directory (kind, key, club_id) values ('slug', 'club', $1)", world.club_id)
    return world
