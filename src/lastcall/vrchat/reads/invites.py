"""``invites``: who is invited to the group and has not answered."""

from __future__ import annotations

from datetime import datetime

from lastcall.vrchat.reads.kind import Asking, Item, Page, PageParams, ReadKind, one_request
from lastcall.vrchat.reads.people import Person, read_people


class InviteItem(Item, frozen=True):
    user_id: str
    display_name: str
    invited_at: datetime | None


def _item(person: Person) -> InviteItem:
    return InviteItem(person.user_id, person.display_name, person.created_at)


async def _ask(asking: Asking, params: PageParams) -> Page:
    return await read_people(asking, "/invites", params, _item)


INVITES = ReadKind(
    name="invites",
    feature="membership_management",
    params=PageParams,
    item=InviteItem,
    grants=("group-invites-manage",),
    requests=one_request,
    ask=_ask,
)
