"""Events as the API is sent them and answers them."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

from msgspec import Meta

from lastcall.api.v1.shapes import Id, Input, Shape, utc
from lastcall.db.ids import encode_id
from lastcall.events.fields import EventFields
from lastcall.events.queries import EventStatus, EventView, PickedEvent, Publication
from lastcall.events.times import DateOnly, EventTime, Timed, TimeTba
from lastcall.events.worlds import Confirmation


class ExactTime(Shape, frozen=True, tag="timed", tag_field="kind"):
    """An exact start; where known its end, and when doors open."""

    starts_at: datetime
    ends_at: datetime | None = None
    doors_at: datetime | None = None


class DateKnown(Shape, frozen=True, tag="date_only", tag_field="kind"):
    """A date and no hour: nothing can be timed by it."""

    date: date


class TimeUnknown(Shape, frozen=True, tag="tba", tag_field="kind"):
    """The time is to be announced; the date may be known."""

    date: date | None = None


class TimedInput(Input, frozen=True, tag="timed", tag_field="kind"):
    """An exact start, each time with its zone. It ends at most 31 days after the start; doors open at most a day before
    it.
    """

    starts_at: datetime
    ends_at: datetime | None = None
    doors_at: datetime | None = None


class DateInput(Input, frozen=True, tag="date_only", tag_field="kind"):
    """A date and no hour."""

    date: date


class TbaInput(Input, frozen=True, tag="tba", tag_field="kind"):
    """To be announced."""

    date: date | None = None


TimeInput = TimedInput | DateInput | TbaInput
Time = ExactTime | DateKnown | TimeUnknown


class EventWorld(Shape, frozen=True):
    """A world in which the event is, or may be while `confirmation` is `suggested`. `worldId` is as it was given."""

    id: Id
    world_id: str
    name: str
    confirmation: Confirmation


class Event(Shape, frozen=True):
    """An event as it stands. `zone` is the IANA name in which its times are shown, `isOver` says that it counts as
    past. `revision` is what an edit names.
    """

    id: Id
    title: str
    description: str
    time: Time
    zone: str
    status: EventStatus
    publication: Publication
    revision: int
    worlds: list[EventWorld]
    is_over: bool
    created_by: Id
    created_at: datetime
    updated_at: datetime


class EventPage(Shape, frozen=True):
    """`next` is the cursor of the next page; null at the end."""

    items: list[Event]
    next: str | None


class TimedEvent(Shape, frozen=True):
    """An event that something can be timed by. `worldId` is where it is, if exactly one confirmed world says so."""

    id: Id
    title: str
    starts_at: datetime
    zone: str
    publication: Publication
    world_id: str | None


class TimedEvents(Shape, frozen=True):
    """`next` is the cursor of the next page; null at the end."""

    items: list[TimedEvent]
    next: str | None


class NewEvent(Input, frozen=True):
    """An event, as a draft unless `publication` says otherwise."""

    title: str
    time: TimeInput
    zone: str
    description: str = ""
    publication: Publication = Publication.DRAFT


class EventEdit(Input, frozen=True):
    """All of an event at once. `seen` is the `revision` that was read."""

    title: str
    time: TimeInput
    zone: str
    description: str
    seen: Annotated[int, Meta(ge=1, le=2**31 - 1)]


class NewWorld(Input, frozen=True):
    """A world of the event. One that is linked already gets this name and confirmation."""

    world_id: str
    name: str = ""
    confirmation: Confirmation = Confirmation.CONFIRMED


def event_fields(data: NewEvent | EventEdit) -> EventFields:
    return EventFields(
        title=data.title, time=event_time(data.time), zone=data.zone, description=data.description
    )


def event_time(asked: TimeInput) -> EventTime:
    """What services take. Raises ``Invalid`` with the field."""
    match asked:
        case TimedInput(starts_at=start, ends_at=end, doors_at=doors):
            return Timed(
                utc(start, "time.startsAt"),
                None if end is None else utc(end, "time.endsAt"),
                None if doors is None else utc(doors, "time.doorsAt"),
            )
        case DateInput(date=day):
            return DateOnly(day)
        case TbaInput(date=day):
            return TimeTba(day)


def timed_shape(one: PickedEvent) -> TimedEvent:
    return TimedEvent(
        id=encode_id(one.id),
        title=one.title,
        starts_at=one.starts_at,
        zone=one.zone,
        publication=one.publication,
        world_id=one.world_id,
    )


def event_shape(view: EventView) -> Event:
    return Event(
        id=encode_id(view.id),
        title=view.title,
        description=view.description,
        time=time_shape(view.time),
        zone=view.zone,
        status=view.status,
        publication=view.publication,
        revision=view.revision,
        worlds=[
            EventWorld(
                id=encode_id(one.id),
                world_id=one.world_id,
                name=one.name,
                confirmation=one.confirmation,
            )
            for one in view.worlds
        ],
        is_over=view.is_over,
        created_by=encode_id(view.created_by),
        created_at=view.created_at,
        updated_at=view.updated_at,
    )


def time_shape(when: EventTime) -> Time:
    match when:
        case Timed(starts_at=start, ends_at=end, doors_at=doors):
            return ExactTime(starts_at=start, ends_at=end, doors_at=doors)
        case DateOnly(date=day):
            return DateKnown(date=day)
        case TimeTba(date=day):
            return TimeUnknown(date=day)
