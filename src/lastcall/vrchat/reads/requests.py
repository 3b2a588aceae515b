"""``requests``: who has asked to join and has no answer."""

from __future__ import annotations

from datetime import datetime

from lastcall.vrchat.reads.kind import Asking, Item, Page, PageParams, ReadKind, one_request
from lastcall.vrchat.reads.people import Person, read_people


class RequestItem(Item, frozen=True):
    user_id: str
    display_name: str
    asked_at: datetime | None


def _item(person: Person) -> RequestItem:
    return RequestItem(person.user_id, person.display_name, person.created_at)


async def _ask(asking: Asking, params: PageParams) -> Page:
    return await read_people(asking, "/requests", params, _item)


REQUESTS = ReadKind(
    name="requests",
    feature="membership_management",
    params=PageParams,
    item=RequestItem,
    grants=("group-invites-manage",),
    requests=one_request,
    ask=_ask,
)
