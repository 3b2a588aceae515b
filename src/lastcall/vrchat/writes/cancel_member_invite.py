"""``cancel_member_invite``: take back an invitation into the group."""

from __future__ import annotations

import re

from lastcall.vrchat.transport import SendResult
from lastcall.vrchat.writes.judging import AnswerCode, Judgement, Refusal, Write, check_success, judge
from lastcall.vrchat.writes.kind import Seen, WriteKind
from lastcall.vrchat.writes.payload import PersonPayload

_KIND = "cancel_member_invite"

_NOT_INVITED = re.compile(r"you can't uninvite a user who wasn't invited[.!]?")
_REFUSALS = (Refusal(400, _NOT_INVITED, AnswerCode.NOT_INVITED),)


class CancelMemberInvite(PersonPayload, frozen=True):
    pass


def _plan(payload: CancelMemberInvite, seen: Seen) -> Write:
    """The write for this payload in this group."""
    path = f"/groups/{seen.own.group_id}/invites/{payload.target_user_id}"
    return Write(_KIND, "DELETE", path, seen.own, payload)


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by VRChat's success envelope."""
    return judge(write, sent, check_success, _REFUSALS)


CANCEL_MEMBER_INVITE = WriteKind(
    name=_KIND,
    feature="membership_management",
    payload=CancelMemberInvite,
    grants=("group-invites-manage",),
    plan_seen=_plan,
    judge=_judge,
)
