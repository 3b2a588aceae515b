"""``invite_member``: invite somebody to the group. Success means that VRChat took the invitation, not that
it is read."""

from __future__ import annotations

import re

from lastcall.vrchat.transport import SendResult
from lastcall.vrchat.writes.judging import (
    ALREADY_MEMBER,
    AnswerCode,
    Judgement,
    Refusal,
    Write,
    check_success_or_empty,
    judge,
)
from lastcall.vrchat.writes.kind import Seen, WriteKind
from lastcall.vrchat.writes.payload import PersonPayload

_KIND = "invite_member"

_REFUSALS = (
    ALREADY_MEMBER,
    Refusal(400, re.compile(r"user .* is already invited[.!]?"), AnswerCode.ALREADY_INVITED),
    Refusal(403, re.compile(r"you can't invite that user[.!]?"), AnswerCode.INVITATION_REFUSED),
)


class InviteMember(PersonPayload, frozen=True):
    pass


def _plan(payload: InviteMember, seen: Seen) -> Write:
    """The write for this payload in this group.

    ``confirmOverrideBlock`` is sent as false, because VRChat takes its absence for true: then an invitation
    lifts a block, and a ban with it.
    """
    body = {"userId": payload.target_user_id, "confirmOverrideBlock": False}
    path = f"/groups/{seen.own.group_id}/invites"
    return Write(_KIND, "POST", path, seen.own, payload, body)


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by VRChat's success envelope, or by a body that is declared to be empty."""
    return judge(write, sent, check_success_or_empty, _REFUSALS)


INVITE_MEMBER = WriteKind(
    name=_KIND,
    feature="membership_management",
    payload=InviteMember,
    grants=("group-invites-manage",),
    plan_seen=_plan,
    judge=_judge,
)
