"""The roles of the group, for whoever opens an instance to some of them."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.reads.kinds.fields import PageParams, RoleItem
from lastcall.reads.kinds.kind import ReadKind, most_of_page

KIND = ReadKind(
    name="instance_roles",
    label="Roles for instances",
    params=PageParams,
    item=RoleItem,
    permission=Permission.MANAGE_INSTANCES,
    feature=Feature.INSTANCES,
    grants=("group-instance-restricted-create",),
    most=most_of_page,
)
