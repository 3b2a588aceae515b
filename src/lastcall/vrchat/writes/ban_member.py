"""``ban_member``: ban somebody from the group, member or not."""

from __future__ import annotations

import re

from lastcall.vrchat.transport import SendResult
from lastcall.vrchat.writes.judging import AnswerCode, Judgement, Refusal, Write, check_standing, judge
from lastcall.vrchat.writes.kind import Seen, WriteKind
from lastcall.vrchat.writes.payload import PersonPayload

_KIND = "ban_member"

_REFUSALS = (Refusal(400, re.compile(r"user( .*)? is already banned[.!]?"), AnswerCode.ALREADY_BANNED),)


class BanMember(PersonPayload, frozen=True):
    pass


def _plan(payload: BanMember, seen: Seen) -> Write:
    """The write for this payload in this group."""
    path = f"/groups/{seen.own.group_id}/bans"
    return Write(_KIND, "POST", path, seen.own, payload, {"userId": payload.target_user_id})


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by the member record of that person in that group."""
    return judge(write, sent, check_standing, _REFUSALS)


BAN_MEMBER = WriteKind(
    name=_KIND,
    feature="membership_management",
    payload=BanMember,
    grants=("group-bans-manage", "group-members-manage"),
    is_protective=True,
    plan_seen=_plan,
    judge=_judge,
)
