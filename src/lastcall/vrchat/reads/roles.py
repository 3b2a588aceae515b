"""``roles`` and ``instance_roles``: the roles of the group, for giving them and for restricting an instance.

They stand in the evidence that every read rests on, so neither asks VRChat for anything more.
"""

from __future__ import annotations

from typing import Any

from lastcall.vrchat.reads.kind import Asking, Item, Page, PageParams, ReadKind, slice_of


class RoleItem(Item, frozen=True):
    role_id: str
    name: str


async def _ask(asking: Asking, params: PageParams) -> Page:
    items = [RoleItem(role.role_id, role.name) for role in asking.own.roles]
    return slice_of(items, params, asking.own.asked_at)


def _no_request(_params: Any) -> int:
    return 0


ROLES = ReadKind(
    name="roles",
    feature="membership_management",
    params=PageParams,
    item=RoleItem,
    grants=("group-roles-assign", "group-members-manage"),
    requests=_no_request,
    ask=_ask,
)
INSTANCE_ROLES = ReadKind(
    name="instance_roles",
    feature="instances",
    params=PageParams,
    item=RoleItem,
    grants=("group-instance-restricted-create",),
    requests=_no_request,
    ask=_ask,
)
