"""The worker protocol's messages: ``POST /worker/v1/<call>`` with one JSON object each way.

Every call carries ``Authorization: Bearer <worker key>``, ``Lastcall-Account`` and ``Lastcall-Protocol``.
Names are camelCase on the wire and unknown ones are refused, so that a field one side does not know never
passes in silence.

- Identities of time (an epoch) travel as ISO 8601 in UTC with microseconds and are compared for equality
  only.
- Everything the other side waits for travels as a *duration in milliseconds*, because the clocks differ.
- Ids are 26 lower-case Crockford characters, as everywhere outside the database.

A refusal is a ``Problem``: 401 unknown key or identity, 409 stale (lease, claim, journal), 422 malformed,
423 the account is disabled (never for ``complete``), 503 shutting down.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from lastcall.protocol.constants import DUE_MOST, PASS_LIFE, RESERVATION_MOST, SUBMISSIONS_MOST
from lastcall.protocol.outcomes import Outcome

Id = Annotated[str, Meta(pattern=r"^[0-7][0-9a-hjkmnp-tv-z]{25}\Z")]
Nonce = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{16,64}\Z")]
Instant = Annotated[datetime, Meta(tz=True)]
Milliseconds = Annotated[int, Meta(ge=0, le=86_400_000)]
Delay = Annotated[float, Meta(ge=0)]
"""Milliseconds; finite and non-negative, however large (RCV-09). Whoever reads it checks that it is finite."""
Token = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=1_000_000)]
CodeText = Annotated[str, Meta(pattern=r"^[a-z0-9_]{1,100}\Z")]
Short = Annotated[str, Meta(min_length=1, max_length=200)]
ReleaseName = Annotated[str, Meta(pattern=r"^[!-~]{1,200}\Z")]
Text = Annotated[str, Meta(max_length=600)]
ProviderId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,100}\Z")]
ProviderIds = Annotated[tuple[ProviderId, ...], Meta(max_length=200)]
Grants = Annotated[tuple[Annotated[str, Meta(max_length=100)], ...], Meta(max_length=200)]
Features = Annotated[tuple[CodeText, ...], Meta(max_length=20)]
Result = Annotated[dict[ProviderId, Text], Meta(max_length=10)]
Payload = Annotated[dict[Annotated[str, Meta(max_length=100)], Any], Meta(max_length=30)]


class Message(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of all messages."""


class Call(Message, frozen=True, kw_only=True):
    """What every call says about its sender: which process it is, and as whom it is signed in."""

    worker_id: Id
    vrchat_user_id: ProviderId


class LeaseRef(Message, frozen=True, kw_only=True):
    """The right to one connection, as the lease call gave it."""

    club_id: Id
    connection_id: Id
    epoch: Instant
    fencing_token: Token


class ClaimRef(LeaseRef, frozen=True, kw_only=True):
    """Exactly one claim of one operation."""

    operation_id: Id
    nonce: Nonce


# --- hello: once at the start of a process, for each account


class KnownSubmission(Message, frozen=True, kw_only=True):
    """A submission whose intent is in the journal. ``is_answered``: its answer is there too and will be reported."""

    club_id: Id
    connection_id: Id
    operation_id: Id
    nonce: Nonce
    is_answered: bool


class Hello(Call, frozen=True, kw_only=True):
    """Makes this process known, before it leases anything.

    The server gives the worker's old leases a higher token and returns its claimed rows to pending. For its
    open submissions that are not expired: listed here, nothing is done (the collector reports each by
    ``complete``); not listed, with the same ``journal_id`` as their claim's and ``is_journal_intact``:
    ``submission_not_attempted``; another journal says nothing. A listed submission that the server does not
    know freezes that connection.

    ``joined_on``: the day on which VRChat says this account was made; a young one writes less.
    ``submissions`` holds every one not yet reported, every one of the last ten minutes, and of each connection the
    newest, as many as there is room for.
    """

    journal_id: Id
    is_journal_intact: bool
    release: ReleaseName
    joined_on: date | None = None
    submissions: Annotated[tuple[KnownSubmission, ...], Meta(max_length=SUBMISSIONS_MOST)] = ()


class HelloAnswer(Message, frozen=True, kw_only=True):
    account_state: CodeText
    requests_per_minute: Count
    claims_returned: Count = 0
    not_attempted: Annotated[tuple[Id, ...], Meta(max_length=SUBMISSIONS_MOST)] = ()
    frozen_connections: Annotated[tuple[Id, ...], Meta(max_length=SUBMISSIONS_MOST)] = ()


# --- wait: a long poll, answered when a connection of the account becomes due


class Wait(Call, frozen=True, kw_only=True):
    """Held for up to ``WAIT_LIFE``; one waiter a worker id, a newer one replaces the older.

    ``room``: how many connections the collector can begin with now. More are not named to it: what is named and not
    begun is named again after a growing pause only.
    """

    room: Annotated[int, Meta(ge=1, le=DUE_MOST)] = DUE_MOST


class DueConnection(Message, frozen=True, kw_only=True):
    club_id: Id
    connection_id: Id


class WaitAnswer(Message, frozen=True, kw_only=True):
    """Empty: nothing became due, ask again."""

    due: Annotated[tuple[DueConnection, ...], Meta(max_length=DUE_MOST)] = ()


# --- lease, renew, release


class Lease(Call, frozen=True, kw_only=True):
    club_id: Id
    connection_id: Id


class LeaseAnswer(Message, frozen=True, kw_only=True):
    """``requests_per_minute`` is the lowest of connection, account and fleet; the account's own is beside it.

    Without ``features`` the connection has its analytics alone (COL-04).
    """

    epoch: Instant
    fencing_token: Token
    life_ms: Milliseconds
    state: CodeText
    group_id: ProviderId
    features: Features | None = None
    requests_per_minute: Count
    account_requests_per_minute: Count


class Renew(Call, frozen=True, kw_only=True):
    lease: LeaseRef


class RenewAnswer(Message, frozen=True, kw_only=True):
    life_ms: Milliseconds
    requests_per_minute: Count
    account_requests_per_minute: Count


class Release(Call, frozen=True, kw_only=True):
    lease: LeaseRef


class Done(Message, frozen=True, kw_only=True):
    """Nothing to say beyond that it is done."""


# --- allowance


class Allowance(Call, frozen=True, kw_only=True):
    """Reserve provider requests. Without a lease they are charged to the account alone (the identity read).

    ``is_write``: one of them changes something at VRChat, and counts against the account's writes of the day.
    """

    amount: Annotated[int, Meta(ge=1, le=RESERVATION_MOST)]
    lease: LeaseRef | None = None
    is_write: bool = False


class AllowanceAnswer(Message, frozen=True, kw_only=True):
    """``window_ms``: how long a granted reservation may be used; ``retry_ms``: when to ask again after a
    denial.

    ``limit`` is the lowest limit that was charged; below ``amount`` no wait will ever help. ``is_daily_cap``: the
    denial is that of the account's writes of the day.
    """

    is_granted: bool
    limit: Count
    window_ms: Milliseconds = 0
    retry_ms: Milliseconds = 0
    is_daily_cap: bool = False


# --- claim, authorize, complete, reject, defer


class Claim(Call, frozen=True, kw_only=True):
    lease: LeaseRef
    journal_id: Id


class ClaimedOperation(Message, frozen=True, kw_only=True):
    """``execute_before_ms``: what is left of the grace; ``life_ms``: of the claim, both counted from the answer."""

    operation_id: Id
    nonce: Nonce
    kind: CodeText
    payload: Payload
    epoch: Instant
    execute_before_ms: Annotated[int, Meta(ge=0, le=2_000_000)]
    life_ms: Annotated[int, Meta(ge=0, le=int(PASS_LIFE.total_seconds() * 1000))]


class ClaimAnswer(Message, frozen=True, kw_only=True):
    """``operation`` is absent when nothing of this connection is due now."""

    operation: ClaimedOperation | None = None


class RoleSeen(Message, frozen=True, kw_only=True):
    """A role of the group as it was just read."""

    id: ProviderId
    name: Text


class OwnMemberEvidence(Message, frozen=True, kw_only=True):
    """What VRChat says of the account's own membership, with the age of that read when this was sent."""

    age_ms: Milliseconds
    group_id: ProviderId
    owner_id: ProviderId
    user_id: ProviderId
    member_status: CodeText
    permissions: Grants
    role_ids: ProviderIds
    roles: Annotated[tuple[RoleSeen, ...], Meta(max_length=200)]
    privacy: CodeText


class FriendshipSeen(Message, frozen=True, kw_only=True):
    """Whether that person is a friend of the account, with the age of that read when this was sent."""

    target_user_id: ProviderId
    is_friend: bool
    age_ms: Milliseconds


class Authorize(Call, frozen=True, kw_only=True):
    """Asks for the last word before the one write. ``kind`` is the one that the claim gave.

    ``friendship`` is there for the kinds whose target must be a friend.
    """

    claim: ClaimRef
    kind: CodeText
    evidence: OwnMemberEvidence
    friendship: FriendshipSeen | None = None


class AuthorizeAnswer(Message, frozen=True, kw_only=True):
    """Refused: ``code`` says why and ``state`` where the row went. An answer that is lost settles nothing (WRK-14)."""

    is_authorized: bool
    code: CodeText | None = None
    state: CodeText | None = None


class Complete(Call, frozen=True, kw_only=True):
    """The outcome of exactly that submission."""

    claim: ClaimRef
    outcome: Outcome
    code: CodeText | None = None
    result: Result = {}


class Reject(Call, frozen=True, kw_only=True):
    """A definite failure before the submission."""

    claim: ClaimRef
    code: CodeText


class Defer(Call, frozen=True, kw_only=True):
    """A transient failure before the submission. ``delay_ms`` is never shortened by the server (RCV-09)."""

    claim: ClaimRef
    code: CodeText
    delay_ms: Delay


class Recorded(Message, frozen=True, kw_only=True):
    """Answer to complete, reject and defer: whether it was written, and the row's state after it.

    Not recorded is final too: a terminal row is never overwritten (WRK-10). ``is_kept_as_evidence``: a late
    result that was laid beside the row.
    """

    is_recorded: bool
    state: CodeText | None = None
    code: CodeText | None = None
    is_kept_as_evidence: bool = False


# --- failure


class Failure(Call, frozen=True, kw_only=True):
    """A fault of the account (no lease) or of one connection. ``retry_after_ms`` is the provider's own, in full.

    ``telemetry_only``: only the aggregates failed; the server judges that itself (COL-05).
    """

    code: CodeText
    lease: LeaseRef | None = None
    retry_after_ms: Delay | None = None
    telemetry_only: bool = False


# --- refusals


class Problem(Struct, frozen=True, kw_only=True, rename="camel"):
    """An RFC 9457 problem document as both sides use it; members unknown here are passed over."""

    status: int
    title: str = ""
    detail: str = ""
    code: str = ""
    field: str | None = None
    advice: str = ""
