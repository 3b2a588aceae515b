"""``remove_member``: remove a member from the group."""

from __future__ import annotations

from lastcall.vrchat.transport import SendResult
from lastcall.vrchat.writes.judging import Judgement, Write, check_success, judge
from lastcall.vrchat.writes.kind import Seen, WriteKind
from lastcall.vrchat.writes.payload import PersonPayload

_KIND = "remove_member"


class RemoveMember(PersonPayload, frozen=True):
    pass


def _plan(payload: RemoveMember, seen: Seen) -> Write:
    """The write for this payload in this group."""
    path = f"/groups/{seen.own.group_id}/members/{payload.target_user_id}"
    return Write(_KIND, "DELETE", path, seen.own, payload)


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by VRChat's success envelope."""
    return judge(write, sent, check_success, ())


REMOVE_MEMBER = WriteKind(
    name=_KIND,
    feature="membership_management",
    payload=RemoveMember,
    grants=("group-members-remove", "group-members-manage"),
    is_protective=True,
    plan_seen=_plan,
    judge=_judge,
)
