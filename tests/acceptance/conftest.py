"""The whole application on a port, whose deadlines wait for the test, and a desk at it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

import lastcall.app
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.testing.clock import TestClock
from tests.acceptance.desk import Collector, Desk
from tests.api.v1_kit import serve_api


@pytest.fixture
async def desk(
    database: Database, test_clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Desk]:
    """The clock stands still, at a moment of the minute in which the allowance grants; a collector holds the lease."""
    monkeypatch.setattr(lastcall.app, "deadline_owners", lambda *_: [])
    async with serve_api(database) as api:
        key = api.world.key
        place = {"clubId": encode_id(api.world.club_id), "connectionId": encode_id(api.world.connection_id)}
        collector = Collector(api.client, key.account_id, key.key, place)
        now = await test_clock.freeze()
        await test_clock.set(now.replace(second=20, microsecond=0) + timedelta(minutes=1))
        await collector.take()
        yield Desk(api, test_clock, await api.program("owner"), collector)
