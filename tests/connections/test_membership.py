"""What a collector reports of its account's membership, and what the server makes of it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.connections.membership_kit import S, evidence, group, look, looked, put, row

from lastcall.connections import leases, membership
from lastcall.connections import transitions as table
from lastcall.connections.connect import disconnect_club
from lastcall.connections.failures import record_failure
from lastcall.connections.listeners import Coverage, TelemetryFailure, on_telemetry_failure
from lastcall.connections.membership import report_membership
from lastcall.errors import Conflict, Invalid
from lastcall.testing.locks import wait_until_blocked


@pytest.mark.parametrize(
    ("membership", "join_state", "expected"),
    [
        ("member", "open", S.ACTIVE),
        ("requested", "request", S.AWAITING_APPROVAL),
        ("invited", "invite", S.AWAITING_INVITE),
        ("inactive", "invite", S.AWAITING_INVITE),
        ("inactive", "open", S.CONNECTING),
        ("banned", "open", S.BLOCKED),
    ],
)
async def test_a_look_moves_a_new_connection_as_the_table_says(site, membership, join_state, expected):
    await put(site, S.CONNECTING)
    assert await looked(site, membership, join_state) is expected
    assert (await row(site))["state"] == expected


async def test_a_look_keeps_what_the_group_is_and_the_connections_epoch(site):
    before = await row(site)
    held = await site.lease()
    await look(site, held, join_state="request", name="  Night\u202e \n Shift ", privacy="private")
    after = await row(site)
    assert after["epoch"] == before["epoch"]
    assert (after["group_name"], after["join_policy"], after["group_visibility"]) == (
        "Night Shift",
        "request",
        "private",
    )
    assert after["last_success_at"] is not None
    await look(site, held, name="\u202e")
    assert (await row(site))["group_name"] == "Night Shift", "a name that shows nothing is none"


async def test_a_members_look_is_evidence_and_ends_a_row_of_failures(site):
    held = await site.lease()
    for _ in range(3):
        await record_failure(site.db, site.worker, held, "network", None)
    await report_membership(site.db, site.worker, held, group(), evidence("group-bans-manage", age_ms=2_000))
    found = await row(site)
    assert (found["state"], found["consecutive_failures"], found["backoff_until"]) == ("active", 0, None)
    assert found["last_fault"] is None
    seen = await site.db.pool.fetchrow(
        "select body, lastcall_now() - observed_at as age from evidence where kind = 'own_member'"
    )
    assert seen["age"] >= timedelta(seconds=2)
    assert "group-bans-manage" in seen["body"]


@pytest.mark.clause("COL-08")
async def test_a_member_without_any_grant_stays_active_and_one_who_is_none_does_not(site):
    held = await site.lease()
    assert await report_membership(site.db, site.worker, held, group(), evidence()) is S.ACTIVE
    assert await look(site, held, "inactive") is S.AWAITING_INVITE
    assert (await row(site))["last_fault"] == "membership"


async def removed_and_looked_at_again(site) -> str:
    assert await looked(site, "inactive", "open") is S.AWAITING_INVITE
    for _ in range(3):
        await looked(site, "inactive", "open")
    found = await row(site)
    assert found["last_fault"] in ("membership", None)
    return str(found["state"])


async def test_a_removed_account_waits_for_an_invitation_though_the_group_is_open(site):
    assert await removed_and_looked_at_again(site) == S.AWAITING_INVITE
    assert (await row(site))["last_fault"] == "membership"
    assert await looked(site, "member") is S.ACTIVE, "somebody let it in again"


async def test_twin_a_table_that_tries_again_from_everywhere_lets_a_removed_account_join(site, monkeypatch):
    tries = {
        key: table._TRIES_AGAIN[key[2]] if key[1] is table.Standing.INACTIVE else to
        for key, to in table.TRANSITIONS.items()
    }
    await looked(site, "inactive", "open")
    monkeypatch.setattr(table, "TRANSITIONS", tries)
    await looked(site, "inactive", "open")
    assert (await row(site))["state"] == S.CONNECTING


@pytest.mark.clause("COL-09")
async def test_what_an_operation_read_moves_no_connection_that_waits(site):
    for state in (S.CONNECTING, S.AWAITING_APPROVAL, S.AWAITING_INVITE, S.DISCONNECTING):
        await put(site, state, consecutive_failures=1)
        await site.db.pool.execute("delete from evidence")
        await site.db.pool.execute(
            "select store_own_member_evidence($1, $2, (select epoch from connections), $3, $4, $5, lastcall_now())",
            site.club_id,
            site.connection_id,
            site.worker.account_id,
            site.worker.worker_id,
            '{"userId": "usr_1", "groupId": "grp_1", "memberStatus": "member"}',
        )
        assert (await row(site))["state"] == state


@pytest.mark.clause("COL-09")
async def test_a_look_does_not_bring_back_a_connection_that_is_being_ended(site):
    await disconnect_club(site.db, None, site.club_id, site.connection_id)
    assert await looked(site, "member") is S.DISCONNECTING


@pytest.mark.parametrize(
    ("seen", "proof", "field"),
    [
        (group(), None, "evidence"),
        (group(group_id="grp_2"), evidence(group_id="grp_2"), "group.groupId"),
        (group(), evidence(group_id="grp_2"), "evidence.groupId"),
        (group(), evidence(user_id="usr_2"), "evidence.userId"),
        (group("inactive"), evidence(), "evidence.memberStatus"),
        (group(), evidence(member_status="inactive"), "evidence.memberStatus"),
    ],
)
async def test_a_look_that_contradicts_itself_or_is_about_something_else_changes_nothing(
    site, seen, proof, field
):
    held = await site.lease()
    before = dict(await row(site))
    with pytest.raises(Invalid) as refusal:
        await report_membership(site.db, site.worker, held, seen, proof)
    assert refusal.value.field == field
    assert dict(await row(site)) == before


async def test_a_look_of_an_older_lease_or_another_epoch_is_refused(site):
    old = await site.lease()
    await site.lease()
    with pytest.raises(Conflict) as refusal:
        await look(site, old, "inactive")
    assert refusal.value.code == "stale_lease"
    held = await site.lease()
    await site.set("connections", epoch=held.epoch + timedelta(seconds=1))
    with pytest.raises(Conflict) as refusal:
        await look(site, held, "inactive")
    assert refusal.value.code == "epoch"
    assert (await row(site))["state"] == S.ACTIVE


async def report_while_authorizing(site) -> None:
    """A report of a removal that meets an authorization under way, which holds the gate with others."""
    held = await site.lease()
    async with site.db.transaction() as tx:
        await tx.raw.fetch(
            "select from connection_gates where connection_id = $1 for share", site.connection_id
        )
        reporting = asyncio.create_task(look(site, held, "inactive"))
        await wait_until_blocked(site.db, "raise_connection_gate", by=tx.raw.get_server_pid(), within=3)
        assert (await row(site))["state"] == S.ACTIVE
    await reporting


async def test_a_removal_waits_for_the_authorization_that_is_under_way(site):
    await report_while_authorizing(site)
    assert (await row(site))["state"] == S.AWAITING_INVITE


async def test_twin_without_the_gate_a_removal_goes_past_an_authorization_under_way(site, monkeypatch):
    async def no_gate(*_) -> bool:
        return True

    monkeypatch.setattr(leases, "raise_gate", no_gate)
    with pytest.raises(AssertionError, match="nothing waits for a lock"):
        await report_while_authorizing(site)


async def test_a_removal_leaves_it_unknown_what_was_missed(site, monkeypatch):
    told: list[TelemetryFailure] = []

    async def listener(_, failure: TelemetryFailure) -> None:
        told.append(failure)

    monkeypatch.setattr("lastcall.connections.listeners._telemetry", [])
    on_telemetry_failure(listener)
    await looked(site, "member")
    assert told == []
    await looked(site, "inactive")
    assert [(one.coverage, one.code) for one in told] == [(Coverage.UNKNOWN, "membership")]
    await looked(site, "inactive")
    assert len(told) == 1, "it is said once"


async def test_an_account_is_told_which_groups_it_serves_and_no_others(site):
    served = await membership.groups_served(site.db, site.worker)
    assert [(one.club_id, one.group_id, one.state) for one in served] == [(site.club_id, "grp_1", "active")]
    assert (
        await membership.groups_served(site.db, type(site.worker)(site.club_id, 1, site.club_id, "x")) == []
    )
    await site.end()
    assert await membership.groups_served(site.db, site.worker) == []
