"""The group's posts, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.telling import content_digest
from lastcall.protocol.messages import CodeText, ProviderId
from lastcall.protocol.messages import Text as Name
from lastcall.reads.kinds.fields import Item, PageParams, RoleIds
from lastcall.reads.kinds.kind import ReadKind, Telling, most_of_page, page_subject

PostText = Annotated[str, Meta(max_length=20_000)]


class PostItem(Item, frozen=True):
    post_id: ProviderId
    title: Name
    text: PostText
    visibility: CodeText
    role_ids: RoleIds
    image_id: ProviderId | None
    created_at: datetime | None


def _body(_: PageParams, items: Sequence[PostItem]) -> dict[str, Any]:
    return {"posts": {item.post_id.lower(): content_digest(item.title, item.text) for item in items}}


KIND = ReadKind(
    name="posts",
    label="Posts",
    params=PageParams,
    item=PostItem,
    permission=Permission.PUBLISH_POSTS,
    feature=Feature.POSTS,
    grants=("group-announcement-manage",),
    most=most_of_page,
    telling=Telling(subject=page_subject, body=_body),
)
