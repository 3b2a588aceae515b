"""What counts as evidence, and what does not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lastcall.clock import SYSTEM_CLOCK
from lastcall.protocol.messages import OwnMemberEvidence, RoleSeen
from lastcall.vrchat import errors, evidence
from lastcall.vrchat.simulator import Simulator, faults, shapes
from lastcall.vrchat.simulator.edits import edit
from lastcall.vrchat.simulator.model import made_id
from lastcall.vrchat.transport import Read, Transport, decode


async def test_the_own_member_is_read_whole_and_dated_from_before_the_request(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    simulator.arm(faults.slow(0.2), method="GET")
    before = SYSTEM_CLOCK.boot()
    own = await evidence.read_own_member(transport, seed.group_id, seed.bot_id)
    assert before <= own.asked_at < SYSTEM_CLOCK.boot() - 0.15
    assert (own.group_id, own.owner_id, own.user_id) == (seed.group_id, seed.owner_id, seed.bot_id)
    assert [role.role_id for role in own.roles] == list(seed.role_ids)
    assert own.has_grants(("group-bans-manage", "group-members-manage"))
    assert not own.has_grants(("group-bans-manage", "group-data-manage"))
    assert own.privacy == "default"


async def test_evidence_fits_the_workers_message(simulator: Simulator, transport: Transport) -> None:
    own = await evidence.read_own_member(transport, simulator.seed.group_id, simulator.seed.bot_id)
    message = OwnMemberEvidence(
        age_ms=0,
        group_id=own.group_id,
        owner_id=own.owner_id,
        user_id=own.user_id,
        member_status=own.member_status,
        permissions=tuple(sorted(own.permissions)),
        role_ids=own.role_ids,
        roles=tuple(RoleSeen(id=role.role_id, name=role.name) for role in own.roles),
        privacy=own.privacy,
    )
    assert msgspec.json.decode(msgspec.json.encode(message), type=OwnMemberEvidence) == message


async def test_an_account_that_is_no_member_has_no_standing(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    edit(simulator.clock, simulator.world, seed.group_id, "remove_member", user_id=seed.bot_id)
    with pytest.raises(errors.Membership):
        await evidence.read_own_member(transport, seed.group_id, seed.bot_id)


def spoiled(simulator: Simulator, **changes: Any) -> bytes:
    seed = simulator.seed
    document = shapes.group(simulator.world.groups[seed.group_id], seed.bot_id, with_roles=True)
    for name, value in changes.items():
        where, _, field = name.rpartition("__")
        (document[where] if where else document)[field] = value
    return msgspec.json.encode(document)


@pytest.mark.parametrize(
    ("changes", "raised"),
    [
        ({"id": made_id("grp", "other")}, errors.ProviderScope),
        ({"myMember__groupId": made_id("grp", "other")}, errors.ProviderScope),
        ({"myMember__userId": made_id("usr", "other")}, errors.ProviderScope),
        ({"myMember__membershipStatus": "banned"}, errors.Membership),
        ({"myMember": None}, errors.Membership),
        ({"myMember__permissions": None}, errors.SchemaDrift),
        ({"myMember__permissions": "*"}, errors.SchemaDrift),
        ({"myMember__roleIds": ["../x"]}, errors.SchemaDrift),
        ({"roles": None}, errors.SchemaDrift),
        ({"roles": [{"id": "grol_1", "name": "x"}]}, errors.SchemaDrift),
        ({"roles": [{"id": "grol_1", "name": "x", "groupId": "grp_other"}]}, errors.ProviderScope),
        (
            {"roles": [{"id": f"grol_{n}", "name": "x", "groupId": "g"} for n in range(101)]},
            errors.SchemaDrift,
        ),
        ({"ownerId": None}, errors.SchemaDrift),
        ({"privacy": 1}, errors.SchemaDrift),
    ],
    ids=repr,
)
async def test_an_answer_of_another_shape_or_about_another_is_no_evidence(
    simulator: Simulator, changes: dict[str, Any], raised: type[errors.ProviderFault]
) -> None:
    seed = simulator.seed
    with pytest.raises(errors.ProviderFault) as caught:
        evidence.own_member(
            Read(decode(spoiled(simulator, **changes), evidence.Group), 0.0), seed.group_id, seed.bot_id
        )
    assert type(caught.value) is raised
