"""Getting into a group and out of it: by what is seen there, once, and nothing else before it."""

from __future__ import annotations

import dataclasses

import pytest
from collector_bench import Bench

from lastcall.collector import phases
from lastcall.protocol import messages as m
from lastcall.testing.waiting import eventually
from lastcall.vrchat.simulator import faults

QUIET = ("hello", "wait", "lease", "allowance", "renew")


async def one_pass(bench: Bench, state: str, count: int = 1) -> list[str]:
    """The calls of a pass over a connection in ``state``."""
    bench.server.state = state
    await bench.server.look()
    await bench.server.until("release", count)
    return bench.server.names(*QUIET)


def outside(bench: Bench, join_state: str = "open") -> None:
    """The account is no member, and the group's door is like that."""
    bench.edit("remove_member", user_id=bench.simulator.seed.bot_id)
    bench.edit("set_join_state", join_state=join_state)


def knocks(bench: Bench) -> int:
    return sum(1 for arrival in bench.simulator.arrivals if arrival.path.endswith("/join"))


# --- in


@pytest.mark.clause("COL-01")
async def test_an_open_group_is_joined_and_the_same_pass_goes_on_with_what_is_due(bench: Bench) -> None:
    outside(bench)
    bench.server.state = "connecting"
    await bench.server.until("hello")
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    assert bench.server.names(*QUIET)[:2] == ["membership", "claim"]
    told = bench.server.of("membership")[0]
    assert (told.group.membership, told.group.join_state) == ("member", "open")
    assert told.evidence is not None
    assert [entry.action for entry in bench.simulator.ledger.of()][:1] == ["group.member.join"]
    held = [(call.amount, call.is_write) for call in bench.server.of("allowance") if call.lease is not None]
    assert held[:2] == [(1, False), (3, True)]


async def test_a_member_is_not_joined_again(bench: Bench) -> None:
    assert (await one_pass(bench, "connecting"))[0] == "membership"
    assert knocks(bench) == 0
    assert [call.is_write for call in bench.server.of("allowance")] == [False]


async def test_where_the_group_decides_the_account_asks_and_waits(bench: Bench) -> None:
    outside(bench, "request")
    assert await one_pass(bench, "connecting") == ["membership", "release"]
    told = bench.server.of("membership")[0]
    assert (told.group.membership, told.evidence) == ("requested", None)
    assert bench.server.state == "awaiting_approval"


@pytest.mark.clause("COL-09")
@pytest.mark.parametrize(
    ("state", "edits"),
    [
        ("awaiting_approval", ["ask_to_join"]),
        ("awaiting_approval", []),
        ("awaiting_invite", []),
        ("connecting", ["ban"]),
    ],
)
async def test_a_connection_that_waits_only_looks(bench: Bench, state: str, edits: list[str]) -> None:
    outside(bench)
    for name in edits:
        bench.edit(name, user_id=bench.simulator.seed.bot_id)
    await bench.server.until("hello")
    bench.server.state = state
    await bench.server.add("assign_role", **bench.role())
    calls = await one_pass(bench, state)
    assert calls[0] == "membership"
    assert "claim" not in calls
    assert knocks(bench) == 0
    assert bench.writes() == 0
    assert [call for call in bench.server.of("allowance") if call.is_write] == []


async def test_without_its_states_an_operation_bypasses_the_waiting(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    everywhere = frozenset({"awaiting_approval"})
    monkeypatch.setattr(
        phases, "PHASES", tuple(dataclasses.replace(phase, states=everywhere) for phase in phases.PHASES[2:3])
    )
    await bench.server.until("hello")
    bench.server.state = "awaiting_approval"
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("complete")
    assert bench.writes() == 1


async def test_an_invitation_is_followed_wherever_the_connection_waits(bench: Bench) -> None:
    outside(bench, "invite")
    bench.edit("invite", user_id=bench.simulator.seed.bot_id)
    assert (await one_pass(bench, "awaiting_invite"))[0] == "membership"
    assert bench.server.state == "active"
    assert knocks(bench) == 1


async def test_a_refused_joining_is_a_failure_and_the_door_is_left_alone_for_a_while(bench: Bench) -> None:
    outside(bench)
    bench.edit("join_many_groups", user_id=bench.simulator.seed.bot_id)
    bench.simulator.arm(faults.answer(403), method="POST", path="/groups/*/join", times=9)
    assert await one_pass(bench, "connecting") == ["membership", "failure", "release"]
    assert bench.server.of("failure")[0].code == "provider_permissions"
    await bench.server.look()
    await bench.server.until("wait", 4)
    assert knocks(bench) == 1
    await bench.advance(7)
    await bench.server.until("release", 2)
    assert knocks(bench) == 2


async def test_a_joining_whose_answer_is_lost_is_settled_by_the_look_after_it(bench: Bench) -> None:
    outside(bench)
    bench.simulator.arm(faults.drop(applied=True), method="POST", path="/groups/*/join")
    await one_pass(bench, "connecting")
    assert bench.server.state == "active"
    assert knocks(bench) == 1


async def test_the_day_being_used_up_is_told_with_when_it_is_over(bench: Bench) -> None:
    async def used_up(sent: m.Allowance) -> m.Message:
        if not sent.is_write:
            return m.AllowanceAnswer(is_granted=True, limit=30, window_ms=60_000)
        return m.AllowanceAnswer(is_granted=False, limit=30, retry_ms=7_200_000, is_daily_cap=True)

    outside(bench)
    bench.server.handlers["allowance"] = used_up
    assert await one_pass(bench, "connecting") == ["failure", "release"]
    (failure,) = bench.server.of("failure")
    assert (failure.code, failure.retry_after_ms) == ("daily_write_cap", 7_200_000)
    assert knocks(bench) == 0


async def test_a_limit_below_the_cost_of_joining_is_told_before_the_write(bench: Bench) -> None:
    outside(bench)
    bench.server.requests_per_minute = 2
    assert await one_pass(bench, "connecting") == ["failure", "release"]
    assert bench.server.of("failure")[0].code == "operation_budget_too_low"
    assert knocks(bench) == 0


async def test_a_look_that_grew_old_is_repeated_before_joining(bench: Bench) -> None:
    async def later(sent: m.Allowance) -> m.Message:
        is_granted = not sent.is_write or len([c for c in bench.server.of("allowance") if c.is_write]) > 1
        return m.AllowanceAnswer(is_granted=is_granted, limit=30, window_ms=60_000, retry_ms=40_000)

    outside(bench)
    bench.server.handlers["allowance"] = later
    bench.server.state = "connecting"
    await bench.server.look()
    await bench.server.until("allowance", 2)
    bench.edit("ban", user_id=bench.simulator.seed.bot_id)
    await bench.time.run_at(20)
    await bench.server.until("membership")
    assert bench.server.of("membership")[0].group.membership == "banned"
    assert knocks(bench) == 0


# --- out


@pytest.mark.clause("COL-09")
async def test_a_connection_that_is_ended_leaves_the_group_and_does_nothing_else(bench: Bench) -> None:
    await bench.server.until("hello")
    bench.server.features, bench.server.state = ("membership_management", "analytics"), "disconnecting"
    await bench.server.add("assign_role", **bench.role())
    await bench.server.ask("members", n=25)
    assert (await one_pass(bench, "disconnecting"))[:2] == ["left", "release"]
    assert [entry.action for entry in bench.simulator.ledger.of()] == ["group.member.leave"]
    assert bench.reads("/groups/") == 0
    assert [(call.amount, call.is_write) for call in bench.server.of("allowance")] == [(1, True)]


async def test_an_account_that_is_no_member_any_more_has_left(bench: Bench) -> None:
    bench.edit("remove_member", user_id=bench.simulator.seed.bot_id)
    assert await one_pass(bench, "disconnecting") == ["left", "release"]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (faults.answer(429, retry_after="90"), "rate_limit"),
        (faults.proxy_page(502, applied=False), "transient"),
    ],
)
async def test_a_leaving_that_failed_is_not_told_as_one(bench: Bench, reply: faults.Fault, code: str) -> None:
    bench.simulator.arm(reply, method="POST", path="/groups/*/leave")
    assert await one_pass(bench, "disconnecting") == ["failure", "release"]
    assert bench.server.of("failure")[0].code == code
    assert bench.server.state == "disconnecting"
    await bench.server.look()
    await bench.advance(95)
    await eventually(lambda: bench.server.state == "disconnected", within=15)
