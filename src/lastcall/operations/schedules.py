"""When an operation is due. ``due_at`` is the promise to staff; ``ready_at`` beside it is when it is tried
next.

A schedule may name an event. Only an event-relative one follows that event when it moves; the other two keep their
time and are merely stopped with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from lastcall.db.ids import decode_id, encode_id
from lastcall.errors import Conflict, Invalid
from lastcall.protocol.constants import GRACE

FURTHEST = timedelta(days=366)
"""How far ahead a time may lie."""

FURTHEST_OFFSET = timedelta(days=365)
"""How far from its event's start an event-relative time may lie, before or after."""

_SMALLEST_STEP = timedelta(microseconds=1)
"""The database's resolution."""

_MILLISECOND = timedelta(milliseconds=1)

ScheduleKind = Literal["immediate", "fixed", "event_relative"]


@dataclass(frozen=True)
class Immediate:
    """Due at the server's time of the enqueue, set once; a retry of the request gets that same time (ENQ-05)."""

    event_id: UUID | None = None
    kind: ScheduleKind = "immediate"

    def as_asked(self) -> dict[str, Any]:
        """What the requester said, for the digest and the request's row."""
        return {"kind": self.kind, **_event(self.event_id)}


@dataclass(frozen=True)
class Fixed:
    """Due at that time, whatever happens around it."""

    due_at: datetime
    event_id: UUID | None = None
    kind: ScheduleKind = "fixed"

    def as_asked(self) -> dict[str, Any]:
        """What the requester said, for the digest and the request's row."""
        return {"kind": self.kind, "due_at": _instant(self.due_at), **_event(self.event_id)}


@dataclass(frozen=True)
class EventRelative:
    """Due at its event's start plus ``offset`` (whole milliseconds, negative for before), wherever that moves.

    ``reviewed_due_at`` is the time that the person was shown: it has to be true still when they confirm (ENQ-09). It
    is no part of what was asked, so a retry gets its ids although the event moved since.
    """

    event_id: UUID
    offset: timedelta
    reviewed_due_at: datetime
    kind: ScheduleKind = "event_relative"

    @property
    def offset_ms(self) -> int:
        """The offset in milliseconds, as it is stored."""
        return self.offset // _MILLISECOND

    def as_asked(self) -> dict[str, Any]:
        """What the requester said, for the digest and the request's row."""
        return {"kind": self.kind, "offset_ms": self.offset_ms, **_event(self.event_id)}


Schedule = Immediate | Fixed | EventRelative


_OFFSET_MOST = 2**53
"""Any whole number that JSON carries in every language; how far a time may lie is for ``check_form`` to say."""


class _AsAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: ScheduleKind
    due_at: datetime | None = None
    event_id: str | None = None
    offset_ms: Annotated[int, Meta(ge=-_OFFSET_MOST, le=_OFFSET_MOST)] | None = None


def read_schedule(asked: Mapping[str, Any], reviewed_due_at: datetime | None = None) -> Schedule:
    """The schedule that ``as_asked`` told. One that follows an event needs the due time that was reviewed, which is
    told apart from it. Raises ``Invalid`` without, and for what ``as_asked`` tells of no schedule.
    """
    try:
        told = msgspec.convert(dict(asked), _AsAsked)
    except msgspec.ValidationError:
        raise _no_schedule() from None
    event_id = None if told.event_id is None else decode_id(told.event_id)
    match told:
        case _AsAsked(kind="immediate", due_at=None, offset_ms=None):
            return Immediate(event_id)
        case _AsAsked(kind="fixed", due_at=datetime() as due_at, offset_ms=None):
            return Fixed(due_at, event_id)
        case _AsAsked(kind="event_relative", due_at=None, offset_ms=int() as offset) if event_id is not None:
            if reviewed_due_at is None:
                raise Invalid(
                    "review_missing",
                    "The due time was not reviewed.",
                    advice="Review the time that follows from the event, then confirm it.",
                    field="schedule.reviewedDueAt",
                )
            return EventRelative(event_id, offset * _MILLISECOND, reviewed_due_at)
    raise _no_schedule()


def _no_schedule() -> Invalid:
    return Invalid(
        "schedule_invalid",
        "The schedule is in no form that is known.",
        advice="Say now, a fixed time, or an offset from an event.",
        field="schedule",
    )


def check_form(schedule: Schedule) -> None:
    """What can be said of a schedule without a clock or an event. Raises ``Invalid`` with the field."""
    match schedule:
        case Immediate():
            return
        case Fixed(due_at=due_at):
            _require_instant(due_at, "schedule.dueAt")
        case EventRelative(offset=offset, reviewed_due_at=reviewed):
            _require_instant(reviewed, "schedule.reviewedDueAt")
            if abs(offset) > FURTHEST_OFFSET:
                raise Invalid(
                    "offset_too_far",
                    "That is more than 365 days from the event.",
                    advice="Choose a time nearer to the event.",
                    field="schedule.offsetMs",
                )
            if offset % _MILLISECOND:
                raise Invalid(
                    "offset_too_fine",
                    "An offset is a whole number of milliseconds.",
                    advice="Round it.",
                    field="schedule.offsetMs",
                )


def due_time(schedule: Schedule, now: datetime, starts_at: datetime | None = None) -> datetime:
    """The due time by the database's ``now``; ``starts_at`` is the exact start of an event-relative one's event.

    Raises ``Invalid`` outside of the window, and ``Conflict`` when the event moved since the review (ENQ-09).
    """
    check_form(schedule)
    match schedule:
        case Immediate():
            return now
        case Fixed(due_at=due_at):
            return _within(due_at.astimezone(UTC), now, now - GRACE, "schedule.dueAt")
        case EventRelative(offset=offset, reviewed_due_at=reviewed):
            assert starts_at is not None
            due_at = starts_at.astimezone(UTC) + offset
            if due_at != reviewed:
                raise Conflict(
                    "event_moved",
                    "The event moved since you reviewed this.",
                    advice="Review the new time, then confirm again.",
                )
            return _within(due_at, now, now + _SMALLEST_STEP, "schedule.offsetMs")


def late_at(due_at: datetime) -> datetime:
    """The first moment at which an unsent operation is late: the exact boundary is still in time (RCV-04).

    The SQL of the lateness owners has the same.
    """
    return due_at + GRACE + _SMALLEST_STEP


def _within(due_at: datetime, now: datetime, earliest: datetime, field: str) -> datetime:
    if due_at < earliest:
        raise Invalid(
            "time_too_early",
            "That time is more than 15 minutes ago." if earliest < now else "That time has passed.",
            advice="Choose a later time, or now.",
            field=field,
        )
    if due_at > now + FURTHEST:
        raise Invalid(
            "time_too_far",
            "That time is more than 366 days ahead.",
            advice="Choose an earlier time.",
            field=field,
        )
    return due_at


def _require_instant(moment: datetime, field: str) -> None:
    if moment.tzinfo is None:
        raise Invalid("time_without_zone", "The time has no zone.", advice="Give it one.", field=field)
    try:
        moment.astimezone(UTC)
    except OverflowError:
        raise Invalid(
            "time_unknown", "There is no such time.", advice="Check the year.", field=field
        ) from None


def _instant(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _event(event_id: UUID | None) -> dict[str, Any]:
    """Nothing without an event, so that what older versions stored compares equal."""
    return {} if event_id is None else {"event_id": encode_id(event_id)}
