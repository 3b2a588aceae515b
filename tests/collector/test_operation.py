"""One operation through the collector: what it asks, when it stops, and that it writes once or not at all."""

from __future__ import annotations

import pytest
from collector_bench import Bench
from scripted_server import Drop, Refusal

from lastcall.protocol import messages as m
from lastcall.protocol.constants import PROTOCOL_MISMATCH
from lastcall.protocol.outcomes import Code, Outcome
from lastcall.protocol.steps import Step
from lastcall.testing.waiting import eventually
from lastcall.vrchat.simulator import faults


async def test_every_step_happens_once_and_in_order(bench: Bench) -> None:
    operation = await bench.server.add("assign_role", **bench.role())
    completed = await bench.server.until("complete")
    await bench.server.until("release")
    assert completed.outcome is Outcome.SUCCEEDED
    assert completed.claim.operation_id == operation
    assert bench.writes() == 1
    assert bench.steps == [(step, operation) for step in Step]
    assert await bench.end() == 0


@pytest.mark.clause("WRK-02")
async def test_evidence_target_and_slot_come_before_the_authorization(bench: Bench) -> None:
    bench.hold(Step.PREFLIGHT_DONE)
    await bench.server.until("hello")
    await bench.advance(61)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.PREFLIGHT_DONE)
    identity, ordinary = bench.server.of("allowance")
    assert (identity.amount, identity.lease) == (1, None)
    assert (ordinary.amount, ordinary.lease.connection_id) == (2, bench.server.connection_id)
    assert bench.reads("/auth/user") >= 1
    assert bench.reads("/groups/") == 1
    assert bench.server.of("authorize") == []
    await bench.advance(5)
    bench.release(Step.PREFLIGHT_DONE)
    authorize = await bench.server.until("authorize")
    assert 5_000 <= authorize.evidence.age_ms < 15_000
    assert authorize.evidence.group_id == bench.simulator.seed.group_id
    assert authorize.kind == "assign_role"


@pytest.mark.clause("WRK-02")
async def test_a_protected_target_is_rejected_before_the_authorization(bench: Bench) -> None:
    await bench.server.add("ban_member", targetUserId=bench.simulator.seed.owner_id)
    rejected = await bench.server.until("reject")
    assert rejected.code == Code.PROTECTED_TARGET
    assert bench.server.of("authorize") == []
    assert bench.writes() == 0


@pytest.mark.parametrize(
    ("kind", "payload", "code"),
    [
        ("make_tea", {}, Code.UNSUPPORTED_OPERATION),
        ("ban_member", {"targetUserId": "nobody"}, Code.INVALID_INPUT),
        ("ban_member", {"extra": "1"}, Code.INVALID_INPUT),
    ],
)
async def test_what_it_does_not_understand_is_rejected_before_any_read(
    bench: Bench, kind: str, payload: dict[str, str], code: Code
) -> None:
    await bench.server.add(kind, **payload)
    rejected = await bench.server.until("reject")
    assert rejected.code == code
    assert bench.server.of("allowance") == []
    assert bench.reads("/groups/") == 0


@pytest.mark.clause("BUD-02")
async def test_a_limit_below_the_cost_rejects_before_any_read_or_wait(bench: Bench) -> None:
    bench.server.requests_per_minute = 1
    before = len(bench.simulator.arrivals)
    await bench.server.add("assign_role", **bench.role())
    rejected = await bench.server.until("reject")
    assert rejected.code == "operation_budget_too_low"
    assert bench.server.of("allowance") == []
    assert len(bench.simulator.arrivals) - before <= 4, "the sign-in alone"
    assert bench.reads("/groups/") == 0


@pytest.mark.clause("BUD-01")
async def test_one_identity_proof_serves_the_operations_of_thirty_seconds(bench: Bench) -> None:
    seed = bench.simulator.seed
    await bench.server.until("hello")
    await bench.advance(61)
    for member in seed.members[:3]:
        await bench.server.add("assign_role", targetUserId=member, roleId=seed.role_ids[0])
    await bench.server.until("complete", 3)
    assert [call.amount for call in bench.server.of("allowance")] == [1, 2, 2, 2]
    await bench.advance(31)
    await bench.server.add("assign_role", targetUserId=seed.members[3], roleId=seed.role_ids[0])
    await bench.server.until("complete", 4)
    assert [call.amount for call in bench.server.of("allowance")] == [1, 2, 2, 2, 1, 2]
    assert [call.is_write for call in bench.server.of("allowance")[:2]] == [False, True]


async def test_a_write_beyond_the_days_waits_for_as_long_as_the_server_says(bench: Bench) -> None:
    """It is not cut to what the claim would wait for."""
    half_a_day = 43_200_000

    async def used_up(sent: m.Allowance) -> m.Message:
        if not sent.is_write:
            return m.AllowanceAnswer(is_granted=True, limit=30, window_ms=30_000)
        return m.AllowanceAnswer(is_granted=False, limit=4, retry_ms=half_a_day, is_daily_cap=True)

    bench.server.handlers["allowance"] = used_up
    await bench.server.add("assign_role", **bench.role())
    deferred = await bench.server.until("defer")
    assert (deferred.code, deferred.delay_ms) == ("daily_write_cap", half_a_day)
    assert bench.writes() == 0
    assert bench.reads("/groups/") == 0


# --- answers that never came


@pytest.mark.clause("WRK-14")
async def test_a_lost_authorization_answer_sends_nothing_and_settles_nothing(bench: Bench) -> None:
    async def lost(_sent: m.Authorize) -> m.Message:
        raise Drop

    bench.server.handlers["authorize"] = lost
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    assert bench.writes() == 0
    for call in ("complete", "reject", "defer", "failure"):
        assert bench.server.of(call) == [], call


@pytest.mark.clause("WRK-14", "WRK-15")
@pytest.mark.parametrize(
    "fault", [faults.drop(applied=True), faults.drop(applied=False), faults.garbage(applied=True)]
)
async def test_an_unclear_answer_is_unknown_and_the_write_is_not_repeated(
    bench: Bench, fault: faults.Fault
) -> None:
    bench.simulator.arm(fault, method="PUT")
    await bench.server.add("assign_role", **bench.role())
    completed = await bench.server.until("complete")
    await bench.server.until("release")
    assert completed.outcome is Outcome.INDETERMINATE
    puts = [arrival for arrival in bench.simulator.arrivals if "/roles/" in arrival.path]
    assert len(puts) == 1
    assert bench.writes() == (1 if fault.applies else 0)


async def test_a_refused_authorization_is_the_end_of_it(bench: Bench) -> None:
    async def no(_sent: m.Authorize) -> m.Message:
        return m.AuthorizeAnswer(is_authorized=False, code="staff_permission", state="rejected")

    bench.server.handlers["authorize"] = no
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    assert bench.writes() == 0
    assert bench.server.names("hello", "wait", "lease", "allowance", "release").count("authorize") == 1
    assert bench.server.of("reject") == []


# --- the reports


async def test_a_report_is_repeated_until_the_server_takes_it(bench: Bench) -> None:
    lost = iter([True, True, False])

    async def shaky(sent: m.Complete) -> m.Message:
        if next(lost):
            raise Drop
        return m.Recorded(is_recorded=True, state=sent.outcome.value)

    bench.server.handlers["complete"] = shaky
    await bench.time.run_at(50)
    await bench.server.add("assign_role", **bench.role())
    completed = await bench.server.until("complete", 3)
    assert completed.outcome is Outcome.SUCCEEDED
    assert bench.writes() == 1


@pytest.mark.clause("WRK-09")
async def test_a_taken_report_starts_no_write(bench: Bench) -> None:
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    arrivals = len(bench.simulator.arrivals)
    await bench.end()
    bench.start()
    await bench.server.until("hello", 2)
    await bench.end()
    assert len(bench.server.of("complete")) == 1
    assert [arrival.path for arrival in bench.simulator.arrivals[arrivals:]] == ["/auth/user"]


async def test_what_was_not_reported_is_reported_after_a_restart(bench: Bench) -> None:
    async def away(_sent: m.Complete) -> m.Message:
        raise Drop

    bench.server.handlers["complete"] = away
    operation = await bench.server.add("assign_role", **bench.role())
    await bench.server.until("complete")
    await bench.end()
    del bench.server.handlers["complete"]
    bench.start()
    await eventually(lambda: operation in bench.server.completed, within=15)
    hello = await bench.server.until("hello", 2)
    assert [(known.operation_id, known.is_answered) for known in hello.submissions] == [(operation, True)]
    assert bench.server.completed[operation].outcome is Outcome.SUCCEEDED
    assert bench.writes() == 1


@pytest.mark.parametrize("reads_it", [False, True], ids=["another release", "twin"])
async def test_a_report_that_a_server_of_another_release_did_not_read_is_made_after_the_upgrade(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, reads_it: bool
) -> None:
    """The twin takes that refusal for the last word: then a known outcome becomes an unknown one."""

    async def upgraded(_sent: m.Complete) -> m.Message:
        raise Refusal(422, PROTOCOL_MISMATCH)

    if reads_it:
        monkeypatch.setattr("lastcall.collector.reporting.NOT_READ", frozenset())
    bench.server.handlers["complete"] = upgraded
    operation = await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    await bench.end()
    del bench.server.handlers["complete"]
    bench.start()
    await bench.server.until("hello", 2)
    await bench.end()
    assert (operation in bench.server.completed) is not reads_it
    assert bench.writes() == 1


async def test_a_refused_report_is_not_made_again(bench: Bench) -> None:
    async def stale(_sent: m.Complete) -> m.Message:
        raise Refusal(409, "claim_unavailable")

    bench.server.handlers["complete"] = stale
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    await bench.end()
    del bench.server.handlers["complete"]
    bench.start()
    await bench.server.until("hello", 2)
    await bench.end()
    assert len(bench.server.of("complete")) == 1
