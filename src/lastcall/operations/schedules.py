"""When an operation is due. ``due_at`` is the promise to staff; ``ready_at`` beside it is when it is tried
next.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from lastcall.errors import Invalid
from lastcall.protocol.constants import GRACE

FURTHEST = timedelta(days=366)
"""How far ahead a time may lie."""

_SMALLEST_STEP = timedelta(microseconds=1)
"""The database's resolution."""

ScheduleKind = Literal["immediate", "fixed"]


@dataclass(frozen=True)
class Immediate:
    """Due at the server's time of the enqueue, set once; a retry of the request gets that same time (ENQ-05)."""

    kind: ScheduleKind = "immediate"

    def as_asked(self) -> dict[str, Any]:
        """What the requester said, for the digest and the request's row."""
        return {"kind": self.kind}


@dataclass(frozen=True)
class Fixed:
    """Due at that time, whatever happens around it."""

    due_at: datetime
    kind: ScheduleKind = "fixed"

    def as_asked(self) -> dict[str, Any]:
        return {"kind": self.kind, "due_at": self.due_at.astimezone(UTC).isoformat(timespec="microseconds")}


Schedule = Immediate | Fixed


def due_time(schedule: Schedule, now: datetime) -> datetime:
    """The due time by the database's ``now``. Raises ``Invalid`` outside of the window."""
    match schedule:
        case Immediate():
            return now
        case Fixed(due_at=due_at):
            if due_at.tzinfo is None:
                raise Invalid("time_without_zone", "The time has no zone.", field="schedule.dueAt")
            if due_at < now - GRACE:
                raise Invalid(
                    "time_too_early",
                    "That time is more than 15 minutes ago.",
                    advice="Choose a later time, or now.",
                    field="schedule.dueAt",
                )
            if due_at > now + FURTHEST:
                raise Invalid(
                    "time_too_far",
                    "That time is more than 366 days ahead.",
                    advice="Choose an earlier time.",
                    field="schedule.dueAt",
                )
            return due_at.astimezone(UTC)


def late_at(due_at: datetime) -> datetime:
    """The first moment at which an unsent operation is late: the exact boundary is still in time (RCV-04).

    The SQL of the lateness owners has the same.
    """
    return due_at + GRACE + _SMALLEST_STEP
