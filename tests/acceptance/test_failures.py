"""What a collector's faults stop, and for how long."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lastcall.connections import failures
from lastcall.protocol.calls import CALLS
from lastcall.testing.fleet import ready_account
from tests.acceptance.desk import Collector, Desk, invitation, told
from tests.api.bodies import BODIES

RETRY_AFTER = timedelta(seconds=82_721)
"""What VRChat has really asked for."""
MICROSECOND = timedelta(microseconds=1)


async def throttled(desk: Desk) -> None:
    """VRChat told this connection's pass to come again much later."""
    retry_after_ms = RETRY_AFTER // timedelta(milliseconds=1)
    failure = {"code": "rate_limit", "lease": desk.collector.lease, "retryAfterMs": retry_after_ms}
    told(await desk.collector("failure", **failure))


async def refused(collector: Collector) -> set[int]:
    """With what each call but a result is answered."""
    return {(await collector(call, **BODIES[call])).status_code for call in set(CALLS) - {"complete"}}


@pytest.mark.clause("RCV-10")
async def test_vrchats_own_delay_stops_all_of_the_account_to_its_end(desk: Desk) -> None:
    """Every process and every club of it; another account goes on, and a result is still taken."""
    sent = await desk.submitted(1)
    (waiting,) = await desk.queue(invitation(2))
    await throttled(desk)
    assert await refused(desk.collector) == await refused(desk.another_collector()) == {423}
    answer = await desk.another_collector()("lease", **desk.collector.place)
    assert answer.headers["retry-after"] == "82721"
    until = await desk.run("select cooldown_until from accounts where id = $1", desk.account_id)
    assert until == await desk.clock.now() + RETRY_AFTER
    other = desk.another_collector(await ready_account(desk.db, "another", "usr_2"), "usr_2")
    assert told(await other("allowance", amount=1))["isGranted"]
    assert told(await desk.collector.complete(sent))["isRecorded"]
    await desk.pass_by(RETRY_AFTER - MICROSECOND)
    assert (await desk.collector("lease", **desk.collector.place)).status_code == 423
    await desk.pass_by(MICROSECOND)
    await desk.collector.take()
    await desk.turn("operation_late_pending")
    assert await desk.state(waiting) == ("missed", "late_window_elapsed")


async def test_twin_a_delay_that_is_cut_short_asks_vrchat_before_it_wants_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "COOLDOWN_MOST", timedelta(hours=1))
    await throttled(desk)
    await desk.pass_by(timedelta(hours=1))
    await desk.collector.take()


async def test_a_throttle_without_a_time_rests_for_a_minute(desk: Desk) -> None:
    told(await desk.collector("failure", code="rate_limit", lease=desk.collector.lease))
    await desk.pass_by(timedelta(minutes=1) - MICROSECOND)
    assert await refused(desk.collector) == {423}
    await desk.pass_by(MICROSECOND)
    await desk.collector.take()
