"""A club's connection over the API: how its analytics stand beside a state that says nothing of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.api.v1_kit import Api, open_api

from lastcall.db.database import Database

SEEN = """
    with seen as (
        insert into telemetry_samples
               (club_id, id, connection_id, epoch, poll_id, observed_at, population, instance_count)
        select c.club_id, gen_random_uuid(), c.id, c.epoch, 'poll-00000000000000000001',
               lastcall_now() - interval '7 minutes', 12, 1
          from connections c
        returning *)
    select open_coverage(s.club_id, s.connection_id, s.epoch, 'observed', s.observed_at), s.observed_at from seen s
"""


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    async with open_api(database) as api:
        yield api


@pytest.mark.clause("COL-10")
async def test_stale_analytics_and_their_last_observation_show_beside_an_active_connection(api: Api) -> None:
    owner = await api.program("owner")
    path = f"/clubs/{api.club}/connection"
    seen = (await owner("GET", path)).json()
    assert (seen["state"], seen["coverage"], seen["lastObservationAt"]) == ("active", "unknown", None)
    await api.world.db.pool.execute("update connections set epoch = epoch - interval '1 hour'")
    await api.world.db.pool.execute(SEEN)
    seen = (await owner("GET", path)).json()
    assert (seen["state"], seen["coverage"]) == ("active", "stale")
    assert seen["lastObservationAt"] is not None
