"""Give a member of the group one of its roles."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.fields import RoleId
from lastcall.operations.kinds.kind import Kind, PersonPayload, Words


class AssignRole(PersonPayload, frozen=True):
    role_id: RoleId


KIND = Kind(
    name="assign_role",
    payload=AssignRole,
    permission=Permission.ASSIGN_VRCHAT_ROLES,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-roles-assign", "group-members-manage"),
    cost=2,
    is_bulk=True,
    is_protective=True,
    changes_role=True,
    words=Words(label="Assign role", verb="Assign a role to", plural="Role assignments"),
)
