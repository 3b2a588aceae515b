"""``delete_post``: delete a post of the group."""

from __future__ import annotations

from lastcall.vrchat.transport import SendResult
from lastcall.vrchat.writes.judging import Judgement, Write, check_success, judge
from lastcall.vrchat.writes.kind import Seen, WriteKind
from lastcall.vrchat.writes.payload import Payload, PostId

_KIND = "delete_post"


class DeletePost(Payload, frozen=True):
    post_id: PostId


def _plan(payload: DeletePost, seen: Seen) -> Write:
    """The write for this payload in this group."""
    path = f"/groups/{seen.own.group_id}/posts/{payload.post_id}"
    return Write(_KIND, "DELETE", path, seen.own, payload)


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by VRChat's success envelope."""
    return judge(write, sent, check_success, ())


DELETE_POST = WriteKind(
    name=_KIND,
    feature="posts",
    payload=DeletePost,
    grants=("group-announcement-manage",),
    plan_seen=_plan,
    judge=_judge,
)
