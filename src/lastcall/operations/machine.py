"""The state machine of an operation, as data. Nothing else changes a row's state.

The diagram in ``docs/explanation/operation-states.md`` is made from this table, and the tests hold the
database's CHECKs, every guarded update and every routine against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where an operation stands. SQL names these as literals: a bound value would lose the partial indexes."""

    PENDING = "pending"
    CLAIMED = "claimed"
    SUBMITTED = "submitted"
    SUCCEEDED = "succeeded"
    REJECTED = "rejected"
    INDETERMINATE = "indeterminate"
    CANCELLED = "cancelled"
    MISSED = "missed"

    @property
    def label(self) -> str:
        """The word that pages show."""
        return LABELS[self]

    @property
    def is_terminal(self) -> bool:
        """Nothing overwrites a terminal row (WRK-10)."""
        return self in TERMINAL


LABELS: dict[State, str] = {
    State.PENDING: "Pending",
    State.CLAIMED: "Preparing",
    State.SUBMITTED: "Submitted",
    State.SUCCEEDED: "Completed",
    State.REJECTED: "Failed",
    State.INDETERMINATE: "Outcome unknown",
    State.CANCELLED: "Cancelled",
    State.MISSED: "Missed",
}

UNSENT = frozenset({State.PENDING, State.CLAIMED})
"""The provider cannot have heard of these: they may be cancelled, rejected or missed."""

TERMINAL = frozenset({State.SUCCEEDED, State.REJECTED, State.INDETERMINATE, State.CANCELLED, State.MISSED})


class Event(StrEnum):
    """What happens to an operation."""

    ENQUEUE = "enqueue"
    EDIT = "edit"
    CLAIM = "claim"
    AUTHORIZE = "authorize"
    AUTHORIZE_REFUSED = "authorize refused"
    REJECT = "reject"
    DEFER = "defer"
    DEFER_EXHAUSTED = "third transient failure"
    DEFER_BEYOND_GRACE = "defer beyond the grace"
    CLAIM_ENDED = "claim ended"
    EVENT_MOVED = "event moved"
    COMPLETE = "complete"
    SUBMISSION_EXPIRED = "submission expired"
    CANCEL = "cancel"
    LATE = "late"
    BASIS_GONE = "epoch, event, dependency or feature gone"


@dataclass(frozen=True)
class Transition:
    """One way from a state to another. ``source`` is None for a row that does not exist yet."""

    source: State | None
    event: Event
    targets: frozenset[State]
    guard: str


def _move(source: State | None, event: Event, *targets: State, guard: str) -> Transition:
    return Transition(source, event, frozenset(targets), guard)


TRANSITIONS: tuple[Transition, ...] = (
    _move(
        None,
        Event.ENQUEUE,
        State.PENDING,
        guard="permission for each payload, request id new, connection active or degraded; rules of kind, time, event, "
        "creation",
    ),
    _move(
        State.PENDING,
        Event.EDIT,
        State.PENDING,
        guard="revision seen, permission for the old and the new payload, epoch current, not stopped by event or "
        "creation; revision + 1",
    ),
    _move(
        State.PENDING,
        Event.CLAIM,
        State.CLAIMED,
        guard="lease and token current, key current, switches off, epoch current, ready, in time; what event and "
        "creation say",
    ),
    _move(
        State.CLAIMED,
        Event.AUTHORIZE,
        State.SUBMITTED,
        guard="that claim, not expired; event, creation, authority, feature, grants, target, roles, friendship; "
        "evidence at most 60 s old",
    ),
    _move(
        State.CLAIMED,
        Event.AUTHORIZE_REFUSED,
        State.REJECTED,
        State.CANCELLED,
        State.MISSED,
        State.PENDING,
        guard="that claim, not expired; the reason's own code decides the state",
    ),
    _move(State.CLAIMED, Event.REJECT, State.REJECTED, guard="that claim, not expired; a definite failure"),
    _move(
        State.CLAIMED,
        Event.DEFER,
        State.PENDING,
        guard="that claim, not expired; the delay fits the grace; at most two transient failures",
    ),
    _move(
        State.CLAIMED,
        Event.DEFER_EXHAUSTED,
        State.REJECTED,
        guard="that claim, not expired; two transient failures before this one",
    ),
    _move(
        State.CLAIMED,
        Event.DEFER_BEYOND_GRACE,
        State.MISSED,
        guard="that claim, not expired; the full delay ends after the grace",
    ),
    _move(
        State.CLAIMED,
        Event.CLAIM_ENDED,
        State.PENDING,
        guard="the same nonce; expired, or its worker said hello anew",
    ),
    _move(
        State.PENDING,
        Event.EVENT_MOVED,
        State.PENDING,
        guard="due at another time than its event's start and offset; never ready before the provider's backoff ends",
    ),
    _move(
        State.CLAIMED,
        Event.EVENT_MOVED,
        State.PENDING,
        guard="due at another time than its event's start and offset; the nonce is dropped",
    ),
    _move(
        State.SUBMITTED,
        Event.COMPLETE,
        State.SUCCEEDED,
        State.REJECTED,
        State.INDETERMINATE,
        guard="exactly that claim's connection, epoch, account, worker, token and nonce; key current",
    ),
    _move(
        State.SUBMITTED,
        Event.SUBMISSION_EXPIRED,
        State.INDETERMINATE,
        guard="the same nonce, the same expiry, and it has passed",
    ),
    _move(State.PENDING, Event.CANCEL, State.CANCELLED, guard="revision seen, permission"),
    _move(State.CLAIMED, Event.CANCEL, State.CANCELLED, guard="revision seen, permission"),
    _move(
        State.PENDING,
        Event.LATE,
        State.MISSED,
        guard="now is later than due + 15 minutes; event rechecked first",
    ),
    _move(
        State.CLAIMED,
        Event.LATE,
        State.MISSED,
        guard="now is later than due + 15 minutes; event rechecked first",
    ),
    _move(
        State.PENDING,
        Event.BASIS_GONE,
        State.REJECTED,
        State.CANCELLED,
        guard="what the review relied on is gone; its own code",
    ),
    _move(
        State.CLAIMED,
        Event.BASIS_GONE,
        State.REJECTED,
        State.CANCELLED,
        guard="what the review relied on is gone; its own code",
    ),
)


def moves() -> frozenset[tuple[State | None, State]]:
    """Every pair of states the machine allows, whatever the event."""
    return frozenset((move.source, target) for move in TRANSITIONS for target in move.targets)


REFUSALS: dict[str, State | None] = {
    # The claim is not this caller's any more: the row is left as it is.
    "claim_unavailable": None,
    "stale_key": None,
    "collector_disabled": None,
    "stale_lease": None,
    # Stopped for now, and nothing about the work is wrong: it waits again, and is missed if that takes too
    # long.
    "connection_paused": State.PENDING,
    # What governs it changed: stopped for good, or due at another time.
    "event_deleted": State.CANCELLED,
    "event_cancelled": State.CANCELLED,
    "event_time_tba": State.CANCELLED,
    "event_rescheduled": State.PENDING,
    "late_window_elapsed": State.MISSED,
    "connection_changed": State.REJECTED,
    "connection_inactive": State.REJECTED,
    "club_inactive": State.REJECTED,
    "staff_permission": State.REJECTED,
    "feature_disabled": State.REJECTED,
    "provider_authority": State.REJECTED,
    "membership": State.REJECTED,
    "provider_permissions": State.REJECTED,
    "protected_target": State.REJECTED,
    "role_scope": State.REJECTED,
    "role_not_assignable": State.REJECTED,
    "invalid_instance_options": State.REJECTED,
    "recipient_eligibility": State.REJECTED,
}
"""Why authorize may refuse, and where each reason sends a claimed row (None: it stays). In the order of
judging, but for the grouping; ``sql/`` writes the same states, and a test compares them.
"""
