"""``bans``: who is banned from the group."""

from __future__ import annotations

from datetime import datetime

from lastcall.vrchat.reads.kind import Asking, Item, Page, PageParams, ReadKind, one_request
from lastcall.vrchat.reads.people import Person, read_people


class BanItem(Item, frozen=True):
    user_id: str
    display_name: str
    banned_at: datetime | None


def _item(person: Person) -> BanItem:
    return BanItem(person.user_id, person.display_name, person.banned_at)


async def _ask(asking: Asking, params: PageParams) -> Page:
    return await read_people(asking, "/bans", params, _item)


BANS = ReadKind(
    name="bans",
    feature="membership_management",
    params=PageParams,
    item=BanItem,
    grants=("group-bans-manage", "group-members-manage"),
    requests=one_request,
    ask=_ask,
)
