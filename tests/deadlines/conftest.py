from __future__ import annotations

import pytest

from lastcall.db.database import Database
from lastcall.testing.fake_clock import FakeClock
from tests.deadlines.due_rows import TABLE, DueRows
from tests.deadlines.scripted import FakeServer


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def server(clock: FakeClock) -> FakeServer:
    return FakeServer(clock)


@pytest.fixture
async def rows(database: Database) -> DueRows:
    await database.pool.execute(TABLE)
    return DueRows(database)
