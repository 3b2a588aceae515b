"""One operation through the collector: what it asks, when it stops, and that it writes once or not at all."""

from __future__ import annotations

import asyncio

import pytest
from collector_bench import Bench
from scripted_server import Drop, Refusal

from lastcall.collector.account import Account
from lastcall.errors import Unavailable
from lastcall.protocol import messages as m
from lastcall.protocol.constants import SUBMISSION_LIFE, TRANSPORT_TIMEOUT, WORKER_EVIDENCE_AGE
from lastcall.protocol.outcomes import Code, Outcome
from lastcall.protocol.steps import Step
from lastcall.testing.waiting import eventually
from lastcall.vrchat.errors import RateLimit
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
    for member in seed.members[:3]:
        await bench.server.add("assign_role", targetUserId=member, roleId=seed.role_ids[0])
    await bench.server.until("complete", 3)
    assert [call.amount for call in bench.server.of("allowance")] == [1, 2, 2, 2]
    await bench.advance(31)
    await bench.server.add("assign_role", targetUserId=seed.members[3], roleId=seed.role_ids[0])
    await bench.server.until("complete", 4)
    assert [call.amount for call in bench.server.of("allowance")] == [1, 2, 2, 2, 1, 2]


# ------------------------------------------------------------------------- between authorization and transpor


async def not_sent(bench: Bench) -> m.Complete:
    completed = await bench.server.until("complete")
    assert completed.outcome is Outcome.REJECTED
    assert completed.code == "submission_not_attempted"
    assert bench.writes() == 0
    assert not any(arrival.method == "PUT" for arrival in bench.simulator.arrivals[4:])
    return completed


@pytest.mark.clause("WRK-13")
async def test_a_stop_after_the_authorization_is_reported_as_not_sent(bench: Bench) -> None:
    bench.hold(Step.AUTHORIZE_ANSWERED)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.AUTHORIZE_ANSWERED)
    assert await bench.end() == 0
    await not_sent(bench)


@pytest.mark.clause("WRK-13")
async def test_a_stop_after_the_intent_is_reported_as_not_sent(bench: Bench) -> None:
    bench.hold(Step.INTENT_FSYNCED)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.INTENT_FSYNCED)
    assert await bench.end() == 0
    await not_sent(bench)


@pytest.mark.clause("WRK-13", "BUD-06")
async def test_an_authorization_that_comes_after_the_grace_starts_no_write(bench: Bench) -> None:
    bench.hold(Step.AUTHORIZE_ANSWERED)
    await bench.server.add("assign_role", execute_before_ms=10_000, **bench.role())
    await bench.at(Step.AUTHORIZE_ANSWERED)
    await bench.advance(10.5)
    bench.release(Step.AUTHORIZE_ANSWERED)
    await not_sent(bench)


@pytest.mark.clause("WRK-13", "BUD-05")
async def test_evidence_of_more_than_thirty_seconds_starts_no_write(bench: Bench) -> None:
    bench.hold(Step.AUTHORIZE_ANSWERED)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.AUTHORIZE_ANSWERED)
    await bench.advance(WORKER_EVIDENCE_AGE.total_seconds() + 0.5)
    bench.release(Step.AUTHORIZE_ANSWERED)
    await not_sent(bench)


@pytest.mark.clause("WRK-13", "BUD-04")
async def test_a_reservation_that_ran_out_starts_no_write(bench: Bench) -> None:
    async def short(_sent: m.Allowance) -> m.Message:
        return m.AllowanceAnswer(is_granted=True, limit=30, window_ms=8_000)

    bench.server.handlers["allowance"] = short
    bench.hold(Step.AUTHORIZE_ANSWERED)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.AUTHORIZE_ANSWERED)
    await bench.advance(8.5)
    bench.release(Step.AUTHORIZE_ANSWERED)
    await not_sent(bench)


@pytest.mark.clause("WRK-13")
async def test_a_write_that_could_outlast_the_two_minutes_is_not_started(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lastcall.collector.operation.WORKER_EVIDENCE_AGE", SUBMISSION_LIFE * 2)

    async def long(_sent: m.Allowance) -> m.Message:
        return m.AllowanceAnswer(is_granted=True, limit=30, window_ms=600_000)

    bench.server.handlers["allowance"] = long
    bench.hold(Step.AUTHORIZE_SENT)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.AUTHORIZE_SENT)
    await bench.advance((SUBMISSION_LIFE - TRANSPORT_TIMEOUT).total_seconds() + 0.5)
    bench.release(Step.AUTHORIZE_SENT)
    await not_sent(bench)


@pytest.mark.clause("WRK-13")
async def test_a_full_disk_sends_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_arguments: object) -> None:
        raise Unavailable("journal_full", "The disk is full.")

    bench.hold(Step.AUTHORIZE_ANSWERED)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.AUTHORIZE_ANSWERED)
    monkeypatch.setattr("lastcall.collector.journal.Journal.intend", full)
    bench.release(Step.AUTHORIZE_ANSWERED)
    await not_sent(bench)


async def test_a_pause_that_another_operation_was_told_of_stops_this_one_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts: list[Account] = []
    told = Account.heed

    def remembering(account: Account, fault: RateLimit) -> None:
        accounts.append(account)
        told(account, fault)

    monkeypatch.setattr(Account, "heed", remembering)
    seed = bench.simulator.seed
    bench.simulator.arm(faults.proxy_page(502, applied=False), method="GET", path="/groups/*")
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("defer")
    bench.hold(Step.AUTHORIZE_ANSWERED)
    await bench.advance(20)
    await bench.server.add("assign_role", targetUserId=seed.members[1], roleId=seed.role_ids[0])
    await bench.at(Step.AUTHORIZE_ANSWERED)
    accounts[0].heed(RateLimit("Pause.", retry_after=30))
    bench.release(Step.AUTHORIZE_ANSWERED)
    await not_sent(bench)


# ----------------------------------------------------------------------------------- answers that never came


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


# ------------------------------------------------------------------------------------------ faults, shared on


@pytest.mark.clause("WRK-18")
@pytest.mark.parametrize(("header", "delay_ms"), [("90", 90_000), ("86400", 86_400_000), (None, 60_000)])
async def test_a_throttled_read_defers_by_the_providers_own_delay_and_ends_the_pass(
    bench: Bench, header: str | None, delay_ms: int
) -> None:
    bench.simulator.arm(faults.answer(429, retry_after=header), method="GET", path="/groups/*")
    await bench.server.add("assign_role", **bench.role())
    await bench.server.add("ban_member", targetUserId=bench.simulator.seed.members[1])
    deferred = await bench.server.until("defer")
    failure = await bench.server.until("failure")
    await bench.server.until("release")
    assert deferred.code == "rate_limit"
    assert deferred.delay_ms == delay_ms
    assert failure.retry_after_ms == delay_ms
    assert len(bench.server.of("claim")) == 1, "the other operation is not touched"
    assert bench.reads("/groups/") == 1


async def test_an_error_page_defers_by_the_usual_delay(bench: Bench) -> None:
    bench.simulator.arm(faults.proxy_page(502, applied=False), method="GET", path="/groups/*")
    await bench.server.add("assign_role", **bench.role())
    deferred = await bench.server.until("defer")
    assert (deferred.code, deferred.delay_ms) == ("transient", 60_000)


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


@pytest.mark.clause("RCV-10")
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
    assert await asyncio.wait_for(bench.running, 15) == 1


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
    assert [call.amount for call in bench.server.of("allowance")] == [1, 2, 2, 1]
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


# ------------------------------------------------------------------------------------------------- the report


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
    assert completed.answered_ago_ms > 0
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
    assert len(bench.simulator.arrivals) == arrivals


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
    hello = bench.server.of("hello")[-1]
    assert [(known.operation_id, known.is_answered) for known in hello.submissions] == [(operation, True)]
    assert bench.server.completed[operation].outcome is Outcome.SUCCEEDED
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
