"""When something is to be sent, as a body says it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Meta

from lastcall.api.v1.shapes import Id, Input, known_in, utc
from lastcall.operations.schedules import EventRelative, Fixed, Immediate, Schedule

_OFFSET_MOST = 2**53
"""Any whole number that JSON carries in every language; how far a time may lie is the service's to say."""


class AtOnce(Input, frozen=True, tag="immediate", tag_field="kind"):
    """As soon as it is sent. `eventId`: it is stopped with that event."""

    event_id: Id | None = None


class AtTime(Input, frozen=True, tag="fixed", tag_field="kind"):
    """At that time, with its zone, at most 366 days ahead. `eventId`: it is stopped with that event, and does not move
    with it.
    """

    due_at: datetime
    event_id: Id | None = None


class AtEvent(Input, frozen=True, tag="event_relative", tag_field="kind"):
    """So many milliseconds from the start of an event, negative for before, wherever the event moves. `reviewedDueAt`
    is the time that somebody was shown: the event's start plus the offset, as both are when this is sent.
    """

    event_id: Id
    offset_ms: Annotated[int, Meta(ge=-_OFFSET_MOST, le=_OFFSET_MOST)]
    reviewed_due_at: datetime


When = AtOnce | AtTime | AtEvent


def schedule_of(asked: When) -> Schedule:
    """What services take. Raises ``Invalid`` with the field."""
    event_id = None if asked.event_id is None else known_in(asked.event_id, "schedule.eventId")
    match asked:
        case AtOnce():
            return Immediate(event_id)
        case AtTime(due_at=due_at):
            return Fixed(utc(due_at, "schedule.dueAt"), event_id)
        case AtEvent(offset_ms=offset_ms, reviewed_due_at=reviewed):
            assert event_id is not None
            offset = timedelta(milliseconds=offset_ms)
            return EventRelative(event_id, offset, utc(reviewed, "schedule.reviewedDueAt"))
