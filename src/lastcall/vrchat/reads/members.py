"""``members``: the directory of the group. VRChat leaves the asking account itself out."""

from __future__ import annotations

from datetime import datetime

from lastcall.vrchat.reads.kind import Asking, Item, Page, PageParams, ReadKind, one_request
from lastcall.vrchat.reads.people import Person, read_people

VIEW_GRANTS = ("group-members-viewall", "group-members-manage")


class MemberItem(Item, frozen=True):
    user_id: str
    display_name: str
    role_ids: tuple[str, ...]
    joined_at: datetime | None


def member_item(person: Person) -> MemberItem:
    return MemberItem(person.user_id, person.display_name, tuple(person.role_ids), person.joined_at)


async def _ask(asking: Asking, params: PageParams) -> Page:
    return await read_people(asking, "/members", params, member_item)


MEMBERS = ReadKind(
    name="members",
    feature="membership_management",
    params=PageParams,
    item=MemberItem,
    grants=VIEW_GRANTS,
    requests=one_request,
    ask=_ask,
)
