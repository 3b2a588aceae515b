"""What a collector does beside its actions: it answers what is asked, and else it leaves VRChat alone."""

from __future__ import annotations

from vertical import Vertical

from lastcall.reads.asking import request_read
from lastcall.testing.waiting import eventually


async def test_a_read_is_answered_by_the_collector_that_it_wakes(vertical: Vertical) -> None:
    asked = await request_read(
        vertical.database, vertical.owner, vertical.club_id, "members", {"n": 5, "offset": 0}
    )

    async def state() -> str | None:
        found = await vertical.database.pool.fetchval(
            "select state from provider_reads where id = $1 and state not in ('pending', 'running')", asked.id
        )
        return None if found is None else str(found)

    assert await eventually(state, within=20) == "succeeded"


async def test_an_idle_connection_without_analytics_asks_nothing_for_an_hour(vertical: Vertical) -> None:
    [operation] = await vertical.enqueue(vertical.role(0))
    assert await vertical.ended(operation) == ("succeeded", None)
    await eventually(lambda: is_given_back(vertical), within=10)
    before = sum("/groups/" in one.path for one in vertical.simulator.arrivals)
    for _ in range(5):
        proofs = sum(one.path == "/auth/user" for one in vertical.simulator.arrivals)
        await vertical.advance(725)

        def is_asked(seen: int = proofs) -> bool:
            return sum(one.path == "/auth/user" for one in vertical.simulator.arrivals) > seen

        await eventually(is_asked, within=10)
    assert sum("/groups/" in one.path for one in vertical.simulator.arrivals) == before


async def is_given_back(vertical: Vertical) -> bool:
    held = await vertical.database.pool.fetchval("select count(*) from leases where released_at is null")
    return bool(held == 0)
