"""Open an instance of the group. Done says where it is, and invitations that waited for it go there."""

from __future__ import annotations

from typing import Literal

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.errors import Invalid
from lastcall.operations.kinds.fields import CalendarEntryId, RoleIds, WorldId, refuse_repeated
from lastcall.operations.kinds.kind import Kind, Payload, Words

_ACCESS_GRANTS = {
    "members": "group-instance-open-create",
    "plus": "group-instance-plus-create",
    "public": "group-instance-public-create",
}


class CreateInstance(Payload, frozen=True):
    """``region``: US West, US East, Europe, Japan."""

    world_id: WorldId
    access: Literal["members", "plus", "public"]
    region: Literal["us", "use", "eu", "jp"]
    age_gated: bool = False
    role_ids: RoleIds = ()
    calendar_entry_id: CalendarEntryId | None = None
    queue_enabled: bool = False


def _more_grants(payload: CreateInstance) -> tuple[str, ...]:
    grants = [_ACCESS_GRANTS[payload.access]]
    if payload.age_gated:
        grants.append("group-instance-age-gated-create")
    if payload.role_ids:
        grants.append("group-instance-restricted-create")
    if payload.calendar_entry_id is not None:
        grants.append("group-instance-calendar-link")
    return tuple(grants)


def _check(payload: CreateInstance) -> None:
    if payload.role_ids and payload.access != "members":
        raise Invalid(
            "roles_need_members",
            "Only an instance for members can be restricted to roles.",
            advice="Choose members as access, or leave the roles out.",
            field="roleIds",
        )
    refuse_repeated(payload.role_ids)


KIND = Kind(
    name="create_instance",
    payload=CreateInstance,
    permission=Permission.MANAGE_INSTANCES,
    feature=Feature.INSTANCES,
    grants=(),
    more_grants=_more_grants,
    cost=2,
    check=_check,
    words=Words(label="New instance", verb="Open an instance of", plural="New instances"),
)
