"""Members whose name holds a text."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.reads.kinds.fields import MemberItem, PageParams, Query
from lastcall.reads.kinds.kind import ReadKind, most_of_page


class SearchParams(PageParams, frozen=True, kw_only=True):
    query: Query


KIND = ReadKind(
    name="search",
    label="Search of members",
    params=SearchParams,
    item=MemberItem,
    permission=Permission.VIEW_MEMBERS,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-members-viewall", "group-members-manage"),
    most=most_of_page,
)
