"""What would happen without the guards of the phases: each bad outcome that one of them prevents."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from collector_bench import Bench

from lastcall.collector import holding, phases
from lastcall.collector.account import Account
from lastcall.collector.failures import Trouble
from lastcall.collector.holding import Held
from lastcall.collector.passes import Pass
from lastcall.collector.phases import reads
from lastcall.protocol import messages as m
from lastcall.protocol.steps import Step
from lastcall.testing.waiting import eventually
from lastcall.vrchat.simulator import faults


async def one_pass(bench: Bench) -> None:
    await bench.server.look()
    await bench.server.until("release")


async def test_without_its_four_minutes_a_pass_keeps_its_lease_for_ever(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phases, "PASS_LIFE", timedelta(hours=1))
    bench.hold(Step.COMPLETE_ANSWERED)
    await bench.server.add("assign_role", **bench.role())
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.COMPLETE_ANSWERED)
    await bench.advance(241)
    bench.release(Step.COMPLETE_ANSWERED)
    await bench.server.until("complete", 2)
    assert len(bench.server.of("lease")) == 1


async def test_without_their_independence_failed_aggregates_cost_the_readiness(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        phases, "PHASES", tuple(dataclasses.replace(phase, is_optional=False) for phase in phases.PHASES)
    )
    bench.server.features = ("analytics",)
    bench.simulator.arm(faults.proxy_page(502, applied=False), method="GET", path="/groups/*/instances")
    await one_pass(bench)
    assert bench.server.of("membership") == []


async def test_without_the_look_at_the_features_aggregates_are_read_where_they_are_off(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pass, "has_analytics", True)
    await one_pass(bench)
    assert len(bench.server.of("sample")) == 1


async def test_without_the_record_before_it_a_fault_leaves_its_read_open(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unrecorded(*_arguments: object) -> None:
        return

    monkeypatch.setattr(reads, "_failed", unrecorded)
    bench.simulator.arm(faults.answer(429, retry_after="60"), method="GET", path="/groups/*/bans")
    await bench.server.until("hello")
    await bench.server.ask("bans", n=5)
    await bench.server.until("failure")
    assert bench.server.of("read_failed") == []


async def test_where_a_missing_grant_counts_as_lost_membership_the_whole_connection_fails(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = phases.trouble_of

    def all_shared(error: Any) -> Trouble:
        return dataclasses.replace(usual(error), is_shared=True)

    monkeypatch.setattr(phases, "trouble_of", all_shared)
    bench.server.features = ("analytics", "membership_management")
    bench.simulator.arm(faults.answer(403), method="GET", path="/groups/*/instances")
    await one_pass(bench)
    assert [failure.telemetry_only for failure in bench.server.of("failure")] == [False]
    assert bench.server.of("membership") == []


async def test_without_the_stop_in_its_charge_a_stopping_pass_asks_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Held, "charge", lambda held: held.slots.charge())
    bench.simulator.arm(faults.hold("look", "arrived"), method="GET", path="/groups/*")
    bench.server.features = ("analytics",)
    await bench.server.look()
    await bench.simulator.reached("look")
    bench.stop.set()
    bench.simulator.release("look")
    assert await bench.end() == 0
    assert bench.reads("/instances") == 1


@pytest.mark.clause("BUD-04")
@pytest.mark.parametrize("is_guarded", [True, False])
async def test_a_reservation_that_ran_out_between_two_reads_buys_no_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    async def short(_sent: m.Allowance) -> m.Message:
        return m.AllowanceAnswer(is_granted=True, limit=30, window_ms=8_000)

    if not is_guarded:
        monkeypatch.setattr(Held, "charge", lambda held: held.slots.charge())
    bench.server.handlers["allowance"] = short
    bench.simulator.arm(faults.hold("look", "arrived"), method="GET", path="/groups/*")
    await bench.server.until("hello")
    await bench.server.ask("bans", n=5)
    await bench.simulator.reached("look")
    await bench.advance(9)
    bench.simulator.release("look")
    await bench.server.until("release")
    assert bench.reads("/bans") == (0 if is_guarded else 1)
    assert len(bench.server.of("read_failed")) == (1 if is_guarded else 0)


async def test_without_the_look_at_the_limit_too_dear_an_operation_is_tried_for_ever(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding, "need_budget", lambda _lease, _amount: None)
    bench.server.requests_per_minute = 1
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("defer")
    assert bench.server.of("reject") == []


async def test_without_its_proof_an_account_works_in_a_session_that_is_over(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def believed(_account: Account, _until: float) -> None:
        return

    await bench.server.until("hello")
    await bench.advance(61)
    proofs = bench.reads("/auth/user")
    monkeypatch.setattr(Account, "prove_identity", believed)
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("complete")
    assert bench.reads("/auth/user") == proofs


async def test_without_what_it_owes_the_server_never_hears_of_the_question(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Account, "_owing", lambda _account, _amount: 0)
    await bench.server.until("hello")
    await bench.advance(35)
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    assert [call.amount for call in bench.server.of("allowance") if call.lease is None] == [1]


async def test_without_vrchats_own_delay_it_is_asked_again_too_soon(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def at_once(account: Any, reporter: Any, due: Any) -> float | None:
        return 0.0 if await usual(account, reporter, due) is not None else None

    usual = phases.run_pass
    monkeypatch.setattr("lastcall.collector.runner.run_pass", at_once)
    bench.server.features = ("analytics",)
    bench.simulator.arm(faults.answer(503, retry_after="40"), method="GET", path="/groups/*/instances")
    await one_pass(bench)
    await bench.server.look()
    await bench.advance(20)
    await eventually(lambda: len(bench.server.of("release")) == 2, within=10)
    assert bench.reads("/instances") == 2
