"""Take one of the group's roles from a member."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.fields import RoleId
from lastcall.operations.kinds.kind import Kind, PersonPayload, Words


class RemoveRole(PersonPayload, frozen=True):
    role_id: RoleId


KIND = Kind(
    name="remove_role",
    payload=RemoveRole,
    permission=Permission.ASSIGN_VRCHAT_ROLES,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-roles-assign", "group-members-manage"),
    cost=2,
    is_bulk=True,
    is_protective=True,
    changes_role=True,
    words=Words(label="Remove role", verb="Remove a role from", plural="Role removals"),
)
