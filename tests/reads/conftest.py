"""The club that these tests act in."""

from __future__ import annotations

import pytest
from tests.reads.reads_world import Reading, make_reading

from lastcall.db.database import Database
from lastcall.testing.clock import TestClock


@pytest.fixture
async def reading(database: Database, test_clock: TestClock) -> Reading:
    return await make_reading(database, test_clock)
