"""When an action is due, as a person says it: now, at a time, or so many minutes before or after an event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from lastcall.clubs.policy import Standing
from lastcall.db.ids import decode_id, encode_id
from lastcall.db.transaction import Reader
from lastcall.errors import Invalid, LastcallError, NotFound
from lastcall.events.queries import EventStatus, EventView, event
from lastcall.local_time import ClockChange, LocalTime, in_zone, shown_in, zone_names
from lastcall.operations.schedules import EventRelative, Fixed, Immediate, Schedule, due_time
from lastcall.protocol.constants import GRACE
from lastcall.web.times import MINUTE

FIELD_MOST = 200
MINUTES_MOST = 525_600
"""A year, which is as far as an action may lie from its event."""
BEFORE, AFTER = "before", "after"
USUAL_MINUTES = "30"
"""How long before its event an action is due when nobody said otherwise."""


@dataclass(frozen=True)
class When:
    """The part of a form about the time. ``zone`` is the one that ``at`` was typed in, empty on a fresh form, which
    takes the viewer's; ``second``: of a time that comes twice the later one."""

    when: str = "now"
    at: str = ""
    zone: str = ""
    second: bool = False
    event: str = ""
    minutes: str = USUAL_MINUTES
    side: str = BEFORE

    def as_fields(self) -> dict[str, str]:
        """What a review carries on."""
        return {
            "when": self.when,
            "at": self.at,
            "zone": self.zone,
            "second": "yes" if self.second else "",
            "event": self.event,
            "minutes": self.minutes,
            "side": self.side,
        }


@dataclass(frozen=True)
class Timing:
    """A time that was read. Without a ``schedule`` there are ``problems``. ``due_at`` is None for now; ``change`` says
    what the zone's clock does at that time."""

    when: When
    schedule: Schedule | None = None
    due_at: datetime | None = None
    event: EventView | None = None
    change: ClockChange | None = None
    problems: Mapping[str, str] = field(default_factory=dict)

    def at(self, due_at: datetime) -> Schedule:
        """The same schedule with another due time: what follows an event goes on following it."""
        match self.schedule:
            case EventRelative(event_id=event_id, offset=offset, reviewed_due_at=reviewed):
                return EventRelative(event_id, offset + (due_at - reviewed), due_at)
            case Fixed() | Immediate() as known:
                return Fixed(due_at, known.event_id)
        raise AssertionError("Only a time without problems is moved.")


def read_when(form: Mapping[str, str]) -> When:
    def text(name: str) -> str:
        return form.get(name, "")[:FIELD_MOST].strip()

    when = text("when")
    return When(
        when if when in ("at", "event") else "now",
        text("at"),
        text("zone"),
        text("second") == "yes",
        text("event"),
        text("minutes") or USUAL_MINUTES,
        AFTER if text("side") == AFTER else BEFORE,
    )


def when_of(
    schedule_kind: str, due_at: datetime, event_id: UUID | None, offset: timedelta | None, zone: ZoneInfo
) -> When:
    """The form that says when a stored action is due."""
    shown = shown_in(due_at, zone.key)
    minutes = 0 if offset is None else round(offset / MINUTE)
    return When(
        {"immediate": "now", "fixed": "at"}.get(schedule_kind, "event"),
        local_text(shown.local),
        zone.key,
        shown.change is ClockChange.SECOND,
        "" if event_id is None else encode_id(event_id),
        USUAL_MINUTES if offset is None else str(abs(minutes)),
        AFTER if minutes > 0 else BEFORE,
    )


def unchanged(
    timing: Timing, stored: When, due_at: datetime, offset: timedelta | None, *, is_reviewed: bool
) -> Timing:
    """The very time of a stored action, where its form says still what it was opened with: a form shows whole seconds
    and whole minutes, and who changes the recipient moves nothing. ``is_reviewed``: the review has shown it already.
    """
    form = timing.when
    match timing.schedule:
        case Fixed(event_id=event_id) if stored.when == "at":
            if (form.at, form.zone, form.second) == (stored.at, stored.zone, stored.second):
                return replace(timing, schedule=Fixed(due_at, event_id), due_at=due_at)
        case EventRelative(event_id, rounded, reviewed) if stored.when == "event" and offset is not None:
            if (form.event, form.minutes, form.side) == (stored.event, stored.minutes, stored.side):
                exact = reviewed if is_reviewed else reviewed - rounded + offset
                return replace(timing, schedule=EventRelative(event_id, offset, exact), due_at=exact)
    return timing


def local_text(local: datetime) -> str:
    """A ``datetime-local`` field: seconds only where there are some."""
    return f"{local:%Y-%m-%dT%H:%M:%S}" if local.second else f"{local:%Y-%m-%dT%H:%M}"


async def read_timing(
    tx: Reader,
    standing: Standing,
    club_id: UUID,
    when: When,
    now: datetime,
    *,
    reviewed: str = "",
    tolerance: timedelta = MINUTE,
) -> Timing:
    """The schedule that a form asks for. ``reviewed`` is the due time that a review showed, without which it is made
    now; ``tolerance`` is how long ago a fixed time may lie.
    """
    linked, problem = await _event(tx, standing, club_id, when)
    made = Timing(when, event=linked)
    if problem:
        return replace(made, problems={"event": problem})
    event_id = None if linked is None else linked.id
    try:
        match when.when:
            case "now":
                return replace(made, schedule=Immediate(event_id))
            case "at":
                return _at(made, event_id, now, tolerance)
            case _:
                return _relative(made, now, reviewed)
    except _Problem as wrong:
        return replace(made, problems={wrong.field: wrong.sentence})


async def confirmed_timing(
    tx: Reader, standing: Standing, club_id: UUID, when: When, reviewed: str
) -> Timing:
    """The schedule that a review showed, ``reviewed`` being its due time, whatever has become of its event since, and
    however late it is. That is for the service to judge, after it has seen whether the same was asked before: whoever
    confirms again, because the first answer was lost, must not be sent to make a second request (ENQ-05, ENQ-09).
    """
    linked, _ = await _event(tx, standing, club_id, when)
    made = Timing(when, event=linked)
    event_id = decode_id(when.event) if when.event else None
    try:
        if when.when == "at":
            found = _local_time(when)
            return replace(
                made, schedule=Fixed(found.instant, event_id), due_at=found.instant, change=found.change
            )
        due_at = read_moment(reviewed) if reviewed or when.when == "event" else None
        if when.when == "event" and due_at is not None:
            if event_id is None:
                raise _Problem("event", "Choose the event.")
            return replace(made, schedule=EventRelative(event_id, _offset(when), due_at), due_at=due_at)
        schedule = Immediate(event_id) if due_at is None else Fixed(due_at, event_id)
        return replace(made, schedule=schedule, due_at=due_at)
    except _Problem as wrong:
        return replace(made, problems={wrong.field: wrong.sentence})


class _Problem(Exception):
    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field, self.sentence = field, sentence


async def _event(
    tx: Reader, standing: Standing, club_id: UUID, when: When
) -> tuple[EventView | None, str | None]:
    if not when.event:
        return None, "Choose the event." if when.when == "event" else None
    try:
        found = await event(tx, standing, club_id, decode_id(when.event))
    except (NotFound, Invalid):
        return None, "There is no such event any more. Choose another."
    if found.status is EventStatus.CANCELLED:
        return found, "That event is cancelled. Choose another, or none."
    return found, None


def _at(made: Timing, event_id: UUID | None, now: datetime, tolerance: timedelta) -> Timing:
    found = _local_time(made.when)
    if found.instant < now - tolerance:
        raise _Problem("at", "That time has passed. Choose a later one, or Now.")
    schedule = Fixed(found.instant, event_id)
    _check(schedule, now, None, "at")
    return replace(made, schedule=schedule, due_at=found.instant, change=found.change)


def _local_time(when: When) -> LocalTime:
    if when.zone not in zone_names():
        raise _Problem("at", "The time zone of this form is unknown; reload the page.")
    if not when.at:
        raise _Problem("at", "Choose a day and a time, or Now.")
    try:
        naive = datetime.fromisoformat(when.at)
        if naive.tzinfo is not None:
            raise ValueError
        return in_zone(naive, when.zone, second=when.second)
    except (ValueError, OverflowError):
        raise _Problem("at", "This is not a time. Choose a day and a time, or Now.") from None


def _relative(made: Timing, now: datetime, reviewed: str) -> Timing:
    assert made.event is not None
    starts_at = made.event.starts_at
    if starts_at is None:
        raise _Problem("event", "That event has no exact start yet, so nothing can be timed by it.")
    offset = _offset(made.when)
    due_at = starts_at.astimezone(UTC) + offset
    schedule = EventRelative(made.event.id, offset, read_moment(reviewed) if reviewed else due_at)
    if not reviewed:
        _check(schedule, now, starts_at, "minutes")
    return replace(made, schedule=schedule, due_at=schedule.reviewed_due_at)


def _offset(when: When) -> timedelta:
    text = when.minutes
    if not (text.isascii() and text.isdigit() and len(text) < 8 and int(text) <= MINUTES_MOST):
        raise _Problem("minutes", f"Give whole minutes, from 0 to {MINUTES_MOST:,}.")
    return timedelta(minutes=int(text)) * (1 if when.side == AFTER else -1)


def read_moment(text: str) -> datetime:
    """A moment that a review carried. Raises ``Invalid`` for a form that was cut or tampered with."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            raise ValueError
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid("form_incomplete", "This form is not complete.", advice="Review it again.") from None


def _check(schedule: Schedule, now: datetime, starts_at: datetime | None, field: str) -> None:
    try:
        due_time(schedule, now, starts_at)
    except LastcallError as error:
        raise _Problem(field, f"{error.sentence} {error.advice or ''}".strip()) from None


CONFIRMING = GRACE
"""A confirmation may come so much later than the time that was reviewed."""
