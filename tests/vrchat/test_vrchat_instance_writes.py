"""The kinds about instances: what they need, what they read first, what they send, what proves it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lastcall.protocol.outcomes import Code, Outcome
from lastcall.vrchat import errors
from lastcall.vrchat.evidence import OwnMember, Role, read_own_member
from lastcall.vrchat.simulator import Simulator
from lastcall.vrchat.simulator.edits import edit
from lastcall.vrchat.transport import Answer, Transport
from lastcall.vrchat.writes import AnswerCode, Judgement, Seen, Write, write_kind

U = "00000000-0000-4000-8000-00000000000"
GROUP, WORLD, ROLE, TARGET = f"grp_{U}1", f"wrld_{U}1", f"grol_{U}a", f"usr_{U}4"
OWN = OwnMember(
    group_id=GROUP,
    owner_id=f"usr_{U}2",
    user_id=f"usr_{U}3",
    member_status="member",
    permissions=frozenset({"*"}),
    role_ids=(),
    roles=(Role(ROLE, "Regular"),),
    privacy="default",
    join_state="request",
    asked_at=0.0,
)
CREATION = {"worldId": WORLD, "access": "members", "region": "eu"}


def own(**changes: Any) -> OwnMember:
    fields = {name: getattr(OWN, name) for name in OwnMember.__dataclass_fields__}
    return OwnMember(**fields | changes)


def plan(kind: str, payload: object, seen: Seen) -> Write:
    chosen = write_kind(kind)
    return chosen.plan(chosen.read(payload), seen)


# -------------------------------------------------------------------------------------------------- creating

BASE = {
    "members": "group-instance-open-create",
    "plus": "group-instance-plus-create",
    "public": "group-instance-public-create",
}
EXTRAS: list[tuple[dict[str, object], str]] = [
    ({"ageGated": True}, "group-instance-age-gated-create"),
    ({"roleIds": [ROLE]}, "group-instance-restricted-create"),
    ({"calendarEntryId": f"cal_{U}1"}, "group-instance-calendar-link"),
]


@pytest.mark.parametrize("access", BASE)
def test_a_creation_needs_the_grant_of_its_access_and_no_other(access: str) -> None:
    payload = CREATION | {"access": access}
    plan("create_instance", payload, Seen(own(permissions=frozenset({BASE[access]}))))
    others = frozenset(BASE.values()) - {BASE[access]} | {grant for _, grant in EXTRAS}
    with pytest.raises(errors.ProviderPermissions):
        plan("create_instance", payload, Seen(own(permissions=others)))


@pytest.mark.parametrize(("extra", "grant"), EXTRAS)
def test_age_gate_roles_and_calendar_link_need_a_grant_each(extra: dict[str, object], grant: str) -> None:
    enough = frozenset({BASE["members"], grant})
    plan("create_instance", CREATION | extra, Seen(own(permissions=enough)))
    with pytest.raises(errors.ProviderPermissions):
        plan("create_instance", CREATION | extra, Seen(own(permissions=enough - {grant})))


def test_only_an_instance_for_members_is_restricted_to_roles_each_named_once() -> None:
    for access in ("plus", "public"):
        with pytest.raises(errors.InvalidInput):
            write_kind("create_instance").read(CREATION | {"access": access, "roleIds": [ROLE]})
    with pytest.raises(errors.InvalidInput):
        write_kind("create_instance").read(CREATION | {"roleIds": [ROLE, "grol_" + ROLE[5:].upper()]})


def test_a_public_instance_needs_a_public_group() -> None:
    payload = CREATION | {"access": "public"}
    plan("create_instance", payload, Seen(OWN))
    with pytest.raises(errors.GroupVisibility):
        plan("create_instance", payload, Seen(own(privacy="private")))


def test_a_creation_says_exactly_this_with_roles_as_vrchat_writes_them() -> None:
    asked = CREATION | {"roleIds": ["grol_" + ROLE[5:].upper()], "ageGated": True, "queueEnabled": True}
    write = plan("create_instance", asked | {"calendarEntryId": f"cal_{U}1"}, Seen(OWN))
    assert (write.method, write.path) == ("POST", "/instances")
    assert write.json == {
        "worldId": WORLD,
        "type": "group",
        "ownerId": GROUP,
        "groupAccessType": "members",
        "region": "eu",
        "ageGate": True,
        "queueEnabled": True,
        "roleIds": [ROLE],
        "calendarEntryId": f"cal_{U}1",
    }
    with pytest.raises(errors.RoleScope):
        plan("create_instance", CREATION | {"roleIds": [f"grol_{U}b"]}, Seen(OWN))


RECORD = {
    "worldId": WORLD,
    "instanceId": f"1~groupAccessType(members)~group({GROUP})",
    "type": "group",
    "ownerId": GROUP,
    "active": True,
    "closedAt": None,
}


@pytest.mark.clause("WRK-14")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, None),
        ({"worldId": f"wrld_{U}2"}, Code.DESTINATION_SCOPE),
        ({"ownerId": f"grp_{U}2"}, Code.DESTINATION_SCOPE),
        ({"ownerId": None}, Code.DESTINATION_SCOPE),
        ({"type": "public"}, Code.DESTINATION_SCOPE),
        ({"instanceId": f"1~group(grp_{U}2)"}, Code.DESTINATION_SCOPE),
        ({"instanceId": f"1~group({GROUP})~group({GROUP})"}, Code.DESTINATION_SCOPE),
        ({"instanceId": ""}, Code.SCHEMA_DRIFT),
        ({"active": None}, Code.SCHEMA_DRIFT),
    ],
)
def test_only_an_instance_of_this_group_in_that_world_proves_a_creation(
    change: dict[str, object], code: Code | None
) -> None:
    kind = write_kind("create_instance")
    write = plan("create_instance", CREATION, Seen(OWN))
    judgement = kind.judge(write, Answer(200, msgspec.json.encode(RECORD | change)))
    assert (judgement.outcome, judgement.code) == (
        (Outcome.SUCCEEDED, None) if code is None else (Outcome.INDETERMINATE, code)
    )
    place = {"worldId": WORLD, "instanceId": RECORD["instanceId"]} if code is None else {}
    assert dict(judgement.result) == place
    unknown = kind.judge(write, Answer(200, b"null"))
    assert (unknown.outcome, unknown.code) == (Outcome.INDETERMINATE, Code.SCHEMA_DRIFT)


# ------------------------------------------------------------------------------------- through the simulator


class Field:
    """A kind carried out against the simulator, each request of its preflight counted."""

    def __init__(self, simulator: Simulator, transport: Transport) -> None:
        self.simulator, self.transport = simulator, transport
        self.seed = simulator.seed
        self.charged = 0

    def edit(self, name: str, **arguments: str) -> None:
        edit(self.simulator.clock, self.simulator.world, self.seed.group_id, name, **arguments)

    def open(self) -> dict[str, str]:
        self.edit("open_instance", world_id=self.seed.world_ids[0], number="777")
        world_id, _, instance_id = next(reversed(self.simulator.world.instances)).partition(":")
        return {"worldId": world_id, "instanceId": instance_id}

    def charge(self) -> None:
        self.charged += 1

    async def look(self, kind: str, payload: object) -> Write:
        chosen = write_kind(kind)
        read = chosen.read(payload)
        group = await read_own_member(self.transport, self.seed.group_id, self.seed.bot_id)
        seen = await chosen.look(self.transport, read, group, self.charge)
        return chosen.plan(read, seen)

    async def carry_out(self, kind: str, payload: object) -> Judgement:
        write = await self.look(kind, payload)
        sent = await self.transport.send_once(write.method, write.path, write.json, params=write.query)
        return write_kind(kind).judge(write, sent)


@pytest.fixture
def field(simulator: Simulator, transport: Transport) -> Field:
    return Field(simulator, transport)


@pytest.mark.clause("BUD-01", "BUD-03")
async def test_each_kind_makes_as_many_requests_as_it_costs(field: Field) -> None:
    place = field.open()
    payloads: dict[str, dict[str, Any]] = {
        "create_instance": {"worldId": field.seed.world_ids[0], "access": "plus", "region": "use"},
        "invite_to_instance": place | {"targetUserId": field.seed.friends[0], "messageSlot": 3},
        "close_instance": place,
    }
    for (kind, payload), cost in zip(payloads.items(), (2, 4, 3), strict=True):
        before = len(field.simulator.arrivals)
        field.charged = 0
        judgement = await field.carry_out(kind, payload)
        assert (judgement.outcome, judgement.code) == (Outcome.SUCCEEDED, None)
        assert len(field.simulator.arrivals) - before == write_kind(kind).cost == cost
        assert field.charged == cost - 2
    created = next(reversed(field.simulator.world.instances))
    assert created.startswith(field.seed.world_ids[0])
    assert [entry.action for entry in field.simulator.ledger.entries] == [
        "group.instance.create",
        "instance.invite",
        "group.instance.close",
    ]


async def test_what_was_created_is_told_and_can_be_invited_to(field: Field) -> None:
    creation = {"worldId": field.seed.world_ids[0], "access": "members", "region": "eu"}
    place = dict((await field.carry_out("create_instance", creation)).result)
    assert set(place) == {"worldId", "instanceId"}
    judgement = await field.carry_out("invite_to_instance", place | {"targetUserId": field.seed.friends[0]})
    assert judgement.outcome is Outcome.SUCCEEDED


async def test_an_instance_is_addressed_as_vrchat_writes_it(field: Field) -> None:
    place = field.open()
    location = f"{place['worldId']}:{place['instanceId']}"
    name, *tags = place["instanceId"].split("~")
    turned = "~".join([name, *tags[::-1]])
    instances = field.simulator.world.instances
    instances[f"{place['worldId']}:{turned}"] = instances[location]
    write = await field.look("close_instance", place | {"instanceId": turned})
    assert write.path == f"/instances/{location}"
    assert write.query == {"hardClose": "false"}


async def test_whoever_is_no_friend_is_not_invited(field: Field) -> None:
    place = field.open()
    with pytest.raises(errors.NotFriends):
        await field.look("invite_to_instance", place | {"targetUserId": field.seed.strangers[0]})
    assert field.charged == 2
    write = await field.look("invite_to_instance", place | {"targetUserId": field.seed.friends[0]})
    field.edit("unfriend", user_id=field.seed.bot_id, other_id=field.seed.friends[0])
    sent = await field.transport.send_once(write.method, write.path, write.json)
    judgement = write_kind("invite_to_instance").judge(write, sent)
    assert (judgement.outcome, judgement.code) == (Outcome.REJECTED, Code.FRIENDSHIP)


@pytest.mark.parametrize("kind", ["close_instance", "invite_to_instance"])
async def test_a_closed_instance_is_no_destination_and_nothing_more_is_asked(field: Field, kind: str) -> None:
    place = field.open()
    field.edit("close_instance", location=f"{place['worldId']}:{place['instanceId']}")
    target = {"targetUserId": field.seed.friends[0]} if kind == "invite_to_instance" else {}
    with pytest.raises(errors.DestinationClosed):
        await field.look(kind, place | target)
    assert field.charged == 1


async def test_the_two_meanings_of_a_closings_403_are_kept_apart(field: Field) -> None:
    place = field.open()
    write = await field.look("close_instance", place)
    field.edit("take_grant", user_id=field.seed.bot_id, grant="group-instance-manage")

    async def refused() -> tuple[Outcome, str | None]:
        sent = await field.transport.send_once(write.method, write.path, params=write.query)
        judgement = write_kind("close_instance").judge(write, sent)
        return judgement.outcome, judgement.code

    assert await refused() == (Outcome.REJECTED, Code.PROVIDER_PERMISSIONS)
    field.edit("give_grant", user_id=field.seed.bot_id, grant="group-instance-manage")
    field.edit("close_instance", location=f"{place['worldId']}:{place['instanceId']}")
    assert await refused() == (Outcome.REJECTED, AnswerCode.ALREADY_CLOSED)


@pytest.mark.clause("WRK-14")
@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, Outcome.SUCCEEDED),
        ({"id": f"noti_{U}1"}, Outcome.INDETERMINATE),
        ({"type": "requestInvite"}, Outcome.INDETERMINATE),
        ({"senderUserId": f"usr_{U}9"}, Outcome.INDETERMINATE),
        ({"receiverUserId": f"usr_{U}9"}, Outcome.INDETERMINATE),
    ],
)
async def test_only_an_invite_from_the_account_to_that_person_proves_it(
    field: Field, change: dict[str, str], outcome: Outcome
) -> None:
    place = field.open()
    friend = field.seed.friends[0]
    write = await field.look("invite_to_instance", place | {"targetUserId": friend})
    record = {
        "id": f"not_{U}1",
        "type": "invite",
        "senderUserId": field.seed.bot_id,
        "receiverUserId": friend,
    }
    judgement = write_kind("invite_to_instance").judge(
        write, Answer(200, msgspec.json.encode(record | change))
    )
    assert judgement.outcome is outcome
