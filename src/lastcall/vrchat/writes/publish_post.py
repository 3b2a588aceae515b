"""``publish_post``: publish a post in the group."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from lastcall.protocol.outcomes import Code
from lastcall.vrchat.errors import InvalidInput, SchemaDrift, Transient
from lastcall.vrchat.transport import Answer, SendResult, decode
from lastcall.vrchat.writes import checks
from lastcall.vrchat.writes.judging import Judgement, Proof, Write, judge
from lastcall.vrchat.writes.kind import Seen, WriteKind
from lastcall.vrchat.writes.payload import (
    FileId,
    Payload,
    PostId,
    RoleIds,
    Text,
    Title,
    Visibility,
    refuse_repeated,
)

_KIND = "publish_post"


class PublishPost(Payload, frozen=True):
    title: Title
    text: Text
    visibility: Visibility
    send_notification: bool
    image_id: FileId | None = None
    role_ids: RoleIds = ()


class _Post(msgspec.Struct, rename="camel"):
    id: PostId
    group_id: str
    title: Annotated[str, msgspec.Meta(min_length=1)]
    text: Annotated[str, msgspec.Meta(min_length=1)]


def check_post(payload: PublishPost) -> None:
    """Raise ``InvalidInput`` for roles named twice, and for a public post that is for certain roles."""
    refuse_repeated(payload.role_ids)
    if payload.role_ids and payload.visibility != "group":
        raise InvalidInput("A post for certain roles is never public.")


def body_of(payload: PublishPost, seen: Seen) -> dict[str, Any]:
    """The whole post. Image and roles are named even where there are none, because VRChat keeps what an edit
    leaves out."""
    return {
        "title": payload.title,
        "text": payload.text,
        "visibility": payload.visibility,
        "sendNotification": payload.send_notification,
        "imageId": payload.image_id,
        "roleIds": [checks.need_role(seen.own, role_id).role_id for role_id in payload.role_ids],
    }


def read_post(write: Write, answer: Answer) -> _Post | Code:
    """The post that the answer is about, if it is one of that group.

    Its words are not compared: VRChat replaces characters in them.
    """
    try:
        post = decode(answer.body, _Post)
    except (SchemaDrift, Transient):
        return Code.SCHEMA_DRIFT
    is_ours = post.group_id.casefold() == write.own.group_id.casefold()
    return post if is_ours else Code.PROVIDER_SCOPE


def _plan(payload: PublishPost, seen: Seen) -> Write:
    """The write for this payload in this group, its role ids as VRChat writes them."""
    path = f"/groups/{seen.own.group_id}/posts"
    return Write(_KIND, "POST", path, seen.own, payload, body_of(payload, seen))


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by the record of a post of that group; its id is kept."""
    return judge(write, sent, _check_body, ())


def _check_body(write: Write, answer: Answer) -> Proof | Code:
    post = read_post(write, answer)
    return post if isinstance(post, Code) else Proof({"postId": post.id})


PUBLISH_POST = WriteKind(
    name=_KIND,
    feature="posts",
    payload=PublishPost,
    grants=("group-announcement-manage",),
    check=check_post,
    plan_seen=_plan,
    judge=_judge,
)
