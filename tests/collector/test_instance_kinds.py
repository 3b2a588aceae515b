"""The kinds about instances through the collector: their reads fit into what is reserved, and one write follows."""

from __future__ import annotations

import pytest
from collector_bench import Bench

from lastcall.protocol.outcomes import Code, Outcome
from lastcall.protocol.steps import Step
from lastcall.vrchat.simulator import faults


def open_instance(bench: Bench) -> dict[str, str]:
    bench.edit("open_instance", world_id=bench.simulator.seed.world_ids[0], number="777")
    world_id, _, instance_id = next(reversed(bench.simulator.world.instances)).partition(":")
    return {"worldId": world_id, "instanceId": instance_id}


def asked_of_vrchat(bench: Bench, since: int) -> list[str]:
    return [
        f"{arrival.method} /{arrival.path.split('/')[1]}"
        for arrival in bench.simulator.arrivals[since:]
        if "/auth" not in arrival.path
    ]


@pytest.mark.clause("BUD-01", "BUD-03")
async def test_reads_and_write_of_each_kind_are_just_what_was_reserved(bench: Bench) -> None:
    seed = bench.simulator.seed
    place = open_instance(bench)
    creation = {"worldId": seed.world_ids[1], "access": "plus", "region": "use"}
    expected = {
        "create_instance": (creation, ["GET /groups", "POST /instances"]),
        "invite_to_instance": (
            place | {"targetUserId": seed.friends[0]},
            ["GET /groups", "GET /instances", "GET /user", "POST /invite"],
        ),
        "close_instance": (place, ["GET /groups", "GET /instances", "DELETE /instances"]),
    }
    for number, (kind, (payload, requests)) in enumerate(expected.items(), 1):
        since = len(bench.simulator.arrivals)
        await bench.server.add(kind, **payload)
        completed = await bench.server.until("complete", number)
        assert (completed.outcome, completed.code) == (Outcome.SUCCEEDED, None)
        assert asked_of_vrchat(bench, since) == requests
        assert [call.amount for call in bench.server.of("allowance") if call.lease][-1] == len(requests)
    assert bench.writes() == 3
    created = bench.server.of("complete")[0]
    assert created.result["worldId"] == seed.world_ids[1]
    assert f"~group({seed.group_id})" in created.result["instanceId"]


@pytest.mark.clause("BUD-02")
@pytest.mark.parametrize(("kind", "cost"), [("invite_to_instance", 4), ("close_instance", 3)])
async def test_a_limit_below_the_cost_of_an_invite_or_a_closing_asks_nothing(
    bench: Bench, kind: str, cost: int
) -> None:
    payload = open_instance(bench)
    if kind == "invite_to_instance":
        payload |= {"targetUserId": bench.simulator.seed.friends[0]}
    bench.server.requests_per_minute = cost - 1
    await bench.server.add(kind, **payload)
    assert (await bench.server.until("reject")).code == Code.BUDGET_TOO_LOW
    assert bench.reads("/groups/") == bench.reads("/instances/") == 0
    await bench.server.until("release")
    bench.server.requests_per_minute = cost
    await bench.server.add(kind, **payload)
    assert (await bench.server.until("complete")).outcome is Outcome.SUCCEEDED


@pytest.mark.clause("BUD-05")
async def test_the_server_is_told_of_the_friendship_with_its_age(bench: Bench) -> None:
    place = open_instance(bench)
    friend = bench.simulator.seed.friends[0]
    bench.hold(Step.PREFLIGHT_DONE)
    await bench.server.add("invite_to_instance", targetUserId=friend, **place)
    await bench.at(Step.PREFLIGHT_DONE)
    await bench.advance(7)
    bench.release(Step.PREFLIGHT_DONE)
    authorize = await bench.server.until("authorize")
    assert (authorize.friendship.target_user_id, authorize.friendship.is_friend) == (friend, True)
    assert 7_000 <= authorize.friendship.age_ms < 15_000
    await bench.server.add("close_instance", **place)
    assert (await bench.server.until("authorize", 2)).friendship is None


@pytest.mark.clause("BUD-05")
async def test_friendship_that_was_seen_half_a_minute_ago_is_not_used(bench: Bench) -> None:
    place = open_instance(bench)
    bench.hold(Step.PREFLIGHT_DONE)
    await bench.server.add("invite_to_instance", targetUserId=bench.simulator.seed.friends[0], **place)
    await bench.at(Step.PREFLIGHT_DONE)
    await bench.advance(31)
    bench.release(Step.PREFLIGHT_DONE)
    await bench.server.until("defer")
    assert bench.server.of("authorize") == []
    assert bench.writes() == 0
    assert bench.reads("/user/") == 1, "no second look uses up the write's slot"


async def test_whoever_is_no_friend_is_rejected_before_the_authorization(bench: Bench) -> None:
    place = open_instance(bench)
    await bench.server.add("invite_to_instance", targetUserId=bench.simulator.seed.strangers[0], **place)
    assert (await bench.server.until("reject")).code == Code.FRIENDSHIP
    assert bench.server.of("authorize") == []
    assert bench.writes() == 0


async def test_a_passing_fault_of_a_further_read_defers_and_nothing_is_written(bench: Bench) -> None:
    place = open_instance(bench)
    bench.simulator.arm(faults.answer(503), method="GET", path="/user/*")
    await bench.server.add("invite_to_instance", targetUserId=bench.simulator.seed.friends[0], **place)
    assert (await bench.server.until("defer")).code == Code.TRANSIENT
    assert bench.writes() == 0


@pytest.mark.clause("WRK-14", "WRK-15")
@pytest.mark.parametrize("kind", ["create_instance", "invite_to_instance", "close_instance"])
async def test_a_lost_answer_about_an_instance_is_unknown_and_nothing_is_sent_again(
    bench: Bench, kind: str
) -> None:
    place = open_instance(bench)
    payload = {
        "create_instance": {"worldId": place["worldId"], "access": "members", "region": "eu"},
        "invite_to_instance": place | {"targetUserId": bench.simulator.seed.friends[0]},
        "close_instance": place,
    }[kind]
    method, path = {
        "create_instance": ("POST", "/instances"),
        "invite_to_instance": ("POST", "/invite/*"),
        "close_instance": ("DELETE", "/instances/*"),
    }[kind]
    bench.simulator.arm(faults.drop(applied=True), method=method, path=path)
    await bench.server.add(kind, **payload)
    completed = await bench.server.until("complete")
    await bench.server.until("release")
    assert (completed.outcome, completed.code) == (Outcome.INDETERMINATE, Code.NETWORK)
    assert bench.writes() == 1
    sent = [request for request in asked_of_vrchat(bench, 0) if not request.startswith("GET")]
    assert len(sent) == 1
