"""What authorize asks of the payload itself: the grants of the row, roles, an instance's options, friendship."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from operations_world import GROUP, ROLE, World, user

from lastcall.connections.evidence import evidence_body
from lastcall.operations.services.worker import ClaimHeld
from lastcall.protocol.messages import FriendshipSeen

OTHER_ROLE = "grol_00000000-0000-4000-8000-0000000000ff"


async def becomes(world: World, held: ClaimHeld, **payload: Any) -> None:
    await world.run(
        "update operations set payload = $1 where id = $2", json.dumps(payload), held.operation_id
    )


@pytest.mark.clause("WRK-03")
async def test_the_grants_are_those_of_the_payload_and_not_of_the_kind(world: World) -> None:
    operation_id, held = await world.claimed()
    assert (await world.row(operation_id))["grants"] == ["group-roles-assign", "group-members-manage"]
    await world.run("update operations set grants = grants || '{group-instance-age-gated-create}'")
    evidence = world.evidence(permissions=("group-roles-assign", "group-members-manage"))
    verdict = await world.steps.authorize(world.worker, held, "assign_role", evidence)
    assert verdict.code == "provider_permissions"


@pytest.mark.parametrize(
    ("role_ids", "code"),
    [([], None), ([ROLE.upper()], None), ([ROLE, OTHER_ROLE], "role_scope"), ([OTHER_ROLE], "role_scope")],
)
async def test_every_role_that_an_audience_names_is_one_of_the_group(
    world: World, role_ids: list[str], code: str | None
) -> None:
    _, held = await world.claimed()
    await becomes(world, held, title="Tonight", roleIds=role_ids)
    verdict = await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    assert verdict.code == code


@pytest.mark.parametrize(
    ("access", "privacy", "role_ids", "code"),
    [
        ("public", "default", [], None),
        ("public", "private", [], "invalid_instance_options"),
        ("public", "default", [ROLE], "invalid_instance_options"),
        ("plus", "private", [], None),
        ("plus", "private", [ROLE], "invalid_instance_options"),
        ("members", "private", [ROLE], None),
    ],
)
async def test_an_instance_is_as_open_as_its_group_allows(
    world: World, access: str, privacy: str, role_ids: list[str], code: str | None
) -> None:
    _, held = await world.claimed()
    await becomes(world, held, access=access, roleIds=role_ids)
    verdict = await world.steps.authorize(world.worker, held, "assign_role", world.evidence(privacy=privacy))
    assert verdict.code == code


AUTHORIZE = """
select outcome from authorize_operation($1, 1, $2, $3, $4, $5, 1, $6, $7, 'assign_role', 'assign_vrchat_roles',
       'membership_management', true, $8, '0', $9, $10, $11, $12)
"""


@pytest.mark.parametrize(
    ("needs", "friend", "is_friend", "age", "outcome"),
    [
        (False, None, False, None, "authorized"),
        (True, user(1).upper(), True, 60.0, "authorized"),
        (True, user(1), True, 60.001, "recipient_eligibility"),
        (True, user(1), True, -0.001, "recipient_eligibility"),
        (True, user(1), False, 0.0, "recipient_eligibility"),
        (True, user(2), True, 0.0, "recipient_eligibility"),
        (True, None, False, None, "recipient_eligibility"),
    ],
)
async def test_only_somebody_just_seen_to_be_a_friend_is_invited(
    world: World, needs: bool, friend: str | None, is_friend: bool, age: float | None, outcome: str
) -> None:
    await world.clock.freeze()
    operation_id, held = await world.claimed()
    answer = await world.run(
        AUTHORIZE,
        *(world.account_id, world.worker_id, world.club_id, world.connection_id, world.epoch),
        *(operation_id, held.nonce, evidence_body(world.evidence()), needs, friend, is_friend),
        None if age is None else timedelta(seconds=age),
    )
    assert answer == outcome
    assert await world.state(operation_id) == ("submitted" if outcome == "authorized" else "rejected")


@pytest.mark.parametrize("is_friend", [True, False])
async def test_the_worker_tells_who_is_a_friend_when_it_asks_to_invite(world: World, is_friend: bool) -> None:
    await world.run("update connections set features = features || '{instances}'")
    fields = {
        "targetUserId": user(1),
        "worldId": "wrld_00000000-0000-4000-8000-000000000001",
        "instanceId": f"12345~group({GROUP})~groupAccessType(members)",
    }
    operation_id, held = await world.claimed({"kind": "invite_to_instance", **fields})
    seen = FriendshipSeen(target_user_id=user(1), is_friend=is_friend, age_ms=500)
    verdict = await world.steps.authorize(
        world.worker, held, "invite_to_instance", world.evidence(), friendship=seen
    )
    assert verdict.code == (None if is_friend else "recipient_eligibility")
    assert await world.state(operation_id) == ("submitted" if is_friend else "rejected")


async def test_a_dependent_invitation_is_sent_as_the_invitation_it_became(world: World) -> None:
    for stored, sent, is_same in (
        ("assign_role", "assign_role", True),
        ("assign_role", "ban_member", False),
        ("invite_to_created_instance", "invite_to_instance", True),
        ("invite_to_instance", "invite_to_created_instance", False),
    ):
        assert await world.run("select is_sent_as($1, $2)", stored, sent) is is_same
