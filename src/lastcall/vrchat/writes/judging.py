"""How the answer to a write is judged, the same way for each kind.

- 2xx with a valid body of that kind: succeeded.
- 4xx but 408, with VRChat's own error envelope about that very status: rejected. Its message may choose between reason
  codes, after folding; it never decides whether the write happened. 429 is refused before it is applied.
- Everything else, a proxy's page and garbage under load included: nobody knows, so indeterminate (WRK-14).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

import msgspec

from lastcall.protocol.outcomes import Code, Outcome
from lastcall.vrchat import errors
from lastcall.vrchat.evidence import OwnMember
from lastcall.vrchat.transport import Answer, NoAnswer, SendResult, decode, fault_of


class AnswerCode(StrEnum):
    """Reason codes that only an answer table gives, beside those of ``protocol.outcomes.Code``."""

    NO_JOIN_REQUEST = "no_join_request"
    """The person withdrew, or somebody else decided before."""
    TOO_MANY_GROUPS = "too_many_groups"
    """Of the person who asked to join; it is about them and says nothing about the account."""
    NOT_INVITED = "not_invited"
    NOT_BANNED = "not_banned"
    ALREADY_MEMBER = "already_member"
    ALREADY_INVITED = "already_invited"
    ALREADY_BANNED = "already_banned"
    ALREADY_CLOSED = "already_closed"
    INVITATION_REFUSED = "invitation_refused"
    """VRChat does not let this group invite that person: banned, blocked, or not open to invitations."""


@dataclass(frozen=True)
class Write:
    """One provider write, ready to be sent once. ``own`` and ``payload`` are what its answer must be about:
    the group and the account, and what was reviewed."""

    kind: str
    method: str
    path: str
    own: OwnMember
    payload: Any
    json: Mapping[str, Any] | None = None
    query: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Judgement:
    """What became of a write. ``fault`` is set when the answer also says something about the account, whose
    ``stops_account`` and ``retry_after`` (seconds) then hold for all of its work."""

    outcome: Outcome
    code: str | None = None
    result: Mapping[str, str] = field(default_factory=dict)
    fault: errors.ProviderFault | None = None


@dataclass(frozen=True)
class Refusal:
    """A row of a kind's table: an envelope with this status whose folded message matches ``says`` means
    ``code``."""

    status: int
    says: re.Pattern[str]
    code: str


@dataclass(frozen=True)
class Proof:
    """A 2xx answer that proves the write. ``result`` is what is worth keeping of it: ids of what was made."""

    result: Mapping[str, str] = field(default_factory=dict)


# Messages name the person in places, so only what stands around the name is compared.
ALREADY_MEMBER = Refusal(
    400, re.compile(r"user .* is already a member of this group[.!]?"), AnswerCode.ALREADY_MEMBER
)
NO_JOIN_REQUEST = Refusal(
    400,
    re.compile(r"you can't \w+ a join request for a user who hasn't requested to join[.!]?"),
    AnswerCode.NO_JOIN_REQUEST,
)

W = TypeVar("W")
"""What the answer must be about: a ``Write``, or less where there is no evidence behind the write."""

_COMMON = (
    Refusal(403, re.compile(r"you're not a member( of this group)?[.!]?"), Code.MEMBERSHIP),
)  # fmt: skip
_BY_STATUS = {
    401: Code.AUTHENTICATION,
    403: Code.PROVIDER_PERMISSIONS,
    404: Code.VISIBILITY,
    429: Code.RATE_LIMIT,
}


def judge(
    write: W,
    sent: SendResult,
    check_body: Callable[[W, Answer], Proof | Code],
    refusals: tuple[Refusal, ...],
) -> Judgement:
    """Judge what ``send_once`` gave back for ``write``.

    ``check_body`` is the kind's own look at a 2xx answer: a proof of the write, or why it is none.
    """
    if isinstance(sent, NoAnswer):
        return Judgement(Outcome.INDETERMINATE, sent.code)
    if not isinstance(sent, Answer):
        return Judgement(Outcome.REJECTED, Code.NOT_ATTEMPTED)
    if HTTPStatus.OK <= sent.status < HTTPStatus.MULTIPLE_CHOICES:
        found = check_body(write, sent)
        if isinstance(found, Proof):
            return Judgement(Outcome.SUCCEEDED, result=found.result)
        return Judgement(Outcome.INDETERMINATE, found)
    return _judge_refusal(sent, refusals)


def _judge_refusal(answer: Answer, refusals: tuple[Refusal, ...]) -> Judgement:
    fault = fault_of(answer)
    envelope = errors.parse_envelope(answer.body)
    is_definite = (
        HTTPStatus.BAD_REQUEST <= answer.status < HTTPStatus.INTERNAL_SERVER_ERROR
        and answer.status != HTTPStatus.REQUEST_TIMEOUT
        and envelope is not None
        and envelope.status == answer.status
    )
    shared = fault if fault.stops_account or isinstance(fault, errors.Membership) else None
    if envelope is None or not is_definite:
        return Judgement(Outcome.INDETERMINATE, fault.reason, fault=shared)
    message = errors.fold(envelope.message)
    for row in (*refusals, *_COMMON):
        if row.status == answer.status and row.says.fullmatch(message):
            return Judgement(Outcome.REJECTED, row.code, fault=shared)
    return Judgement(Outcome.REJECTED, _BY_STATUS.get(answer.status, Code.PROVIDER_ERROR), fault=shared)


# ------------------------------------------------------------------------------------ bodies of several kinds


_RoleId = Annotated[str, msgspec.Meta(pattern=r"^grol_")]


class _Inner(msgspec.Struct):
    message: str
    status_code: int


class _Success(msgspec.Struct):
    success: _Inner


class _Standing(msgspec.Struct, rename="camel"):
    id: Annotated[str, msgspec.Meta(pattern=r"^gmem_")]
    group_id: str
    user_id: str


def check_success(_write: object, answer: Answer) -> Proof | Code:
    """VRChat's success envelope about that very status."""
    try:
        inner = decode(answer.body, _Success).success
    except (errors.SchemaDrift, errors.Transient):
        return Code.SCHEMA_DRIFT
    return Proof() if inner.status_code == answer.status else Code.SCHEMA_DRIFT


def check_success_or_empty(write: object, answer: Answer) -> Proof | Code:
    """The success envelope, or a body that is declared to be empty."""
    if answer.body == b"" and answer.is_framed:
        return Proof()
    return check_success(write, answer)


def check_standing(write: Write, answer: Answer) -> Proof | Code:
    """The record of that person's standing in that group."""
    try:
        found = decode(answer.body, _Standing)
    except (errors.SchemaDrift, errors.Transient):
        return Code.SCHEMA_DRIFT
    is_ours = (
        found.group_id.casefold() == write.own.group_id.casefold()
        and found.user_id.casefold() == write.payload.target_user_id.casefold()
    )
    return Proof() if is_ours else Code.PROVIDER_SCOPE


def read_role_ids(answer: Answer) -> frozenset[str] | None:
    """The roles that a member holds, folded, as the answer lists them; ``None`` when it is no such list."""
    try:
        return frozenset(role_id.casefold() for role_id in decode(answer.body, list[_RoleId]))
    except (errors.SchemaDrift, errors.Transient):
        return None
