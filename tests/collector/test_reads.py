"""Reads for somebody at a screen: answered while anybody waits, and each one's failure its own."""

from __future__ import annotations

from typing import Any

import pytest
from collector_bench import Bench

from lastcall.collector import passes
from lastcall.collector.state import fresh_id
from lastcall.protocol import messages as m
from lastcall.protocol.reads import ClaimedRead
from lastcall.testing.waiting import eventually
from lastcall.vrchat.simulator import faults

QUIET = ("hello", "wait", "lease", "allowance", "renew")


def wanted(kind: str) -> ClaimedRead:
    return ClaimedRead(read_id=fresh_id(), nonce=fresh_id(), kind=kind, params={"n": 5}, life_ms=60_000)


async def read(bench: Bench, *kinds: str, count: int = 1) -> list[str]:
    """The calls of a pass that answers these reads."""
    await bench.server.until("hello")
    for kind in kinds:
        bench.server.reads.append(wanted(kind))
    await bench.server.look()
    await bench.server.until("release", count)
    return bench.server.names(*QUIET)


async def test_a_page_goes_in_with_the_evidence_that_it_was_read_under(bench: Bench) -> None:
    assert await read(bench, "members") == ["claim", "read_claim", "read_complete", "read_claim", "release"]
    page = bench.server.of("read_complete")[0]
    assert len(page.items) == 5
    assert set(page.items[0]) == {"userId", "displayName", "roleIds", "joinedAt"}
    assert page.next_offset == 5
    assert page.evidence.group_id == bench.simulator.seed.group_id
    assert page.evidence.age_ms <= page.age_ms < 10_000
    assert [call.amount for call in bench.server.of("allowance")] == [2]


async def test_one_look_at_the_group_serves_the_reads_of_thirty_seconds(bench: Bench) -> None:
    await read(bench, "members", "requests", "bans")
    assert len(bench.server.of("read_complete")) == 3
    assert [call.amount for call in bench.server.of("allowance")] == [2, 1, 1]
    groups = [arrival.path for arrival in bench.simulator.arrivals if arrival.path.count("/") == 2]
    assert len([path for path in groups if path.startswith("/groups/")]) == 1


async def test_the_evidence_of_an_operation_serves_the_read_after_it(bench: Bench) -> None:
    await bench.server.until("hello")
    bench.server.reads.append(wanted("members"))
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("read_complete")
    assert [call.amount for call in bench.server.of("allowance")] == [2, 1]


@pytest.mark.clause("BUD-05")
async def test_evidence_that_grew_old_is_read_anew_for_the_next_read(bench: Bench) -> None:
    page = await a_page_half_a_minute_after_the_look(bench)
    assert page.evidence.age_ms < 10_000
    assert [call.amount for call in bench.server.of("allowance") if call.lease is not None] == [2, 2]


async def test_without_the_limit_of_its_age_old_evidence_serves(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes.Pass, "_is_fresh", lambda _pass, _asked_at: True)
    page = await a_page_half_a_minute_after_the_look(bench)
    assert page.evidence.age_ms >= 31_000


async def a_page_half_a_minute_after_the_look(bench: Bench) -> Any:
    """Two reads, of which the first takes so long; how the second is handed in."""
    bench.simulator.arm(faults.hold("page", "arrived"), method="GET", path="/groups/*/members")
    await bench.server.until("hello")
    bench.server.reads.extend([wanted("members"), wanted("bans")])
    await bench.server.look()
    await bench.simulator.reached("page")
    await bench.advance(31)
    bench.simulator.release("page")
    return await bench.server.until("read_complete", 2)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (faults.answer(403), "provider_permissions"),
        (faults.proxy_page(502, applied=False), "transient"),
        (faults.garbage(applied=False), "transient"),
    ],
)
async def test_an_ordinary_fault_is_that_reads_alone(bench: Bench, reply: faults.Fault, code: str) -> None:
    bench.simulator.arm(reply, method="GET", path="/groups/*/members")
    assert await read(bench, "members", "bans") == [
        "claim", "read_claim", "read_failed", "read_claim", "read_complete", "read_claim", "release",
    ]  # fmt: skip
    assert bench.server.of("read_failed")[0].code == code
    assert bench.server.of("failure") == []


@pytest.mark.clause("COL-06", "COL-07", "COL-03")
async def test_a_throttled_read_is_recorded_first_and_its_timing_travels_apart(bench: Bench) -> None:
    bench.simulator.arm(faults.answer(429, retry_after="120"), method="GET", path="/groups/*/members")
    assert await read(bench, "members", "bans") == [
        "claim", "read_claim", "read_failed", "failure", "release",
    ]  # fmt: skip
    failed = bench.server.of("read_failed")[0]
    assert (failed.code, set(failed.__struct_fields__)) == (
        "rate_limit",
        {"worker_id", "vrchat_user_id", "read", "code"},
    )
    assert bench.server.of("failure")[0].retry_after_ms == 120_000
    assert len(bench.server.reads) == 1, "the other one is not touched"


@pytest.mark.clause("COL-06")
async def test_a_recorded_read_is_not_made_again_after_the_pause(bench: Bench) -> None:
    bench.simulator.arm(faults.answer(429, retry_after="20"), method="GET", path="/groups/*/members")
    await read(bench, "members")
    await bench.server.look()
    await bench.advance(21)
    await bench.server.until("release", 2)
    assert len(bench.server.of("read_failed")) == 1
    assert bench.reads("/members") == 1


async def test_lost_membership_fails_the_read_and_ends_the_pass(bench: Bench) -> None:
    bench.edit("remove_member", user_id=bench.simulator.seed.bot_id)
    assert await read(bench, "members", "bans") == [
        "claim",
        "read_claim",
        "read_failed",
        "failure",
        "release",
    ]
    assert bench.server.of("read_failed")[0].code == bench.server.of("failure")[0].code == "membership"


@pytest.mark.parametrize(
    ("kind", "params", "code"),
    [("tea", {}, "unsupported_operation"), ("members", {"n": 0}, "invalid_input")],
)
async def test_what_it_does_not_understand_fails_before_any_request(
    bench: Bench, kind: str, params: dict[str, int], code: str
) -> None:
    await bench.server.until("hello")
    await bench.server.ask(kind, **params)
    failed = await bench.server.until("read_failed")
    assert failed.code == code
    assert bench.server.of("allowance") == []
    assert bench.reads("/groups/") == 0


@pytest.mark.clause("BUD-02")
async def test_a_limit_below_the_cost_fails_the_read_before_any_request(bench: Bench) -> None:
    bench.server.requests_per_minute = 1
    await read(bench, "members")
    assert bench.server.of("read_failed")[0].code == "operation_budget_too_low"
    assert bench.server.of("allowance") == []
    assert bench.reads("/groups/") == 0


async def test_what_nobody_waits_for_any_more_is_not_asked(bench: Bench) -> None:
    async def later(sent: m.Allowance) -> m.Message:
        is_granted = len(bench.server.of("allowance")) > 1
        return m.AllowanceAnswer(is_granted=is_granted, limit=30, window_ms=60_000, retry_ms=70_000)

    bench.server.handlers["allowance"] = later
    await read(bench, "members")
    assert bench.server.of("read_failed")[0].code == "rate_limit"
    assert bench.reads("/groups/") == 0


async def test_a_page_that_comes_after_everybody_left_is_not_paged_on(bench: Bench) -> None:
    bench.simulator.arm(faults.hold("group", "arrived"), method="GET", path="/groups/*")
    await bench.server.until("hello")
    await bench.server.ask("members", life_ms=20_000, n=5)
    await bench.simulator.reached("group")
    await bench.advance(21)
    bench.simulator.release("group")
    failed = await bench.server.until("read_failed")
    assert failed.code == "rate_limit"
    assert bench.reads("/members") == 0


async def test_a_read_that_becomes_due_is_answered_though_no_operation_is(bench: Bench) -> None:
    await bench.server.until("hello")
    await bench.server.ask("member", targetUserId=bench.simulator.seed.members[0])
    page = await bench.server.until("read_complete")
    assert page.items[0]["userId"] == bench.simulator.seed.members[0]
    await eventually(lambda: len(bench.server.of("release")) == 1, within=10)
    assert bench.server.of("membership") == [], "the page's evidence is the readiness"
