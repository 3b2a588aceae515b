"""``edit_post``: replace a post of the group as a whole."""

from __future__ import annotations

from lastcall.protocol.outcomes import Code
from lastcall.vrchat.transport import Answer, SendResult
from lastcall.vrchat.writes.judging import Judgement, Proof, Write, judge
from lastcall.vrchat.writes.kind import Seen, WriteKind
from lastcall.vrchat.writes.payload import PostId
from lastcall.vrchat.writes.publish_post import PublishPost, body_of, check_post, read_post

_KIND = "edit_post"


class EditPost(PublishPost, frozen=True, kw_only=True):
    post_id: PostId


def _plan(payload: EditPost, seen: Seen) -> Write:
    """The write for this payload in this group, its role ids as VRChat writes them."""
    path = f"/groups/{seen.own.group_id}/posts/{payload.post_id}"
    return Write(_KIND, "PUT", path, seen.own, payload, body_of(payload, seen))


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by the record of that very post."""
    return judge(write, sent, _check_body, ())


def _check_body(write: Write, answer: Answer) -> Proof | Code:
    post = read_post(write, answer)
    if isinstance(post, Code):
        return post
    is_it = post.id.casefold() == write.payload.post_id.casefold()
    return Proof({"postId": post.id}) if is_it else Code.PROVIDER_SCOPE


EDIT_POST = WriteKind(
    name=_KIND,
    feature="posts",
    payload=EditPost,
    grants=("group-announcement-manage",),
    check=check_post,
    plan_seen=_plan,
    judge=_judge,
)
