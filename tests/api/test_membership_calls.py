"""The calls of a connection's life over the wire: what the account is to the group, that it left, whom it serves."""

from __future__ import annotations

from tests.api.bodies import EVIDENCE, GROUP

from lastcall.connections.connect import disconnect_club
from lastcall.db.ids import encode_id


async def test_a_look_is_answered_with_the_state_that_follows(caller, site):
    lease = await caller.lease()
    member = await caller("membership", lease=lease, group=GROUP, evidence=EVIDENCE)
    assert (member.status_code, member.json()) == (200, {"state": "active"})
    removed = await caller("membership", lease=lease, group={**GROUP, "membership": "inactive"})
    assert removed.json() == {"state": "awaiting_invite"}
    assert await site.db.pool.fetchval("select state from connections") == "awaiting_invite"


async def test_a_member_without_evidence_and_a_malformed_group_are_refused_by_field(caller):
    lease = await caller.lease()
    bare = await caller("membership", lease=lease, group=GROUP)
    assert (bare.status_code, bare.json()["field"]) == (422, "evidence")
    other = await caller("membership", lease=lease, group={**GROUP, "groupId": "grp 1"}, evidence=EVIDENCE)
    assert (other.status_code, other.json()["field"]) == (422, "group.groupId")
    elsewhere = {**GROUP, "groupId": "grp_9"}
    strange = await caller(
        "membership", lease=lease, group=elsewhere, evidence={**EVIDENCE, "groupId": "grp_9"}
    )
    assert (strange.status_code, strange.json()["code"]) == (422, "look_mismatch")


async def test_a_group_is_left_only_when_it_was_disconnected(caller, site):
    early = await caller("left", lease=await caller.lease())
    assert (early.status_code, early.json()["code"]) == (409, "connection_state")
    await disconnect_club(site.db, None, site.club_id, site.connection_id)
    lease = await caller.lease()
    assert (await caller("left", lease=lease)).json() == {}
    assert await site.db.pool.fetchval("select state from connections") == "disconnected"
    assert (await caller("release", lease=lease)).status_code == 200, "a pass ends in good order"
    assert (await caller("renew", lease=lease)).status_code == 409


async def test_a_lease_to_leave_says_so_and_lets_nothing_else_be_done(caller, site):
    await disconnect_club(site.db, None, site.club_id, site.connection_id)
    key = {"clubId": encode_id(site.club_id), "connectionId": encode_id(site.connection_id)}
    given = (await caller("lease", **key)).json()
    assert given["state"] == "disconnecting"
    lease = {**key, "epoch": given["epoch"], "fencingToken": given["fencingToken"]}
    assert (await caller("allowance", amount=1, lease=lease)).status_code == 200
    claim = await caller("claim", lease=lease, journalId=encode_id(site.club_id))
    assert (claim.status_code, claim.json()["code"]) == (409, "epoch")


async def test_the_groups_of_an_account_are_named_with_what_is_switched_on(caller, site):
    assert (await caller("groups")).json() == {
        "groups": [
            {
                "clubId": encode_id(site.club_id),
                "connectionId": encode_id(site.connection_id),
                "groupId": "grp_1",
                "state": "active",
                "features": ["analytics", "instances", "membership_management", "posts"],
            }
        ]
    }


async def test_a_fault_of_the_aggregates_alone_is_said_over_the_wire(caller, site):
    lease = await caller.lease()
    await caller("failure", lease=lease, code="timeout", telemetryOnly=True)
    row = await site.db.pool.fetchrow("select telemetry_failures, backoff_until from connections")
    assert tuple(row) == (1, None)
