"""Events as pages show and read them: their times in words, the editor's form, and what of the scheduled work a change
touches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import groupby
from zoneinfo import ZoneInfo

from lastcall.errors import Invalid
from lastcall.events.fields import EventFields, valid_fields
from lastcall.events.queries import EventStatus, EventView, Publication
from lastcall.events.times import DateOnly, EventTime, ScheduleKind, Timed, TimeTba
from lastcall.local_time import ClockChange, in_zone, shown_in, zone_names
from lastcall.operations.machine import UNSENT
from lastcall.operations.schedules import late_at
from lastcall.operations.views import OperationView
from lastcall.web.compose.timing import local_text
from lastcall.web.looks import Look
from lastcall.web.times import Zoned, day_title

TEXT_MOST = 12_000

CANCELLED = Look("bad", "slash", "Cancelled")
DRAFT = Look("wait", "eye", "Draft")
PUBLISHED = Look("ok", "check", "Published")


def event_look(event: EventView) -> Look:
    """An event's state in one word: that it is cancelled says more than who may know of it."""
    if event.status is EventStatus.CANCELLED:
        return CANCELLED
    return DRAFT if event.publication is Publication.DRAFT else PUBLISHED


def day_of(time: EventTime, zoned: Zoned) -> str:
    """The heading that it stands under, in the viewer's days."""
    match time:
        case Timed(starts_at=starts_at):
            return zoned.day(starts_at)
        case DateOnly(date=day):
            return day_title(day, zoned.today)
        case TimeTba(date=None):
            return "Without a date"
        case TimeTba(date=date() as day):
            return day_title(day, zoned.today)
    raise AssertionError("There is no other time.")


def time_words(time: EventTime, zoned: Zoned, zone: str) -> str:
    """When it is, in the viewer's zone, and in the event's own where that shows another time."""
    match time:
        case Timed(starts_at=starts_at, ends_at=ends_at, doors_at=doors_at):
            words = f"{zoned.day(starts_at)}, {zoned.clock(starts_at)}"
            if ends_at is not None:
                is_same = zoned.local(ends_at).date() == zoned.local(starts_at).date()
                words += f" to {zoned.clock(ends_at) if is_same else zoned.short(ends_at)}"
            if doors_at is not None:
                words += f", doors {zoned.clock(doors_at)}"
            own = shown_in(starts_at, zone).local
            is_other = own.replace(tzinfo=None) != zoned.local(starts_at).replace(tzinfo=None)
            return f"{words} ({own:%H:%M} in {zone})" if is_other else words
        case DateOnly(date=day):
            return f"{day_title(day, zoned.today)}, no hour"
        case TimeTba(date=None):
            return "To be announced"
        case TimeTba(date=date() as day):
            return f"{day_title(day, zoned.today)}, time to be announced"
    raise AssertionError("There is no other time.")


def hour_words(time: EventTime) -> str:
    """What stands in the place of a start that is not there."""
    return "no hour" if isinstance(time, DateOnly) else "time TBA"


@dataclass(frozen=True)
class EventDay:
    title: str
    events: Sequence[EventView]


def event_days(events: Sequence[EventView], zoned: Zoned) -> list[EventDay]:
    """Neighbouring events of one day under one heading."""
    return [
        EventDay(title, tuple(group))
        for title, group in groupby(events, key=lambda one: day_of(one.time, zoned))
    ]


@dataclass(frozen=True)
class EventForm:
    """The editor's form, and what was read from it: without ``fields`` there are ``problems``. ``changes`` are what
    the clock of the zone does at a time, by the field; ``second``: of a start that comes twice the later one."""

    title: str = ""
    kind: str = ScheduleKind.TIMED
    starts_at: str = ""
    ends_at: str = ""
    doors_at: str = ""
    date: str = ""
    zone: str = "UTC"
    description: str = ""
    second: bool = False
    fields: EventFields | None = None
    problems: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, ClockChange] = field(default_factory=dict)

    def as_fields(self) -> dict[str, str]:
        """What a review carries on, but for the description."""
        return {
            "title": self.title,
            "kind": self.kind,
            "starts_at": self.starts_at,
            "ends_at": self.ends_at,
            "doors_at": self.doors_at,
            "date": self.date,
            "zone": self.zone,
            "second": "yes" if self.second else "",
        }


def form_of(event: EventView) -> EventForm:
    """The editor of an event as it is, its times in its own zone."""

    def text(moment: datetime | None) -> str:
        return "" if moment is None else local_text(shown_in(moment, event.zone).local)

    time = event.time
    day = None if isinstance(time, Timed) else time.date
    is_second = isinstance(time, Timed) and shown_in(time.starts_at, event.zone).change is ClockChange.SECOND
    kinds = {Timed: ScheduleKind.TIMED, DateOnly: ScheduleKind.DATE_ONLY, TimeTba: ScheduleKind.TBA}
    return EventForm(
        title=event.title,
        kind=kinds[type(time)],
        starts_at=text(event.starts_at),
        ends_at=text(time.ends_at if isinstance(time, Timed) else None),
        doors_at=text(time.doors_at if isinstance(time, Timed) else None),
        date="" if day is None else day.isoformat(),
        zone=event.zone,
        description=event.description,
        second=is_second,
    )


def read_event_form(given: Mapping[str, str]) -> EventForm:
    """Read a submission of the editor, with everything that is wrong with it."""

    def text(name: str) -> str:
        return given.get(name, "")[:TEXT_MOST].strip()

    kind = given.get("kind", "")
    form = EventForm(
        text("title"),
        kind if kind in set(ScheduleKind) else ScheduleKind.TIMED,
        text("starts_at"),
        text("ends_at"),
        text("doors_at"),
        text("date"),
        text("zone"),
        given.get("description", "")[:TEXT_MOST].replace("\r\n", "\n").strip(),
        given.get("second") == "yes",
    )
    problems: dict[str, str] = {}
    changes: dict[str, ClockChange] = {}
    time = _time(form, problems, changes)
    fields = None
    if not problems and time is not None:
        try:
            fields = valid_fields(EventFields(form.title, time, form.zone, form.description))
        except Invalid as error:
            problems[error.field or "title"] = f"{error.sentence} {error.advice or ''}".strip()
    return replace(form, fields=fields, problems=problems, changes=changes)


def _time(form: EventForm, problems: dict[str, str], changes: dict[str, ClockChange]) -> EventTime | None:
    if form.zone not in zone_names():
        problems["zone"] = "This is no time zone. Use a name like Europe/Berlin or UTC."
        return None
    if form.kind == ScheduleKind.TIMED:
        moments = {
            name: _moment(form, name, text, problems, changes)
            for name, text in (
                ("starts_at", form.starts_at),
                ("ends_at", form.ends_at),
                ("doors_at", form.doors_at),
            )
        }
        start = moments["starts_at"]
        if start is None:
            problems.setdefault("starts_at", "Choose the day and the time at which it starts.")
            return None
        return Timed(start, moments["ends_at"], moments["doors_at"])
    day = _day(form.date, problems)
    if form.kind == ScheduleKind.TBA:
        return TimeTba(day)
    if day is None:
        problems.setdefault("date", "Choose the date.")
        return None
    return DateOnly(day)


def _moment(
    form: EventForm, name: str, text: str, problems: dict[str, str], changes: dict[str, ClockChange]
) -> datetime | None:
    if not text:
        return None
    try:
        naive = datetime.fromisoformat(text)
        if naive.tzinfo is not None:
            raise ValueError
        # What lies after a start that comes twice is behind it: an end takes the later reading with it.
        found = in_zone(naive, form.zone, second=form.second)
    except (ValueError, OverflowError):
        problems[name] = "This is not a time."
        return None
    if found.change is not None:
        changes[name] = found.change
    return found.instant


def _day(text: str, problems: dict[str, str]) -> date | None:
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        problems["date"] = "This is not a day."
        return None


@dataclass(frozen=True)
class Touched:
    """One scheduled action that a change of its event touches: it stops, or is due then."""

    row: OperationView
    due_at: datetime | None

    def passed_words(self, now: datetime) -> str:
        """What becomes of it when its new time has passed already."""
        if self.due_at is None or self.due_at > now:
            return ""
        return "passed: it would be missed" if late_at(self.due_at) <= now else "passed: it is sent at once"


def stopped_by(rows: Sequence[OperationView]) -> list[Touched]:
    """What a cancelled or removed event takes with it: whatever is not sent yet."""
    return [Touched(row, None) for row in rows if row.state in UNSENT]


def touched_by(rows: Sequence[OperationView], before: EventView, after: EventTime) -> list[Touched]:
    """What another time of the event does: only work that follows it moves, or stops when there is no start any
    more."""
    following = [row for row in rows if row.state in UNSENT and row.offset is not None]
    if before.time == after:
        return []
    if not isinstance(after, Timed):
        return [Touched(row, None) for row in following]
    moved = [(row, after.starts_at + row.offset) for row in following if row.offset is not None]
    return [Touched(row, due_at) for row, due_at in moved if due_at != row.due_at]


def zone_choices(*first: str) -> list[str]:
    """Every zone for a form to suggest."""
    return list(dict.fromkeys([*(name for name in first if name), *sorted(zone_names())]))


def own_zone(zone: ZoneInfo) -> str:
    return zone.key if zone.key in zone_names() else "UTC"
