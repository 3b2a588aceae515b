"""When an event is: at an exact time, on a date, or not known yet; and from which moment on it is over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import TypeAlias

from lastcall.errors import Invalid

DATE_ENDS_AFTER = timedelta(hours=36)
"""After its midnight in UTC a date has ended everywhere."""
USUAL_LENGTH = timedelta(hours=6)
"""How long an event of unknown end is taken to last."""
LONGEST = timedelta(days=31)
"""From start to end at most: what is upcoming is found among what starts no longer ago than that."""
EARLIEST_DOORS = timedelta(days=1)
"""Doors open this long before the start at most."""
FIRST_YEAR, LAST_YEAR = 2000, 2099
UNDATED = datetime(9999, 1, 1, tzinfo=UTC)
"""Where an event without any date sorts: behind all others, and never over."""


class ScheduleKind(StrEnum):
    """How much is known of an event's time."""

    TIMED = "timed"
    DATE_ONLY = "date_only"
    TBA = "tba"


@dataclass(frozen=True)
class Timed:
    """An exact start; where known an end after it, and doors that open no later than it. All aware."""

    starts_at: datetime
    ends_at: datetime | None = None
    doors_at: datetime | None = None


@dataclass(frozen=True)
class DateOnly:
    """A date and no hour. It gives no start to reckon from, in no zone."""

    date: date


@dataclass(frozen=True)
class TimeTba:
    """The time is to be announced; the date may be known."""

    date: date | None = None


EventTime: TypeAlias = Timed | DateOnly | TimeTba


@dataclass(frozen=True)
class Columns:
    """An event's time as its row holds it. ``sort_at`` orders lists; it is never a start. ``over_at`` is when the
    event counts as past."""

    schedule_kind: ScheduleKind
    starts_at: datetime | None
    ends_at: datetime | None
    doors_at: datetime | None
    event_date: date | None
    sort_at: datetime
    over_at: datetime


def columns_of(when: EventTime) -> Columns:
    """How a valid time is stored."""
    match when:
        case Timed(starts_at=start, ends_at=end, doors_at=doors):
            return Columns(ScheduleKind.TIMED, start, end, doors, None, start, end or start + USUAL_LENGTH)
        case DateOnly(date=day):
            return _dated(ScheduleKind.DATE_ONLY, day)
        case TimeTba(date=day):
            if day is None:
                return Columns(ScheduleKind.TBA, None, None, None, None, UNDATED, UNDATED)
            return _dated(ScheduleKind.TBA, day)


def _dated(kind: ScheduleKind, day: date) -> Columns:
    midnight = datetime.combine(day, time(), UTC)
    return Columns(kind, None, None, None, day, midnight, midnight + DATE_ENDS_AFTER)


def time_of(
    schedule_kind: str,
    starts_at: datetime | None,
    ends_at: datetime | None,
    doors_at: datetime | None,
    event_date: date | None,
) -> EventTime:
    """The time that a row holds."""
    match ScheduleKind(schedule_kind):
        case ScheduleKind.TIMED:
            assert starts_at is not None
            return Timed(starts_at, ends_at, doors_at)
        case ScheduleKind.DATE_ONLY:
            assert event_date is not None
            return DateOnly(event_date)
        case ScheduleKind.TBA:
            return TimeTba(event_date)


def valid_time(when: EventTime) -> EventTime:
    """The time itself, instants in UTC. Raises ``Invalid`` with the field (``starts_at``, ``ends_at``, ``doors_at``,
    ``date``)."""
    match when:
        case Timed():
            return _valid_timed(when)
        case DateOnly(date=day):
            _check_year(day, "date")
        case TimeTba(date=day):
            if day is not None:
                _check_year(day, "date")
    return when


def _valid_timed(when: Timed) -> Timed:
    start, end, doors = (
        None if at is None else _aware(at, field)
        for at, field in (
            (when.starts_at, "starts_at"),
            (when.ends_at, "ends_at"),
            (when.doors_at, "doors_at"),
        )
    )
    assert start is not None
    _check_year(start.date(), "starts_at")
    if end is not None and not start < end <= start + LONGEST:
        raise Invalid(
            "event_end_wrong",
            "The event does not end after it starts."
            if end <= start
            else f"The event lasts longer than {LONGEST.days} days.",
            advice="Set an end after the start, or none.",
            field="ends_at",
        )
    if doors is not None and not start - EARLIEST_DOORS <= doors <= start:
        raise Invalid(
            "event_doors_wrong",
            "The doors open after the start."
            if doors > start
            else "The doors open more than a day before the start.",
            advice="Set the doors to the start or up to a day before it, or leave them out.",
            field="doors_at",
        )
    return Timed(start, end, doors)


def _aware(at: datetime, field: str) -> datetime:
    if at.utcoffset() is None:
        raise Invalid(
            "time_without_zone",
            "The time does not say in which zone it is.",
            advice="Give an offset, like 2026-11-30T20:00:00+01:00.",
            field=field,
        )
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise _year_wrong(field) from None


def _check_year(day: date, field: str) -> None:
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise _year_wrong(field)


def _year_wrong(field: str) -> Invalid:
    return Invalid(
        "event_year_wrong",
        f"An event lies in the years {FIRST_YEAR} to {LAST_YEAR}.",
        advice="Check the year.",
        field=field,
    )
