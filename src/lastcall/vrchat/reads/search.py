"""``search``: members by a part of their display name."""

from __future__ import annotations

from typing import Annotated

import msgspec

from lastcall.vrchat.fields import Number
from lastcall.vrchat.reads.kind import Asking, Page, PageParams, ReadKind, one_request, page_of, window_of
from lastcall.vrchat.reads.members import VIEW_GRANTS, MemberItem, member_item
from lastcall.vrchat.reads.people import Person

Query = Annotated[str, msgspec.Meta(min_length=3, max_length=100, pattern=r"^[^\x00-\x1f\x7f-\x9f]*\Z")]


class SearchParams(PageParams, frozen=True, kw_only=True):
    query: Query


class _Found(msgspec.Struct):
    results: list[Person]
    total: Number


async def _ask(asking: Asking, params: SearchParams) -> Page:
    read = await asking.get("/members/search", _Found, window_of(params) | {"query": params.query})
    for person in read.value.results:
        person.belongs_to(asking.own.group_id)
    items = [member_item(person) for person in read.value.results]
    return page_of(items, params, read.asked_at, total=read.value.total)


SEARCH = ReadKind(
    name="search",
    feature="membership_management",
    params=SearchParams,
    item=MemberItem,
    grants=VIEW_GRANTS,
    requests=one_request,
    ask=_ask,
)
