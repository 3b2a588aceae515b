"""The account's own way into a group and out of it: what it is to the group, joining, leaving.

Joining and leaving are writes like others: sent once, never again by themselves, and judged by their answer
alone. Whoever joins looks again afterwards, because only the group says what the account is now.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from lastcall.protocol.outcomes import Code, Outcome
from lastcall.vrchat.errors import SchemaDrift, Transient
from lastcall.vrchat.evidence import Group, OwnMember, own_member, read_group
from lastcall.vrchat.fields import Id, Word, is_same
from lastcall.vrchat.transport import Answer, Read, Transport, decode
from lastcall.vrchat.writes.judging import (
    AnswerCode,
    Judgement,
    Proof,
    Refusal,
    check_success_or_empty,
    judge,
)

MEMBER = "member"

KEEP_BLOCKS = {"confirmOverrideBlock": "false"}
"""Said with each joining: for invitations VRChat takes its absence for *true*, and may do so here."""


@dataclass(frozen=True)
class GroupLook:
    """A group as the account sees it, member or not.

    ``membership`` is VRChat's word: ``member``, ``requested``, ``invited``, ``banned``, ``userblocked``, or
    ``inactive`` for none of these. ``own`` is there with a member, and is the evidence of its rights.
    ``member_count`` is absent where VRChat does not say it. ``asked_at``: boot time from before the request.
    """

    group_id: str
    name: str
    privacy: str
    join_state: str
    membership: str
    member_count: int | None
    own: OwnMember | None
    asked_at: float


async def look_at_group(transport: Transport, group_id: str, user_id: str) -> GroupLook:
    """Read the group and what the account ``user_id`` is to it, without raising for one that is no member.
    One request.

    Raises ``NotVisible`` when the group hides from the account or does not exist, ``SchemaDrift`` when the
    answer contradicts itself, and the faults of any read.
    """
    return look(await read_group(transport, group_id), group_id, user_id)


def look(read: Read[Group], group_id: str, user_id: str) -> GroupLook:
    """``read`` as a look at this group, or the fault that it is."""
    group = read.value
    mine = group.my_member.membership_status if group.my_member is not None else None
    membership = group.membership_status or mine
    if membership is None or (membership == MEMBER and mine not in (None, MEMBER)):
        raise SchemaDrift("VRChat does not say what the account is to the group.")
    if membership == MEMBER and mine is None:
        raise SchemaDrift("VRChat calls the account a member and does not show its rights.")
    return GroupLook(
        group_id=group.id,
        name=group.name,
        privacy=group.privacy,
        join_state=group.join_state,
        membership=membership,
        member_count=group.member_count,
        own=own_member(read, group_id, user_id) if membership == MEMBER else None,
        asked_at=read.asked_at,
    )


# --------------------------------------------------------------------------------------------- joining, leaving


@dataclass(frozen=True)
class _Step:
    """What the answer must be about."""

    group_id: str
    user_id: str


class _Standing(msgspec.Struct, rename="camel"):
    group_id: Id
    user_id: Id
    membership_status: Word


_JOIN_REFUSALS = (
    Refusal(400, re.compile(r"you're already a member( of this group)?[.!]?"), AnswerCode.ALREADY_MEMBER),
)  # fmt: skip

_LEAVE_REFUSALS = (Refusal(404, re.compile(r"can't find group[.!]?"), Code.MEMBERSHIP),)


async def join(
    transport: Transport, group_id: str, user_id: str, *, may_send: Callable[[], bool] | None = None
) -> Judgement:
    """Ask to be let into the group: one write, sent once. ``result["membership"]`` is what came of it,
    ``member`` or ``requested``.

    ``may_send`` is the last look before the first byte. Never raises for what the network or VRChat does;
    ``fault`` is set when the answer says something about the whole account. A group that the account has
    blocked stays blocked.
    """
    sent = await transport.send_once(
        "POST", f"/groups/{group_id}/join", params=KEEP_BLOCKS, may_send=may_send
    )
    return judge(_Step(group_id, user_id), sent, _check_joined, _JOIN_REFUSALS)


async def leave(
    transport: Transport, group_id: str, user_id: str, *, may_send: Callable[[], bool] | None = None
) -> Judgement:
    """Leave the group: one write, sent once. Succeeded also when the account is no member, or the group is gone.

    ``may_send`` and ``fault`` as with ``join``.
    """
    sent = await transport.send_once("POST", f"/groups/{group_id}/leave", may_send=may_send)
    judged = judge(_Step(group_id, user_id), sent, _check_left, _LEAVE_REFUSALS)
    is_outside = judged.outcome is Outcome.REJECTED and judged.code == Code.MEMBERSHIP
    return Judgement(Outcome.SUCCEEDED) if is_outside else judged


def _check_joined(step: _Step, answer: Answer) -> Proof | Code:
    found = _standing(step, answer)
    if isinstance(found, Code):
        return found
    is_in = found.membership_status in (MEMBER, "requested")
    return Proof({"membership": found.membership_status}) if is_in else Code.SCHEMA_DRIFT


def _check_left(step: _Step, answer: Answer) -> Proof | Code:
    """VRChat does not document this body: empty, its success envelope, or the record of the standing that is
    over."""
    if check_success_or_empty(step, answer) == Proof():
        return Proof()
    found = _standing(step, answer)
    if isinstance(found, Code):
        return found
    return Proof() if found.membership_status != MEMBER else Code.SCHEMA_DRIFT


def _standing(step: _Step, answer: Answer) -> _Standing | Code:
    try:
        found = decode(answer.body, _Standing)
    except (SchemaDrift, Transient):
        return Code.SCHEMA_DRIFT
    is_ours = is_same(found.group_id, step.group_id) and is_same(found.user_id, step.user_id)
    return found if is_ours else Code.PROVIDER_SCOPE
