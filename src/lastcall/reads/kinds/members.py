"""The members of the group, page by page; VRChat leaves the account itself out."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.reads.kinds.fields import MemberItem, PageParams
from lastcall.reads.kinds.kind import ReadKind, most_of_page

KIND = ReadKind(
    name="members",
    label="Members",
    params=PageParams,
    item=MemberItem,
    permission=Permission.VIEW_MEMBERS,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-members-viewall", "group-members-manage"),
    most=most_of_page,
)
