"""``approve_request``: let somebody in who asked to join the group."""

from __future__ import annotations

import re

from lastcall.vrchat.transport import SendResult
from lastcall.vrchat.writes.judging import (
    ALREADY_MEMBER,
    NO_JOIN_REQUEST,
    AnswerCode,
    Judgement,
    Refusal,
    Write,
    check_success_or_empty,
    judge,
)
from lastcall.vrchat.writes.kind import Seen, WriteKind
from lastcall.vrchat.writes.payload import PersonPayload

_KIND = "approve_request"

# About the person, not about the account: their number of groups is at its limit.
_TOO_MANY = re.compile(r".*can't join right now because they're in too many groups[.!]?")
_REFUSALS = (NO_JOIN_REQUEST, ALREADY_MEMBER, Refusal(403, _TOO_MANY, AnswerCode.TOO_MANY_GROUPS))


class ApproveRequest(PersonPayload, frozen=True):
    pass


def _plan(payload: ApproveRequest, seen: Seen) -> Write:
    """The write for this payload in this group."""
    path = f"/groups/{seen.own.group_id}/requests/{payload.target_user_id}"
    return Write(_KIND, "PUT", path, seen.own, payload, {"action": "accept"})


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by VRChat's success envelope, or by a body that is declared to be empty."""
    return judge(write, sent, check_success_or_empty, _REFUSALS)


APPROVE_REQUEST = WriteKind(
    name=_KIND,
    feature="membership_management",
    payload=ApproveRequest,
    grants=("group-invites-manage",),
    plan_seen=_plan,
    judge=_judge,
)
