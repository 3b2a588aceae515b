"""What a collector's faults stop, and for how long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lastcall.connections import failures
from lastcall.connections.connect import set_features
from lastcall.connections.states import Feature
from lastcall.protocol.calls import CALLS
from lastcall.telemetry.queries import coverage_of
from lastcall.telemetry.states import CoverageState
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
    wanted = await desk.clock.now() + RETRY_AFTER
    await desk.pass_by(timedelta(hours=1))
    await desk.collector.take()
    assert await desk.clock.now() < wanted


async def test_a_throttle_without_a_time_rests_for_a_minute(desk: Desk) -> None:
    told(await desk.collector("failure", code="rate_limit", lease=desk.collector.lease))
    await desk.pass_by(timedelta(minutes=1) - MICROSECOND)
    assert await refused(desk.collector) == {423}
    await desk.pass_by(MICROSECOND)
    await desk.collector.take()


# --- aggregates alone ------------------------------------------------------------------------------------------


async def connection(desk: Desk) -> dict[str, Any]:
    """How the club's connection stands."""
    row = await desk.db.pool.fetchrow(
        "select state, backoff_until, next_look_at from connections where id = $1", desk.connection_id
    )
    return dict(row)


async def aggregates_fail(desk: Desk, code: str = "schema_drift") -> None:
    """A pass of which a collector says that its aggregates alone failed; then it gives the connection back."""
    lease = desk.collector.lease
    told(await desk.collector("failure", code=code, lease=lease, telemetryOnly=True))
    await desk.collector("release", lease=lease)


@pytest.mark.clause("COL-05")
async def test_five_failures_of_the_aggregates_leave_the_connection_as_it_is(desk: Desk) -> None:
    for _ in range(5):
        await aggregates_fail(desk)
        now, seen = await desk.clock.now(), await connection(desk)
        assert (seen["state"], seen["backoff_until"]) == ("active", None)
        assert now < seen["next_look_at"] <= now + timedelta(seconds=60)
        await desk.clock.set(seen["next_look_at"])
        assert told(await desk.another_collector()("wait"))["due"] == [desk.collector.place]
        await desk.collector.take()
    async with desk.db.read() as tx:
        coverage = await coverage_of(tx, desk.club_id)
    assert coverage is not None
    assert coverage.state is CoverageState.UNKNOWN
    (operation_id,) = await desk.queue(invitation(1))
    sent = await desk.collector.submitted()
    assert sent["operationId"] == operation_id, "what is sent goes on"


async def test_twin_failures_of_the_aggregates_that_count_as_the_connections_make_it_wait(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "_is_of_telemetry_alone", lambda *_: False)
    await aggregates_fail(desk)
    seen = await connection(desk)
    assert seen["backoff_until"] is not None
    for _ in range(2):
        await desk.clock.set(seen["backoff_until"])
        await desk.collector.take()
        await aggregates_fail(desk)
        seen = await connection(desk)
    assert seen["state"] == "degraded"


SHARED = {
    "authentication": ("account_state", "auth_required"),
    "rate_limit": ("account_state", "active"),
    "membership": (None, "awaiting_invite"),
}
"""What stops the account, if anything, and how the connection stands then."""


@pytest.mark.clause("COL-05")
@pytest.mark.parametrize("code", list(SHARED))
async def test_a_fault_that_all_share_is_never_the_aggregates_alone(desk: Desk, code: str) -> None:
    await aggregates_fail(desk, code)
    obstacle, state = SHARED[code]
    assert (await connection(desk))["state"] == state
    answer = await desk.another_collector()("lease", **desk.collector.place)
    assert (answer.status_code, answer.json().get("code")) == ((423, obstacle) if obstacle else (200, None))


async def test_without_anything_else_to_go_on_the_connection_waits(desk: Desk) -> None:
    await set_features(desk.db, None, desk.club_id, desk.connection_id, {Feature.ANALYTICS})
    await aggregates_fail(desk)
    assert (await connection(desk))["backoff_until"] is not None
