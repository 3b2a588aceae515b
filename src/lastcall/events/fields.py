"""All that an event's form holds, and the form in which it is stored."""

from __future__ import annotations

from dataclasses import dataclass

from lastcall.events.texts import TITLE_LENGTH, valid_description
from lastcall.events.times import EventTime, valid_time
from lastcall.local_time import valid_zone
from lastcall.names import valid_name


@dataclass(frozen=True)
class EventFields:
    """``zone`` is the IANA name in which the event's times are shown."""

    title: str
    time: EventTime
    zone: str
    description: str = ""


def valid_fields(fields: EventFields) -> EventFields:
    """The fields as they are stored. Raises ``Invalid`` with the field."""
    return EventFields(
        title=valid_name(fields.title, field="title", most=TITLE_LENGTH, what="The title"),
        time=valid_time(fields.time),
        zone=valid_zone(fields.zone),
        description=valid_description(fields.description),
    )
