"""Delete a post of the group."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.fields import PostId
from lastcall.operations.kinds.kind import Kind, Payload, Words


class DeletePost(Payload, frozen=True):
    post_id: PostId


KIND = Kind(
    name="delete_post",
    payload=DeletePost,
    permission=Permission.PUBLISH_POSTS,
    feature=Feature.POSTS,
    grants=("group-announcement-manage",),
    cost=2,
    words=Words(label="Delete post", verb="Delete the post", plural="Deleted posts"),
)
