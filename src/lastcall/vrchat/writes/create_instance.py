"""``create_instance``: open an instance of the group. Its id is known only from the answer, and is kept."""

from __future__ import annotations

from typing import Literal

from lastcall.protocol.outcomes import Code
from lastcall.vrchat.errors import GroupVisibility, InvalidInput, SchemaDrift, Transient
from lastcall.vrchat.instances import Instance
from lastcall.vrchat.transport import Answer, SendResult, decode
from lastcall.vrchat.writes import checks
from lastcall.vrchat.writes.judging import Judgement, Proof, Write, judge
from lastcall.vrchat.writes.kind import Seen, WriteKind
from lastcall.vrchat.writes.payload import CalendarEntryId, Payload, RoleIds, WorldId, refuse_repeated

_KIND = "create_instance"
_PUBLIC_GROUP = "default"
"""What VRChat calls the privacy of a group that everybody can see."""

ACCESS_GRANTS = {
    "members": "group-instance-open-create",
    "plus": "group-instance-plus-create",
    "public": "group-instance-public-create",
}
"""What the group must grant, by whom the instance is open to."""


class CreateInstance(Payload, frozen=True):
    world_id: WorldId
    access: Literal["members", "plus", "public"]
    region: Literal["us", "use", "eu", "jp"]
    age_gated: bool = False
    role_ids: RoleIds = ()
    calendar_entry_id: CalendarEntryId | None = None
    queue_enabled: bool = False


def _more_grants(payload: CreateInstance) -> tuple[str, ...]:
    grants = [ACCESS_GRANTS[payload.access]]
    if payload.age_gated:
        grants.append("group-instance-age-gated-create")
    if payload.role_ids:
        grants.append("group-instance-restricted-create")
    if payload.calendar_entry_id is not None:
        grants.append("group-instance-calendar-link")
    return tuple(grants)


def _check(payload: CreateInstance) -> None:
    if payload.role_ids and payload.access != "members":
        raise InvalidInput("Only an instance for members can be restricted to roles.")
    refuse_repeated(payload.role_ids)


def _plan(payload: CreateInstance, seen: Seen) -> Write:
    """The write for this payload in this group, its role ids as VRChat writes them."""
    if payload.access == "public" and seen.own.privacy != _PUBLIC_GROUP:
        raise GroupVisibility("A public instance needs a public group.")
    body = {
        "worldId": payload.world_id,
        "type": "group",
        "ownerId": seen.own.group_id,
        "groupAccessType": payload.access,
        "region": payload.region,
        "ageGate": payload.age_gated,
        "queueEnabled": payload.queue_enabled,
        "roleIds": [checks.need_role(seen.own, role_id).role_id for role_id in payload.role_ids],
    }
    if payload.calendar_entry_id is not None:
        body["calendarEntryId"] = payload.calendar_entry_id
    return Write(_KIND, "POST", "/instances", seen.own, payload, json=body)


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by the record of an instance of this group in that world."""
    return judge(write, sent, _check_body, ())


def _check_body(write: Write, answer: Answer) -> Proof | Code:
    try:
        opened = decode(answer.body, Instance)
    except (SchemaDrift, Transient):
        return Code.SCHEMA_DRIFT
    is_there = opened.world_id.casefold() == write.payload.world_id.casefold()
    if not is_there or not opened.belongs_to(write.own.group_id):
        return Code.DESTINATION_SCOPE
    return Proof({"worldId": opened.world_id, "instanceId": opened.instance_id})


CREATE_INSTANCE = WriteKind(
    name=_KIND,
    feature="instances",
    payload=CreateInstance,
    grants=(),
    more_grants=_more_grants,
    check=_check,
    plan_seen=_plan,
    judge=_judge,
)
