"""How long a collector puts an operation off: any finite time from now on, never shortened, and missed at once where it
does not fit (RCV-09)."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from lastcall.protocol.constants import GRACE
from lastcall.testing.routines import replace_routine
from tests.acceptance.desk import Desk, told

MILLISECOND = timedelta(milliseconds=1)
MICROSECOND = timedelta(microseconds=1)
GRACE_MS = GRACE // MILLISECOND
NO_DELAYS = ("-1", "-0.001", "-1e308", "1e999", "Infinity", "-Infinity", "NaN", "null", '"60000"')
"""As they stand in the body. Some are no JSON, as Python's own encoder writes them."""
TOO_LONG = {"30 minutes": 1_800_000, "60 minutes": 3_600_000, "the largest float": sys.float_info.max}


async def defer(desk: Desk, found: dict[str, Any], delay: str) -> int:
    """The status of a deferral by a delay that is spelled like that."""
    body = {
        "workerId": desk.collector.worker_id,
        "vrchatUserId": desk.collector.vrchat_user_id,
        "claim": found["claim"],
        "code": "timeout",
        "delayMs": "?",
    }
    answer = await desk.api.client.post(
        "/worker/v1/defer",
        headers=desk.collector.headers(),
        content=msgspec.json.encode(body).replace(b'"?"', delay.encode()),
    )
    return answer.status_code


async def deferred(desk: Desk, found: dict[str, Any], delay_ms: float) -> dict[str, Any]:
    return told(await desk.collector("defer", claim=found["claim"], code="rate_limit", delayMs=delay_ms))


@pytest.mark.clause("RCV-09")
async def test_what_is_no_delay_is_refused_and_the_claim_stays(desk: Desk) -> None:
    held = await desk.claimed()
    before = await desk.row(held)
    for delay in NO_DELAYS:
        assert await defer(desk, held, delay) == 422, delay
    assert await desk.row(held) == before
    assert told(await desk.collector.authorize(held))["isAuthorized"]


@pytest.mark.clause("RCV-09")
@pytest.mark.parametrize(
    ("delay_ms", "waits"),
    [(0, timedelta(seconds=1)), (1000, timedelta(seconds=1)), (GRACE_MS, GRACE)],
    ids=["none", "a second", "to the end of the grace"],
)
async def test_a_delay_that_fits_is_kept_to_the_moment(desk: Desk, delay_ms: int, waits: timedelta) -> None:
    held = await desk.claimed()
    answer = await deferred(desk, held, delay_ms)
    assert (answer["isRecorded"], answer["state"]) == (True, "pending")
    if waits == GRACE:
        await desk.pass_by(GRACE - timedelta(minutes=4))
        await desk.collector.take()
        await desk.pass_by(timedelta(minutes=4) - MICROSECOND)
    else:
        await desk.pass_by(waits - MICROSECOND)
    assert await desk.collector.claim() is None
    await desk.pass_by(MICROSECOND)
    for state in ("pending", "claimed"):
        await desk.turn(f"operation_late_{state}")
    assert told(await desk.collector.authorize(await desk.collector.claimed()))["isAuthorized"]


async def test_a_microsecond_past_the_end_of_the_grace_is_missed(desk: Desk) -> None:
    held = await desk.claimed()
    answer = await deferred(desk, held, GRACE_MS + 0.001)
    assert (answer["isRecorded"], answer["state"]) == (True, "missed")


@pytest.mark.clause("RCV-09")
@pytest.mark.parametrize("delay", list(TOO_LONG))
async def test_a_delay_that_does_not_fit_misses_once_with_one_notice(desk: Desk, delay: str) -> None:
    held = await desk.claimed()
    answer = await deferred(desk, held, TOO_LONG[delay])
    assert (answer["isRecorded"], answer["state"], answer["code"]) == (True, "missed", "late_window_elapsed")
    before = await desk.row(held)
    assert (before["claim_nonce"], before["submitted_at"]) == (None, None)
    again = await deferred(desk, held, TOO_LONG[delay])
    assert (again["isRecorded"], again["code"]) == (False, "claim_unavailable")
    assert await desk.row(held) == before
    assert await desk.notices() == [(held["operationId"], "missed", "late_window_elapsed")]


async def test_twin_a_delay_that_is_cut_to_the_grace_is_sent_before_vrchat_wants_it(desk: Desk) -> None:
    await replace_routine(
        desk.db,
        "defer_operation",
        "v_microseconds := ceil(greatest(coalesce(p_delay::numeric, 60), 1) * 1000000);",
        "v_microseconds := ceil(least(greatest(coalesce(p_delay::numeric, 60), 1), 600) * 1000000);",
    )
    held = await desk.claimed()
    assert (await deferred(desk, held, TOO_LONG["30 minutes"]))["state"] == "pending"
    await desk.pass_by(timedelta(minutes=10))
    await desk.collector.take()
    assert await desk.collector.claim() is not None


async def test_vrchats_own_delay_outlives_what_was_missed_for_it(desk: Desk) -> None:
    """The operation is over, and the account still asks nothing before the hour is."""
    held = await desk.claimed()
    assert (await deferred(desk, held, TOO_LONG["60 minutes"]))["state"] == "missed"
    lease = desk.collector.lease
    told(await desk.collector("failure", code="rate_limit", lease=lease, retryAfterMs=TOO_LONG["60 minutes"]))
    stopped = await desk.collector("lease", **desk.collector.place)
    assert (stopped.status_code, stopped.headers["retry-after"]) == (423, "3600")
    await desk.pass_by(timedelta(hours=1) - MICROSECOND)
    assert (await desk.collector("lease", **desk.collector.place)).status_code == 423
    await desk.pass_by(MICROSECOND)
    await desk.collector.take()
