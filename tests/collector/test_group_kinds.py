"""Every kind through the collector: one write each, with its answer and without one."""

from __future__ import annotations

from typing import Any

import pytest
from collector_bench import Bench

from lastcall.protocol.outcomes import Code, Outcome
from lastcall.vrchat.simulator import faults
from lastcall.vrchat.simulator.model import made_id


def everything(bench: Bench) -> list[tuple[str, dict[str, Any]]]:
    """One operation of each kind that writes to the group itself, possible one after the other."""
    seed = bench.simulator.seed
    asker, turned_down, invited = seed.strangers[:3]
    for user_id in (asker, turned_down):
        bench.edit("ask_to_join", user_id=user_id)
    bench.edit("publish_post", title="Before")
    post = {"title": "Tonight!", "text": "At nine.", "visibility": "group", "sendNotification": True}
    role = {"targetUserId": seed.members[2], "roleId": seed.role_ids[0]}
    post_id = made_id("not", seed.group_id, 1)
    return [
        ("approve_request", {"targetUserId": asker}),
        ("reject_request", {"targetUserId": turned_down}),
        ("invite_member", {"targetUserId": invited}),
        ("cancel_member_invite", {"targetUserId": invited}),
        ("remove_member", {"targetUserId": seed.members[0]}),
        ("ban_member", {"targetUserId": seed.members[1]}),
        ("unban_member", {"targetUserId": seed.members[1]}),
        ("assign_role", role),
        ("remove_role", role),
        ("publish_post", post),
        ("edit_post", post | {"postId": post_id, "roleIds": [seed.role_ids[1]]}),
        ("delete_post", {"postId": post_id}),
    ]


@pytest.mark.clause("WRK-15")
@pytest.mark.parametrize("is_answered", [True, False], ids=["answered", "answer lost"])
async def test_each_kind_is_written_exactly_once(bench: Bench, is_answered: bool) -> None:
    operations = everything(bench)
    if not is_answered:
        for method in ("PUT", "POST", "DELETE"):
            bench.simulator.arm(faults.drop(applied=True), method=method, path="/groups/*", times=100)
    ids = {kind: await bench.server.add(kind, **payload) for kind, payload in operations}
    await bench.server.until("complete", len(operations))
    writes = [
        (arrival.method, arrival.path)
        for arrival in bench.simulator.arrivals
        if arrival.method != "GET" and arrival.path.startswith("/groups/")
    ]
    assert len(writes) == len(operations) == bench.writes()
    outcomes = {kind: bench.server.completed[operation_id] for kind, operation_id in ids.items()}
    if is_answered:
        assert {kind: sent.outcome for kind, sent in outcomes.items()} == dict.fromkeys(
            ids, Outcome.SUCCEEDED
        )
        post_ids = [made_id("not", bench.simulator.seed.group_id, number) for number in (2, 1)]
        assert [outcomes[kind].result for kind in ("publish_post", "edit_post")] == [
            {"postId": post_id} for post_id in post_ids
        ]
    else:
        assert {(sent.outcome, sent.code) for sent in outcomes.values()} == {
            (Outcome.INDETERMINATE, Code.NETWORK.value)
        }
