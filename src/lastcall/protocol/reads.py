"""Provider reads that somebody at a screen waits for: one claimed read, its page of items, or why there is none."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from lastcall.protocol.messages import (
    Call,
    CodeText,
    Count,
    Id,
    LeaseRef,
    Message,
    Milliseconds,
    Nonce,
    OwnMemberEvidence,
    Payload,
)

Item = Annotated[dict[Annotated[str, Meta(max_length=100)], Any], Meta(max_length=30)]
Items = Annotated[tuple[Item, ...], Meta(max_length=100)]
"""One page; a kind says which fields its items have, and both sides hold them to it."""
Offset = Annotated[int, Meta(ge=0, le=10_000_100)]


class ReadRef(LeaseRef, frozen=True, kw_only=True):
    """Exactly one claim of one read."""

    read_id: Id
    nonce: Nonce


class ReadClaim(Call, frozen=True, kw_only=True):
    lease: LeaseRef


class ClaimedRead(Message, frozen=True, kw_only=True):
    """``life_ms``: how long anybody waits for it, counted from the answer."""

    read_id: Id
    nonce: Nonce
    kind: CodeText
    params: Payload
    life_ms: Milliseconds


class ReadClaimAnswer(Message, frozen=True, kw_only=True):
    """``read`` is absent when nobody waits for anything of this connection."""

    read: ClaimedRead | None = None


class ReadComplete(Call, frozen=True, kw_only=True):
    """The page, with the evidence of the account's membership that it was read under and the age of the older of both.

    ``next_offset`` is absent on the last page. What VRChat said about timing or status has no place here (COL-07).
    """

    read: ReadRef
    evidence: OwnMemberEvidence
    age_ms: Milliseconds
    items: Items = ()
    next_offset: Offset | None = None
    total: Count | None = None


class ReadFailed(Call, frozen=True, kw_only=True):
    read: ReadRef
    code: CodeText


class ReadRecorded(Message, frozen=True, kw_only=True):
    """Whether it was kept; not kept is final too (another worker has it, or nobody may see it any more)."""

    is_recorded: bool
