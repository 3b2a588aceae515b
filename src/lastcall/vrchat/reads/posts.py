"""``posts``: the group's posts, newest first."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from lastcall.vrchat.errors import ProviderScope
from lastcall.vrchat.fields import Id, Moment, Number, RoleIds, Text, Word, is_same
from lastcall.vrchat.reads.kind import (
    Asking,
    Item,
    Page,
    PageParams,
    ReadKind,
    one_request,
    page_of,
    window_of,
)

_PLAIN = str.maketrans(
    {
        "\u2024": ".",
        "\u01c3": "!",
        "\u201a": ",",
        "\u02f8": ":",
        "\u037e": ";",
        "\u2044": "/",
        "\u2217": "*",
        "\u227a": "<",
        "\u227b": ">",
    }
)
"""What VRChat writes instead; a text that is edited and sent again should not fill up with these.

For other characters it writes the full-width form. Those stay, because people who write Chinese or Japanese mean them.
"""


class PostItem(Item, frozen=True):
    post_id: str
    title: str
    text: str
    visibility: str
    role_ids: tuple[str, ...]
    image_id: str | None
    created_at: datetime | None


class _Post(msgspec.Struct, rename="camel"):
    id: Id
    group_id: Id
    title: Text
    text: Annotated[str, msgspec.Meta(max_length=20_000)]
    visibility: Word
    role_ids: RoleIds | None = None
    image_id: Id | None = None
    created_at: Moment | None = None


class _Posts(msgspec.Struct):
    posts: list[_Post]
    total: Number


async def _ask(asking: Asking, params: PageParams) -> Page:
    read = await asking.get("/posts", _Posts, window_of(params))
    if not all(is_same(post.group_id, asking.own.group_id) for post in read.value.posts):
        raise ProviderScope("VRChat answered with another group's posts.")
    items = [
        PostItem(
            post.id,
            post.title.translate(_PLAIN),
            post.text.translate(_PLAIN),
            post.visibility,
            tuple(post.role_ids or ()),
            post.image_id,
            post.created_at,
        )
        for post in read.value.posts
    ]
    return page_of(items, params, read.asked_at, total=read.value.total)


POSTS = ReadKind(
    name="posts",
    feature="posts",
    params=PageParams,
    item=PostItem,
    grants=("group-announcement-manage",),
    requests=one_request,
    ask=_ask,
)
