"""The roles of the group, for whoever assigns them."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.reads.kinds.fields import PageParams, RoleItem
from lastcall.reads.kinds.kind import ReadKind, most_of_page

KIND = ReadKind(
    name="roles",
    label="Roles",
    params=PageParams,
    item=RoleItem,
    permission=Permission.ASSIGN_VRCHAT_ROLES,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-roles-assign", "group-members-manage"),
    most=most_of_page,
)
