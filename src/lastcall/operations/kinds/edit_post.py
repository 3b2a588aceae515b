"""Replace a post of the group: whatever it said before, afterwards it says what was reviewed."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.fields import PostId
from lastcall.operations.kinds.kind import Kind, Words
from lastcall.operations.kinds.publish_post import PublishPost, check_post


class EditPost(PublishPost, frozen=True, kw_only=True):
    post_id: PostId


KIND = Kind(
    name="edit_post",
    payload=EditPost,
    permission=Permission.PUBLISH_POSTS,
    feature=Feature.POSTS,
    grants=("group-announcement-manage",),
    cost=2,
    check=check_post,
    words=Words(label="Edit post", verb="Edit the post", plural="Edited posts"),
)
