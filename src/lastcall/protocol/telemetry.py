"""Aggregates of a group that a club's analytics are made of. Nothing here names a person."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lastcall.protocol.messages import (
    Call,
    Count,
    Id,
    Instant,
    LeaseRef,
    Message,
    Milliseconds,
    Nonce,
    ProviderId,
)
from lastcall.protocol.reads import Offset

Location = Annotated[str, Meta(min_length=1, max_length=600)]


class InstanceSeen(Message, frozen=True, kw_only=True):
    """An open instance of the group. ``location`` is without whatever named a person in it."""

    location: Location
    world_id: ProviderId
    population: Count


class Sample(Call, frozen=True, kw_only=True):
    """One aggregate read. ``poll_id`` names it: the same one sent twice is kept once."""

    lease: LeaseRef
    poll_id: Nonce
    age_ms: Milliseconds
    member_count: Count | None = None
    instances: Annotated[tuple[InstanceSeen, ...], Meta(max_length=200)] = ()


class Kept(Message, frozen=True, kw_only=True):
    """Answer to a sample and to a page: whether it was kept now; ``false`` for one that is there already."""

    is_recorded: bool


class AuditClaim(Call, frozen=True, kw_only=True):
    """Asks which page of the group's audit log comes next."""

    lease: LeaseRef


class AuditWindow(Message, frozen=True, kw_only=True):
    """A stretch of the log, oldest first, from ``starts_at`` up to ``ends_at``; ``offset`` counts raw rows."""

    scan_id: Id
    starts_at: Instant
    ends_at: Instant
    offset: Offset


class AuditClaimAnswer(Message, frozen=True, kw_only=True):
    """``window`` is absent when the log is read up to date."""

    window: AuditWindow | None = None


class AuditEntry(Message, frozen=True, kw_only=True):
    """A line of the log without the people in it."""

    entry_id: ProviderId
    at: Instant
    event: Annotated[str, Meta(pattern=r"^[a-z0-9_.]{1,100}\Z")]


class AuditPage(Call, frozen=True, kw_only=True):
    """The page at ``offset``. ``raw_count``: the rows VRChat gave, those left out too; the offset moves on by it."""

    lease: LeaseRef
    scan_id: Id
    offset: Offset
    raw_count: Annotated[int, Meta(ge=0, le=100)]
    is_last: bool
    entries: Annotated[tuple[AuditEntry, ...], Meta(max_length=100)] = ()
