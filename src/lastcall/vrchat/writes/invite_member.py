"""``invite_member``: invite somebody to the group. Success means that VRChat took the invitation, not that
it is read."""

from __future__ import annotations

import re

import msgspec

from lastcall.protocol.outcomes import Code
from lastcall.vrchat.errors import SchemaDrift, Transient
from lastcall.vrchat.evidence import OwnMember
from lastcall.vrchat.transport import Answer, SendResult, decode
from lastcall.vrchat.writes import checks
from lastcall.vrchat.writes.judging import AnswerCode, Judgement, Refusal, Write, judge
from lastcall.vrchat.writes.kind import WriteKind
from lastcall.vrchat.writes.payload import Payload, UserId

_KIND = "invite_member"
_COST = 2
"""Requests: the group read and the write; the identity read is the account's."""
_GRANTS = ("group-invites-manage",)

# The messages name the person, so only what stands after the name is compared.
_REFUSALS = (
    Refusal(400, re.compile(r"user .* is already a member of this group[.!]?"), AnswerCode.ALREADY_MEMBER),
    Refusal(400, re.compile(r"user .* is already invited[.!]?"), AnswerCode.ALREADY_INVITED),
    Refusal(403, re.compile(r"you can't invite that user[.!]?"), AnswerCode.INVITATION_REFUSED),
)


class InviteMember(Payload, frozen=True):
    target_user_id: UserId


class _Inner(msgspec.Struct):
    message: str
    status_code: int


class _Success(msgspec.Struct):
    success: _Inner


def _plan(payload: InviteMember, evidence: OwnMember) -> Write:
    """The write for this payload in this group.

    ``confirmOverrideBlock`` is sent as false, because VRChat takes its absence for true: then an invitation
    lifts a block, and a ban with it.
    """
    checks.need_grants(evidence, _GRANTS)
    body = {"userId": payload.target_user_id, "confirmOverrideBlock": False}
    path = f"/groups/{evidence.group_id}/invites"
    return Write(_KIND, "POST", path, evidence.group_id, payload.target_user_id, json=body)


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by VRChat's success envelope, or by a body that is declared to be empty."""
    return judge(write, sent, _check_body, _REFUSALS)


def _check_body(_write: Write, answer: Answer) -> Code | None:
    if answer.body == b"" and answer.is_framed:
        return None
    try:
        inner = decode(answer.body, _Success).success
    except (SchemaDrift, Transient):
        return Code.SCHEMA_DRIFT
    return None if inner.status_code == answer.status else Code.SCHEMA_DRIFT


INVITE_MEMBER = WriteKind(
    name=_KIND, payload=InviteMember, cost=_COST, grants=_GRANTS, plan_read=_plan, judge=_judge
)
