"""The states of an approval, as data. Nothing else changes a row's status.

``docs/explanation/approval-states.md`` is made from this table, and the tests hold the services against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """Where an approval stands. Indexes name these as literals."""

    PENDING = "pending"
    REVISION_REQUESTED = "revision_requested"
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"

    @property
    def label(self) -> str:
        """The words that pages show."""
        return LABELS[self]

    @property
    def is_open(self) -> bool:
        """Whether it can still be decided."""
        return self in OPEN


LABELS: dict[Status, str] = {
    Status.PENDING: "Waiting for a decision",
    Status.REVISION_REQUESTED: "Waiting for a change",
    Status.APPROVED: "Approved",
    Status.REJECTED: "Rejected",
    Status.WITHDRAWN: "Withdrawn",
}
OPEN = frozenset({Status.PENDING, Status.REVISION_REQUESTED})


class Event(StrEnum):
    """What happens to an approval."""

    ASK = "ask"
    RESUBMIT = "resubmit"
    REQUEST_REVISION = "request a revision"
    APPROVE = "approve"
    REJECT = "reject"
    WITHDRAW = "withdraw"


@dataclass(frozen=True)
class Transition:
    """One way from a status to another. ``source`` is None for a row that does not exist yet; ``told`` is what the
    asker is told, by the name of the message.
    """

    source: Status | None
    event: Event
    target: Status
    guard: str
    told: str | None = None


_ASKER = "the asker"
_DECIDER = "whoever may decide approvals, never the asker; the revision they saw is the current one"
_EFFECT = f"{_DECIDER}; the effect agrees, under the approver's own authority; the club is not archived"

TRANSITIONS: tuple[Transition, ...] = (
    Transition(None, Event.ASK, Status.PENDING, "staff of any role, or an agent with the grant to ask"),
    Transition(Status.PENDING, Event.RESUBMIT, Status.PENDING, f"{_ASKER}, from the current revision"),
    Transition(
        Status.REVISION_REQUESTED, Event.RESUBMIT, Status.PENDING, f"{_ASKER}, from the current revision"
    ),
    Transition(
        Status.PENDING,
        Event.REQUEST_REVISION,
        Status.REVISION_REQUESTED,
        f"{_DECIDER}; with words that say what to change",
        "approval.revision_requested",
    ),
    Transition(Status.PENDING, Event.APPROVE, Status.APPROVED, _EFFECT, "approval.approved"),
    Transition(Status.PENDING, Event.REJECT, Status.REJECTED, _DECIDER, "approval.rejected"),
    Transition(Status.REVISION_REQUESTED, Event.APPROVE, Status.APPROVED, _EFFECT, "approval.approved"),
    Transition(Status.REVISION_REQUESTED, Event.REJECT, Status.REJECTED, _DECIDER, "approval.rejected"),
    Transition(Status.PENDING, Event.WITHDRAW, Status.WITHDRAWN, _ASKER),
    Transition(Status.REVISION_REQUESTED, Event.WITHDRAW, Status.WITHDRAWN, _ASKER),
)


def transition(status: Status, event: Event) -> Transition | None:
    """What ``event`` makes of an approval in ``status``; None where it is refused."""
    return next((move for move in TRANSITIONS if (move.source, move.event) == (status, event)), None)


def events_from(status: Status) -> frozenset[Event]:
    """What can happen to an approval in ``status``."""
    return frozenset(move.event for move in TRANSITIONS if move.source is status)
