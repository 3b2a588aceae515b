"""``unban_member``: lift somebody's ban from the group."""

from __future__ import annotations

import re

from lastcall.vrchat.transport import SendResult
from lastcall.vrchat.writes.judging import AnswerCode, Judgement, Refusal, Write, check_standing, judge
from lastcall.vrchat.writes.kind import Seen, WriteKind
from lastcall.vrchat.writes.payload import PersonPayload

_KIND = "unban_member"

_REFUSALS = (Refusal(400, re.compile(r"user( .*)? (is not|isn't) banned[.!]?"), AnswerCode.NOT_BANNED),)


class UnbanMember(PersonPayload, frozen=True):
    pass


def _plan(payload: UnbanMember, seen: Seen) -> Write:
    """The write for this payload in this group."""
    path = f"/groups/{seen.own.group_id}/bans/{payload.target_user_id}"
    return Write(_KIND, "DELETE", path, seen.own, payload)


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by the member record of that person in that group."""
    return judge(write, sent, check_standing, _REFUSALS)


UNBAN_MEMBER = WriteKind(
    name=_KIND,
    feature="membership_management",
    payload=UnbanMember,
    grants=("group-bans-manage", "group-members-manage"),
    is_protective=True,
    plan_seen=_plan,
    judge=_judge,
)
