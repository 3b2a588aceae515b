"""Publish a post in the group, to everybody or to some of its roles."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.errors import Invalid
from lastcall.operations.kinds.fields import FileId, RoleIds, Text, Title, Visibility, refuse_repeated
from lastcall.operations.kinds.kind import Kind, Payload, Words


class PublishPost(Payload, frozen=True):
    title: Title
    text: Text
    visibility: Visibility
    send_notification: bool
    image_id: FileId | None = None
    role_ids: RoleIds = ()


def check_post(payload: PublishPost) -> None:
    """A post for certain roles is for the group: public, it would be for everybody."""
    refuse_repeated(payload.role_ids)
    if payload.role_ids and payload.visibility != "group":
        raise Invalid(
            "visibility_invalid",
            "A post for certain roles must have the visibility group.",
            advice="Choose the group, or name no roles.",
            field="visibility",
        )


KIND = Kind(
    name="publish_post",
    payload=PublishPost,
    permission=Permission.PUBLISH_POSTS,
    feature=Feature.POSTS,
    grants=("group-announcement-manage",),
    cost=2,
    check=check_post,
    words=Words(label="Publish post", verb="Publish the post", plural="Posts"),
)
