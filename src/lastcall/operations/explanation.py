"""What to say of one operation: where it stands, why, and what comes next and when.

API, MCP tools and the command line say the same, because they all ask here.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lastcall.operations.machine import State
from lastcall.operations.schedules import late_at
from lastcall.operations.views import OperationView


@dataclass(frozen=True)
class Explanation:
    """``why`` is the reason in words, where there is one. ``next`` is what Lastcall does by itself or a person can do;
    ``next_at`` when that is at the latest, where it is known.
    """

    why: str | None
    next: str
    next_at: datetime | None


_CLAIMED = (
    "A collector asks VRChat whether it may be sent. If nothing comes of that until then, it waits again."
)
_SUBMITTED = (
    "It was sent, and VRChat's answer is awaited. Without one until then it ends as “Outcome unknown”, and is never "
    "sent again."
)


def explain(row: OperationView, now: datetime) -> Explanation:
    """By the database's ``now``."""
    reason = row.reason
    why = None if reason is None else reason.label
    advice = "" if reason is None else reason.advice
    match row.state:
        case State.PENDING:
            text, at = _pending(row, now)
        case State.CLAIMED:
            text, at = _CLAIMED, row.window_ends_at
        case State.SUBMITTED:
            text, at = _SUBMITTED, row.window_ends_at
        case State.SUCCEEDED:
            text, at = "It is done; nothing follows.", None
        case State.INDETERMINATE:
            text, at = (
                f"It may have happened. {advice or 'Look in VRChat.'} Then record what you found.",
                None,
            )
        case _:
            text, at = advice or "It is over; nothing follows.", None
    return Explanation(why, text, at)


def _pending(row: OperationView, now: datetime) -> tuple[str, datetime | None]:
    if row.ready_at is None:
        return "It waits until the action that it depends on has ended.", late_at(row.due_at)
    if row.ready_at > now and row.ready_at > row.due_at:
        return "It could not be sent yet and is tried again then.", row.ready_at
    if row.ready_at > now:
        return "It is sent then, if whoever queued it may still do so.", row.ready_at
    return "It waits for its turn at the collector, and is missed if that does not come.", late_at(row.due_at)
