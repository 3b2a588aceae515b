"""The phases of a pass: in their order, independent of each other where they may be, and one where they must."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from collector_bench import Bench
from scripted_server import Refusal

from lastcall.collector import phases
from lastcall.collector.failures import Trouble
from lastcall.collector.phases import operations
from lastcall.protocol import messages as m
from lastcall.protocol import telemetry as t
from lastcall.protocol.steps import Step
from lastcall.testing.waiting import eventually
from lastcall.vrchat.simulator import faults

QUIET = ("hello", "wait", "lease", "allowance", "renew")


def asked(bench: Bench) -> list[str]:
    """The reads of VRChat but those of the sign-in, without their ids."""
    paths = [arrival.path for arrival in bench.simulator.arrivals if arrival.path.startswith("/groups/")]
    return ["group" if path.count("/") == 2 else path.split("/", 3)[3] for path in paths]


async def one_pass(bench: Bench, count: int = 1) -> list[str]:
    """The calls of a pass that a due look begins, without those that every pass has."""
    await bench.server.look()
    await bench.server.until("release", count)
    return bench.server.names(*QUIET)


def window_of(bench: Bench) -> t.AuditWindow:
    """Everything that the audit log holds."""
    now = bench.time.clock.wall()
    year = timedelta(days=365)
    return t.AuditWindow(scan_id="0" * 26, starts_at=now - year, ends_at=now + year, offset=0)


# --- the order


@pytest.mark.clause("COL-01")
async def test_people_come_before_analytics(bench: Bench) -> None:
    bench.server.features = ("membership_management", "analytics")
    bench.server.state = "connecting"
    await bench.server.until("hello")
    await bench.server.ask("members", n=25)
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    assert bench.server.names(*QUIET) == [
        "membership", "claim", "authorize", "complete", "claim", "read_claim", "read_complete", "read_claim",
        "sample", "audit_claim", "release",
    ]  # fmt: skip


async def test_without_its_order_analytics_come_first(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "PHASES", tuple(reversed(phases.PHASES)))
    bench.server.features = ("membership_management", "analytics")
    await bench.server.until("hello")
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    calls = bench.server.names(*QUIET)
    assert calls.index("sample") < calls.index("authorize")


@pytest.mark.clause("COL-04")
@pytest.mark.parametrize("state", ["active", "connecting"])
async def test_without_analytics_no_aggregate_is_read_or_handed_in(bench: Bench, state: str) -> None:
    bench.server.features = ("membership_management", "posts", "instances")
    bench.server.state = state
    calls = await one_pass(bench)
    assert not {"sample", "audit_claim", "audit_page"} & {*calls}
    assert asked(bench) == ["group"]


@pytest.mark.clause("COL-04")
async def test_a_connection_without_settings_has_its_analytics_alone(bench: Bench) -> None:
    bench.server.features = None
    calls = await one_pass(bench)
    assert calls == ["claim", "read_claim", "sample", "membership", "audit_claim", "release"]
    assert asked(bench) == ["group", "instances"]


async def test_a_look_without_analytics_is_a_look_at_the_group(bench: Bench) -> None:
    assert await one_pass(bench) == ["claim", "read_claim", "membership", "release"]
    told = bench.server.of("membership")[0]
    assert told.group.membership == "member"
    assert told.evidence.permissions
    assert told.evidence.age_ms < 10_000


async def test_a_pass_that_did_something_does_not_look_without_need(bench: Bench) -> None:
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    assert bench.server.of("membership") == []
    assert asked(bench)[:1] == ["group"]
    assert bench.reads("/groups/") == 1


@pytest.mark.clause("COL-01")
async def test_somebody_at_a_screen_does_not_wait_for_a_whole_batch(bench: Bench) -> None:
    calls = await a_batch_and_a_read(bench)
    assert calls.index("read_complete") < len(calls) - 1 - calls[::-1].index("authorize")


async def test_without_a_turn_of_their_own_reads_wait_for_the_batch(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "READS_TURN", float("inf"))
    calls = await a_batch_and_a_read(bench)
    assert calls.index("read_complete") > len(calls) - 1 - calls[::-1].index("authorize")


async def a_batch_and_a_read(bench: Bench) -> list[str]:
    """Two actions, of which the first takes half a minute, and a list that is asked for meanwhile."""
    bench.hold(Step.ANSWER_FSYNCED)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.ANSWER_FSYNCED)
    await bench.server.add("ban_member", targetUserId=bench.simulator.seed.members[1])
    await bench.server.ask("members", n=25)
    await bench.advance(30)
    bench.release(Step.ANSWER_FSYNCED)
    await bench.server.until("read_complete")
    await bench.server.until("release")
    return bench.server.names(*QUIET)


# --- analytics


@pytest.mark.clause("COL-02")
@pytest.mark.parametrize("features", [("membership_management", "analytics"), None], ids=["more", "alone"])
@pytest.mark.parametrize("path", ["/groups/*/instances", "/groups/grp_????????-????-????-????-????????????"])
async def test_readiness_is_refreshed_though_the_aggregates_failed(
    bench: Bench, path: str, features: tuple[str, ...] | None
) -> None:
    bench.server.features = features
    bench.simulator.arm(faults.proxy_page(502, applied=False), method="GET", path=path)
    calls = await one_pass(bench)
    assert calls == ["claim", "read_claim", "failure", "membership", "audit_claim", "release"]
    assert bench.server.of("failure")[0].telemetry_only is (features is not None)


@pytest.mark.clause("COL-02")
async def test_readiness_is_refreshed_though_the_sample_was_refused(bench: Bench) -> None:
    async def no(_sent: t.Sample) -> m.Message:
        raise Refusal(422, "sample_malformed", "An instance is there twice.")

    bench.server.handlers["sample"] = no
    bench.server.features = ("posts", "analytics")
    calls = await one_pass(bench)
    assert calls == ["claim", "read_claim", "sample", "failure", "membership", "audit_claim", "release"]
    assert (bench.server.of("failure")[0].code, bench.server.of("failure")[0].telemetry_only) == (
        "schema_drift",
        True,
    )


@pytest.mark.clause("COL-02")
async def test_at_two_requests_a_minute_the_aggregates_live_and_readiness_with_them(bench: Bench) -> None:
    bench.server.features = None
    bench.server.requests_per_minute = 2
    left = 2

    async def two(sent: m.Allowance) -> m.Message:
        nonlocal left
        if sent.lease is None:
            return m.AllowanceAnswer(is_granted=True, limit=30, window_ms=60_000)
        is_granted = sent.amount <= left
        left -= sent.amount if is_granted else 0
        return m.AllowanceAnswer(is_granted=is_granted, limit=2, window_ms=60_000, retry_ms=30_000)

    bench.server.handlers["allowance"] = two
    calls = await one_pass(bench)
    assert calls == ["claim", "read_claim", "sample", "membership", "audit_claim", "release"]
    assert [call.amount for call in bench.server.of("allowance") if call.lease is not None][:1] == [2]


async def test_a_look_that_grows_old_while_the_request_is_got_is_no_lost_membership(bench: Bench) -> None:
    """It is handed in with its age."""

    async def slow(sent: m.Allowance) -> m.Message:
        if sent.lease is not None and bench.server.of("read_claim"):
            await bench.advance(31)
        return await bench.server.allowance(sent)

    bench.server.handlers["allowance"] = slow
    bench.server.features, bench.server.state = ("analytics",), "connecting"
    calls = await one_pass(bench)
    assert bench.server.of("failure") == []
    assert calls[:4] == ["membership", "claim", "read_claim", "sample"]
    assert bench.server.of("sample")[0].age_ms >= 31_000


async def test_what_nobody_waits_for_does_not_wait(bench: Bench) -> None:
    async def none(sent: m.Allowance) -> m.Message:
        is_granted = sent.lease is None
        return m.AllowanceAnswer(is_granted=is_granted, limit=30, window_ms=60_000, retry_ms=20_000)

    bench.server.handlers["allowance"] = none
    bench.server.features = ("analytics",)
    before = bench.time.clock.boot()
    assert await one_pass(bench) == ["claim", "read_claim", "release"]
    assert bench.time.clock.boot() - before < 15
    assert bench.server.of("failure") == [], "no request of ours was free: that is nobody's failure"


@pytest.mark.parametrize(
    ("features", "is_telemetry_only"),
    [(("analytics",), False), (None, False), (("analytics", "posts"), True)],
)
async def test_a_failure_is_the_analytics_alone_where_there_is_more_than_them(
    bench: Bench, features: tuple[str, ...] | None, is_telemetry_only: bool
) -> None:
    bench.server.features = features
    bench.simulator.arm(faults.answer(403), method="GET", path="/groups/*/instances")
    await one_pass(bench)
    (failure,) = bench.server.of("failure")
    assert (failure.code, failure.telemetry_only) == ("provider_permissions", is_telemetry_only)


async def test_a_failure_of_the_analytics_alone_sets_no_backoff(bench: Bench) -> None:
    bench.server.features = ("analytics", "posts")
    bench.simulator.arm(faults.answer(403), method="GET", path="/groups/*/instances", times=2)
    await one_pass(bench)
    await one_pass(bench, 2)
    assert len(bench.server.of("failure")) == 2


@pytest.mark.clause("COL-05")
async def test_a_look_for_the_readiness_that_fails_is_no_failure_of_the_aggregates(bench: Bench) -> None:
    bench.server.features = ("membership_management", "analytics")
    group = "/groups/grp_????????-????-????-????-????????????"
    bench.simulator.arm(faults.proxy_page(502, applied=False), method="GET", path=group, times=2)
    assert await one_pass(bench) == ["claim", "read_claim", "failure", "failure", "release"]
    assert [failure.telemetry_only for failure in bench.server.of("failure")] == [True, False]


@pytest.mark.clause("COL-11")
async def test_an_ordinary_failure_waits_as_long_as_vrchat_said(bench: Bench) -> None:
    bench.server.features = ("analytics",)
    bench.simulator.arm(faults.answer(503, retry_after="40"), method="GET", path="/groups/*/instances")
    await one_pass(bench)
    assert bench.server.of("failure")[0].retry_after_ms == 40_000
    await bench.server.look()
    for _ in range(3):
        offers = len(bench.server.of("wait"))
        await bench.advance(10)
        await bench.server.until("wait", offers + 1)
    assert len(bench.server.of("lease")) == 1
    await bench.advance(11)
    await bench.server.until("release", 2)


# --- the audit log


async def test_one_page_of_the_audit_log_goes_on_without_the_people(bench: Bench) -> None:
    seed = bench.simulator.seed
    bench.edit("log", event="group.member.join", user_id=seed.members[0])
    bench.server.windows.extend([window_of(bench), window_of(bench)])
    bench.server.features = ("analytics",)
    assert (await one_pass(bench))[-3:] == ["audit_claim", "audit_page", "release"]
    page = bench.server.of("audit_page")[0]
    assert page.raw_count >= 1
    assert "group.member.join" in [entry.event for entry in page.entries]
    assert seed.members[0] not in repr(page)


async def test_without_the_grant_the_audit_log_is_not_asked_for(bench: Bench) -> None:
    bench.edit("take_grant", user_id=bench.simulator.seed.bot_id, grant="group-audit-view")
    bench.server.features = ("analytics",)
    assert await one_pass(bench) == ["claim", "read_claim", "sample", "membership", "release"]


# --- shared faults


@pytest.mark.clause("COL-03")
@pytest.mark.parametrize(
    ("reply", "code"),
    [(faults.answer(429, retry_after="30"), "rate_limit"), (faults.answer(401), "authentication")],
)
async def test_a_shared_fault_of_the_aggregates_ends_the_pass_before_the_next_request(
    bench: Bench, reply: faults.Fault, code: str
) -> None:
    bench.server.features = ("analytics", "posts")
    await bench.server.until("hello")
    if code == "authentication":
        bench.edit("end_sessions", user_id=bench.simulator.seed.bot_id)
    bench.simulator.arm(reply, method="GET", path="/groups/*/instances")
    await bench.server.look()
    failure = await bench.server.until("failure")
    await bench.server.until("release")
    assert (failure.code, failure.telemetry_only) == (code, False)
    assert bench.server.of("membership") == []
    assert asked(bench)[-1] in ("instances", "group")


@pytest.mark.clause("COL-03")
async def test_lost_membership_ends_the_pass_before_the_next_request(bench: Bench) -> None:
    bench.server.features = ("analytics", "posts")
    bench.edit("remove_member", user_id=bench.simulator.seed.bot_id)
    assert await one_pass(bench) == ["claim", "read_claim", "failure", "release"]
    assert asked(bench) == ["group"]
    assert bench.server.of("failure")[0].code == "membership"


async def leave_between_the_reads(bench: Bench) -> list[str]:
    """Somebody takes the account out while it asks for the instances, and the audit log is due."""
    bench.server.features = ("analytics", "posts")
    bench.server.windows.append(window_of(bench))
    bench.simulator.arm(faults.hold("instances", "arrived"), method="GET", path="/groups/*/instances")
    await bench.server.look()
    await bench.simulator.reached("instances")
    bench.edit("remove_member", user_id=bench.simulator.seed.bot_id)
    bench.simulator.release("instances")
    await bench.server.until("release")
    return asked(bench)


@pytest.mark.clause("COL-03", "COL-12")
async def test_membership_lost_between_two_reads_ends_the_pass_before_the_third(bench: Bench) -> None:
    assert await leave_between_the_reads(bench) == ["group", "instances"]
    assert [failure.code for failure in bench.server.of("failure")] == ["membership"]


async def test_without_its_guard_a_shared_fault_is_followed_by_another_request(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = phases.trouble_of

    def never_shared(error: Any) -> Trouble:
        return dataclasses.replace(usual(error), is_shared=False)

    monkeypatch.setattr(phases, "trouble_of", never_shared)
    assert await leave_between_the_reads(bench) == ["group", "instances", "auditLogs"]


@pytest.mark.clause("COL-08")
async def test_a_missing_grant_of_the_analytics_leaves_the_actions_running(bench: Bench) -> None:
    bench.server.features = ("analytics", "membership_management")
    bench.simulator.arm(faults.answer(403), method="GET", path="/groups/*/instances", times=9)
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release", 2)
    assert len(bench.server.of("complete")) == 2
    assert {failure.telemetry_only for failure in bench.server.of("failure")} == {True}


async def test_a_fault_in_one_connection_does_not_end_the_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    blows = iter([True])

    async def blow_up(_current: object) -> None:
        if next(blows, False):
            raise AssertionError("a fault of ours")
        await usual(_current)

    usual = phases.PHASES[2].run
    monkeypatch.setattr(phases, "PHASES", (phases.Phase(blow_up), *phases.PHASES[3:]))
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    await bench.time.run_at(20)
    await eventually(lambda: len(bench.server.of("complete")) == 1, within=15)
    assert next(blows, None) is None, "the fault of the first pass came"
