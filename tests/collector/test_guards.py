"""Between the authorization and the first byte: what stops the write, and that nothing else does."""

from __future__ import annotations

import errno

import pytest
from collector_bench import Bench
from scripted_server import Drop

from lastcall.collector.account import Account
from lastcall.collector.journal import Journal
from lastcall.collector.operation import Operation
from lastcall.errors import Unavailable
from lastcall.protocol import messages as m
from lastcall.protocol.constants import SUBMISSION_LIFE, TRANSPORT_TIMEOUT, WORKER_EVIDENCE_AGE
from lastcall.protocol.outcomes import Code, Outcome
from lastcall.protocol.steps import Step
from lastcall.testing.waiting import eventually
from lastcall.vrchat.errors import RateLimit
from lastcall.vrchat.simulator import faults


async def assert_not_sent(bench: Bench) -> m.Complete:
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
    await assert_not_sent(bench)


@pytest.mark.clause("WRK-13")
async def test_a_stop_after_the_intent_is_reported_as_not_sent(bench: Bench) -> None:
    bench.hold(Step.INTENT_FSYNCED)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.INTENT_FSYNCED)
    assert await bench.end() == 0
    await assert_not_sent(bench)


@pytest.mark.clause("WRK-13", "BUD-06")
async def test_an_authorization_that_comes_after_the_grace_starts_no_write(bench: Bench) -> None:
    bench.hold(Step.AUTHORIZE_ANSWERED)
    await bench.server.add("assign_role", execute_before_ms=10_000, **bench.role())
    await bench.at(Step.AUTHORIZE_ANSWERED)
    await bench.advance(10.5)
    bench.release(Step.AUTHORIZE_ANSWERED)
    await assert_not_sent(bench)


@pytest.mark.clause("WRK-13", "BUD-05")
async def test_evidence_of_more_than_thirty_seconds_starts_no_write(bench: Bench) -> None:
    bench.hold(Step.AUTHORIZE_ANSWERED)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.AUTHORIZE_ANSWERED)
    await bench.advance(WORKER_EVIDENCE_AGE.total_seconds() + 0.5)
    bench.release(Step.AUTHORIZE_ANSWERED)
    await assert_not_sent(bench)


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
    await assert_not_sent(bench)


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
    await assert_not_sent(bench)


@pytest.mark.clause("WRK-13")
async def test_a_full_disk_sends_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_arguments: object) -> None:
        raise Unavailable("journal_full", "The disk is full.")

    bench.hold(Step.AUTHORIZE_ANSWERED)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.AUTHORIZE_ANSWERED)
    monkeypatch.setattr("lastcall.collector.journal.Journal.intend", full)
    bench.release(Step.AUTHORIZE_ANSWERED)
    await assert_not_sent(bench)


async def test_a_full_disk_costs_the_operation_in_hand_and_no_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int, _content: bytes) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    bench.hold(Step.AUTHORIZE_ANSWERED)
    first = await bench.server.add("assign_role", **bench.role())
    others = [await bench.server.add("assign_role", **bench.role()) for _ in range(2)]
    await bench.at(Step.AUTHORIZE_ANSWERED)
    with monkeypatch.context() as disk:
        disk.setattr("lastcall.collector.journal._write_all", full)
        bench.release(Step.AUTHORIZE_ANSWERED)
        await bench.server.until("release", 2)
        assert {*bench.server.completed} == {first}
        assert len(bench.server.of("claim")) == 1
    await eventually(lambda: {*bench.server.completed} == {first, *others}, within=15)
    assert bench.server.completed[first].code == Code.NOT_ATTEMPTED
    assert bench.writes() == len(others)


@pytest.mark.clause("RCV-10")
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
    await assert_not_sent(bench)


# --- the twins


@pytest.mark.parametrize("limit", ["grace", "evidence", "reservation"])
async def test_without_its_last_guard_it_writes_too_late(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """The twin of the guards between authorization and transport: the bad outcome that they prevent."""
    seconds = {"grace": 10.5, "evidence": 30.5, "reservation": 8.5}[limit]

    async def allow(_sent: m.Allowance) -> m.Message:
        return m.AllowanceAnswer(
            is_granted=True, limit=30, window_ms=8_000 if limit == "reservation" else 60_000
        )

    def nothing_stops_it(_operation: Operation, _until: float) -> bool:
        return True

    monkeypatch.setattr(Operation, "_may_send", nothing_stops_it)
    bench.server.handlers["allowance"] = allow
    bench.hold(Step.AUTHORIZE_ANSWERED)
    await bench.server.add(
        "assign_role", execute_before_ms=10_000 if limit == "grace" else 900_000, **bench.role()
    )
    await bench.at(Step.AUTHORIZE_ANSWERED)
    await bench.advance(seconds)
    bench.release(Step.AUTHORIZE_ANSWERED)
    completed = await bench.server.until("complete")
    assert completed.outcome is Outcome.SUCCEEDED
    assert bench.writes() == 1


async def test_without_the_stop_guard_a_stopping_collector_writes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Operation, "_may_send", lambda _operation, _until: True)
    bench.hold(Step.INTENT_FSYNCED)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.INTENT_FSYNCED)
    await bench.end()
    assert bench.writes() == 1


async def test_without_the_intent_a_crash_looks_like_nothing_was_sent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin of the journal: the write is applied, and the next hello vouches for nothing having been sent."""

    async def forgets(*_arguments: object) -> None:
        return

    async def away(_sent: m.Complete) -> m.Message:
        raise Drop

    bench.server.handlers["complete"] = away
    with monkeypatch.context() as patch:
        for name in ("intend", "answered", "reported"):
            patch.setattr(Journal, name, forgets)
        await bench.server.add("assign_role", **bench.role())
        await bench.server.until("complete")
        await bench.end()
    bench.start()
    hello = await bench.server.until("hello", 2)
    assert bench.writes() == 1
    assert hello.is_journal_intact
    assert hello.submissions == (), "so the server would record it as never sent"
