"""``reject_request``: turn down somebody who asked to join the group. They are not blocked by it."""

from __future__ import annotations

from lastcall.vrchat.transport import SendResult
from lastcall.vrchat.writes.judging import (
    ALREADY_MEMBER,
    NO_JOIN_REQUEST,
    Judgement,
    Write,
    check_success_or_empty,
    judge,
)
from lastcall.vrchat.writes.kind import Seen, WriteKind
from lastcall.vrchat.writes.payload import PersonPayload

_KIND = "reject_request"


class RejectRequest(PersonPayload, frozen=True):
    pass


def _plan(payload: RejectRequest, seen: Seen) -> Write:
    """The write for this payload in this group."""
    path = f"/groups/{seen.own.group_id}/requests/{payload.target_user_id}"
    return Write(_KIND, "PUT", path, seen.own, payload, {"action": "reject"})


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by VRChat's success envelope, or by a body that is declared to be empty."""
    return judge(write, sent, check_success_or_empty, (NO_JOIN_REQUEST, ALREADY_MEMBER))


REJECT_REQUEST = WriteKind(
    name=_KIND,
    feature="membership_management",
    payload=RejectRequest,
    grants=("group-invites-manage",),
    plan_seen=_plan,
    judge=_judge,
)
