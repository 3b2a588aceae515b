"""``ban_member``: ban somebody from the group, member or not."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from lastcall.protocol.outcomes import Code
from lastcall.vrchat.errors import SchemaDrift, Transient
from lastcall.vrchat.evidence import OwnMember
from lastcall.vrchat.transport import Answer, SendResult, decode
from lastcall.vrchat.writes import checks
from lastcall.vrchat.writes.judging import AnswerCode, Judgement, Refusal, Write, judge
from lastcall.vrchat.writes.kind import WriteKind
from lastcall.vrchat.writes.payload import Payload, UserId

_KIND = "ban_member"
_COST = 2
"""Requests: the group read and the write; the identity read is the account's."""
_GRANTS = ("group-bans-manage", "group-members-manage")

_REFUSALS = (Refusal(400, re.compile(r"user( .*)? is already banned[.!]?"), AnswerCode.ALREADY_BANNED),)


class BanMember(Payload, frozen=True):
    target_user_id: UserId


class _Banned(msgspec.Struct, rename="camel"):
    id: Annotated[str, msgspec.Meta(pattern=r"^gmem_")]
    group_id: str
    user_id: str


def _plan(payload: BanMember, evidence: OwnMember) -> Write:
    """The write for this payload in this group."""
    checks.need_grants(evidence, _GRANTS)
    checks.need_unprotected(evidence, payload.target_user_id)
    path = f"/groups/{evidence.group_id}/bans"
    body = {"userId": payload.target_user_id}
    return Write(_KIND, "POST", path, evidence.group_id, payload.target_user_id, json=body)


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by the member record of that person in that group."""
    return judge(write, sent, _check_body, _REFUSALS)


def _check_body(write: Write, answer: Answer) -> Code | None:
    try:
        banned = decode(answer.body, _Banned)
    except (SchemaDrift, Transient):
        return Code.SCHEMA_DRIFT
    is_ours = (
        banned.group_id.casefold() == write.group_id.casefold()
        and banned.user_id.casefold() == write.target_user_id.casefold()
    )
    return None if is_ours else Code.PROVIDER_SCOPE


BAN_MEMBER = WriteKind(
    name=_KIND, payload=BanMember, cost=_COST, grants=_GRANTS, plan_read=_plan, judge=_judge
)
