"""``--check``: who is signed in, what each group lacks, and that nothing is begun by it."""

from __future__ import annotations

import pytest
from collector_bench import Bench, nobody_to_ask
from scripted_server import Refusal

from lastcall.collector.checking import check_collector
from lastcall.protocol import messages as m
from lastcall.protocol.membership import Groups


async def check(bench: Bench) -> tuple[int, list[str]]:
    """Its exit code and lines, without the collector of the bench."""
    await bench.server.until("hello")
    await bench.end()
    bench.server.calls.clear()
    lines: list[str] = []
    code = await check_collector(bench.config(), nobody_to_ask, lines.append, clock=bench.time.clock)
    return code, lines


async def test_a_group_that_grants_everything_is_fine_and_nothing_is_begun(bench: Bench) -> None:
    bench.server.features = ("analytics", "membership_management", "posts", "instances")
    code, lines = await check(bench)
    assert code == 0
    assert lines == [
        f"account: signed in as Lastcall ({bench.simulator.seed.bot_id}).",
        f"  {bench.simulator.seed.group_id} (active): nothing is missing.",
    ]
    assert {*bench.server.names()} == {"groups", "allowance"}
    assert [(call.amount, call.lease) for call in bench.server.of("allowance")] == [(2, None)]
    assert bench.writes() == 0


@pytest.mark.parametrize(
    ("grant", "says"),
    [
        ("group-members-manage", "membership management needs the grant group-members-manage"),
        ("group-announcement-manage", "posts needs the grant group-announcement-manage"),
    ],
)
async def test_what_is_missing_is_named_for_each_feature(bench: Bench, grant: str, says: str) -> None:
    bench.server.features = ("membership_management", "posts")
    bench.edit("take_grant", user_id=bench.simulator.seed.bot_id, grant=grant)
    code, lines = await check(bench)
    assert code == 1
    assert says in lines[-1]


async def test_what_a_group_does_not_grant_is_named_with_the_actions_that_need_it_and_is_no_fault(
    bench: Bench,
) -> None:
    bench.server.features = ("analytics", "membership_management", "posts", "instances")
    for grant in ("group-bans-manage", "group-instance-public-create", "group-audit-view"):
        bench.edit("take_grant", user_id=bench.simulator.seed.bot_id, grant=grant)
    code, lines = await check(bench)
    assert code == 0
    assert lines[-1] == (
        f"  {bench.simulator.seed.group_id} (active): "
        "without the grant group-audit-view: no joins and departures; "
        "without the grant group-bans-manage: no ban member, no unban member, no view of bans; "
        "without the grant group-instance-public-create: no create instance (public)."
    )


async def test_a_feature_that_is_off_lacks_nothing(bench: Bench) -> None:
    bench.server.features = ("posts",)
    for grant in ("group-members-manage", "group-bans-manage"):
        bench.edit("take_grant", user_id=bench.simulator.seed.bot_id, grant=grant)
    code, lines = await check(bench)
    assert code == 0
    assert "nothing is missing" in lines[-1]


async def test_an_account_that_is_no_member_is_said_so(bench: Bench) -> None:
    bench.edit("remove_member", user_id=bench.simulator.seed.bot_id)
    code, lines = await check(bench)
    assert code == 1
    assert "the account is no member (VRChat says: inactive)" in lines[-1]


async def test_a_disabled_account_is_said_so(bench: Bench) -> None:
    async def disabled(_sent: Groups) -> m.Message:
        raise Refusal(423, "account_state", "This account is not ready.")

    bench.server.handlers["groups"] = disabled
    code, lines = await check(bench)
    assert code == 1
    assert lines[-1] == "account: This account is not ready."


async def test_a_signed_out_account_is_said_so(bench: Bench) -> None:
    await bench.server.until("hello")
    bench.edit("end_sessions", user_id=bench.simulator.seed.bot_id)
    code, lines = await check(bench)
    assert code == 1
    assert "is not signed in" in lines[-1]
