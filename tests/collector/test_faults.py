"""Faults before and after the authorization: what is deferred, rejected, passed on, and when the account stops."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from email.utils import format_datetime

import msgspec
import pytest
from collector_bench import Bench

from lastcall.collector.main import NOT_SIGNED_IN
from lastcall.collector.state import fresh_id
from lastcall.protocol import messages as m
from lastcall.protocol.constants import RETRY_DELAY_LEAST, WORKER_EVIDENCE_AGE
from lastcall.protocol.outcomes import Outcome
from lastcall.protocol.steps import Step
from lastcall.vrchat.errors import LONGEST_RETRY_AFTER
from lastcall.vrchat.simulator import faults


@pytest.mark.clause("WRK-18")
@pytest.mark.parametrize(
    ("header", "named_ms"),
    [
        ("82721", 82_721_000),
        ("0", 0),
        ("-5", 60_000),
        ("9" * 400, LONGEST_RETRY_AFTER * 1000),
        (None, 60_000),
    ],
    ids=["of almost a day", "none", "negative", "absurd", "missing"],
)
async def test_a_throttled_read_defers_by_the_providers_own_delay_and_ends_the_pass(
    bench: Bench, header: str | None, named_ms: float
) -> None:
    delay_ms = max(named_ms, RETRY_DELAY_LEAST.total_seconds() * 1000)
    bench.simulator.arm(faults.answer(429, retry_after=header), method="GET", path="/groups/*")
    await bench.server.add("assign_role", **bench.role())
    await bench.server.add("ban_member", targetUserId=bench.simulator.seed.members[1])
    deferred = await bench.server.until("defer")
    failure = await bench.server.until("failure")
    await bench.server.until("release")
    assert deferred.code == "rate_limit"
    assert deferred.delay_ms == delay_ms
    assert failure.retry_after_ms == named_ms
    assert len(bench.server.of("claim")) == 1, "the other operation is not touched"
    assert bench.reads("/groups/") == 1


@pytest.mark.parametrize(
    ("ahead", "least_ms", "most_ms"), [(3600, 3_590_000, 3_600_000), (-3600, 1000, 1000)]
)
async def test_a_throttled_read_defers_until_the_date_that_vrchat_names(
    bench: Bench, ahead: int, least_ms: int, most_ms: int
) -> None:
    date = format_datetime(bench.time.clock.wall() + timedelta(seconds=ahead), usegmt=True)
    bench.simulator.arm(faults.answer(429, retry_after=date), method="GET", path="/groups/*")
    await bench.server.add("assign_role", **bench.role())
    deferred = await bench.server.until("defer")
    assert least_ms <= deferred.delay_ms <= most_ms


async def test_an_error_page_defers_by_the_usual_delay(bench: Bench) -> None:
    bench.simulator.arm(faults.proxy_page(502, applied=False), method="GET", path="/groups/*")
    await bench.server.add("assign_role", **bench.role())
    deferred = await bench.server.until("defer")
    assert (deferred.code, deferred.delay_ms) == ("transient", 60_000)


@pytest.mark.clause("COL-08")
async def test_a_missing_grant_rejects_this_operation_and_the_pass_goes_on(bench: Bench) -> None:
    seed = bench.simulator.seed
    bench.edit("take_grant", user_id=seed.bot_id, grant="group-bans-manage")
    await bench.server.add("ban_member", targetUserId=seed.members[1])
    await bench.server.add("assign_role", **bench.role())
    rejected = await bench.server.until("reject")
    completed = await bench.server.until("complete")
    assert rejected.code == "provider_permissions"
    assert completed.outcome is Outcome.SUCCEEDED
    assert len(bench.server.of("lease")) == 1
    assert bench.server.of("failure") == []


@pytest.mark.clause("COL-03", "COL-06")
async def test_lost_membership_rejects_and_ends_the_pass(bench: Bench) -> None:
    bench.edit("remove_member", user_id=bench.simulator.seed.bot_id)
    await bench.server.add("assign_role", **bench.role())
    await bench.server.add("assign_role", **bench.role())
    rejected = await bench.server.until("reject")
    failure = await bench.server.until("failure")
    await bench.server.until("release")
    assert rejected.code == failure.code == "membership"
    assert failure.lease.connection_id == bench.server.connection_id
    assert len(bench.server.of("claim")) == 1
    assert bench.reads("/groups/") == 1
    names = bench.server.names()
    assert names.index("reject") < names.index("failure")


@pytest.mark.clause("RCV-10", "COL-06")
async def test_a_throttled_write_is_recorded_first_and_stops_the_account(bench: Bench) -> None:
    bench.simulator.arm(faults.answer(429, retry_after="120"), method="PUT")
    await bench.server.add("assign_role", **bench.role())
    await bench.server.add("assign_role", **bench.role())
    completed = await bench.server.until("complete")
    failure = await bench.server.until("failure")
    names = bench.server.names()
    assert completed.outcome is Outcome.REJECTED
    assert completed.code == "rate_limit"
    assert failure.retry_after_ms == 120_000
    assert names.index("complete") < names.index("failure")
    arrivals = len(bench.simulator.arrivals)
    await bench.server.until("release")
    await bench.advance(60)
    assert len(bench.server.of("claim")) == 1
    assert len(bench.simulator.arrivals) == arrivals
    await bench.advance(61)
    await bench.server.until("complete", 2)


async def test_a_session_that_is_over_ends_the_account_with_one_sentence(bench: Bench) -> None:
    await bench.server.until("hello")
    bench.edit("end_sessions", user_id=bench.simulator.seed.bot_id)
    await bench.server.add("assign_role", **bench.role())
    rejected = await bench.server.until("reject")
    failure = await bench.server.until("failure")
    assert rejected.code == failure.code == "authentication"
    assert bench.running is not None
    assert await asyncio.wait_for(bench.running, 15) == NOT_SIGNED_IN


async def test_a_denied_allowance_is_waited_for_and_the_identity_proved_anew(bench: Bench) -> None:
    asked_at: list[float] = []

    async def later(sent: m.Allowance) -> m.Message:
        if sent.lease is None:
            return m.AllowanceAnswer(is_granted=True, limit=30, window_ms=60_000)
        asked_at.append(bench.time.clock.boot())
        if len(asked_at) > 1:
            return m.AllowanceAnswer(is_granted=True, limit=30, window_ms=60_000)
        return m.AllowanceAnswer(is_granted=False, limit=30, retry_ms=40_000)

    bench.server.handlers["allowance"] = later
    await bench.time.run_at(20)
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("complete")
    assert asked_at[1] - asked_at[0] >= 40
    calls = bench.server.of("allowance")
    assert [call.lease is None for call in calls] == [False, False, True]
    assert bench.reads("/groups/") == 1


async def test_an_allowance_that_comes_too_late_for_the_claim_defers(bench: Bench) -> None:
    async def never(_sent: m.Allowance) -> m.Message:
        return m.AllowanceAnswer(is_granted=False, limit=30, retry_ms=50_000)

    bench.server.handlers["allowance"] = never
    await bench.server.add("assign_role", life_ms=45_000, **bench.role())
    deferred = await bench.server.until("defer")
    assert (deferred.code, deferred.delay_ms) == ("rate_limit", 50_000)


async def test_slow_preflight_defers_instead_of_reading_again(bench: Bench) -> None:
    bench.hold(Step.PREFLIGHT_DONE)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.PREFLIGHT_DONE)
    await bench.advance(WORKER_EVIDENCE_AGE.total_seconds() + 1)
    bench.release(Step.PREFLIGHT_DONE)
    await bench.server.until("defer")
    assert bench.reads("/groups/") == 1
    assert bench.server.of("authorize") == []


@pytest.mark.clause("RCV-10")
async def test_a_shorter_pause_that_is_told_later_does_not_end_a_longer_one(bench: Bench) -> None:
    await bench.server.until("hello")
    for name, seconds in (("longer", "120"), ("shorter", "1")):
        throttled = msgspec.structs.replace(faults.answer(429, retry_after=seconds), hold=name)
        bench.simulator.arm(throttled, method="GET", path="/groups/*")
        bench.server.connection_id = fresh_id()
        await bench.server.look()
        await bench.simulator.reached(name)
    for count, name in enumerate(("longer", "shorter"), 1):
        bench.simulator.release(name)
        await bench.server.until("failure", count)
    told = bench.time.clock.wall()
    await bench.server.add("assign_role", **bench.role())
    await bench.time.run_at(50)
    await bench.server.until("complete")
    later = [arrival.at for arrival in bench.simulator.arrivals if arrival.at > told]
    assert (min(later) - told).total_seconds() > 110
