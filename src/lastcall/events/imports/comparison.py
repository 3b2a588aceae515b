"""A calendar's dates beside the club's events: what is new, changed, the same or cancelled, and what applying one would
write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Any

import msgspec

from lastcall.errors import Invalid
from lastcall.events.fields import EventFields, valid_fields
from lastcall.events.imports.entries import Entry, Reading, uid_of
from lastcall.events.queries import EventStatus, EventView
from lastcall.events.times import DateOnly, EventTime, Timed, TimeTba, columns_of

GONE = "The calendar has this date no more."
CANCELLED_HERE = "It is cancelled here and stays so; reinstate it yourself if it takes place after all."


class ItemChange(StrEnum):
    """What a date of the calendar is beside the club's events."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    CANCELLED = "cancelled"
    UNREADABLE = "unreadable"


class ImportedFields(msgspec.Struct, frozen=True, kw_only=True):
    """What the calendar says of one date, as the document keeps it: of its time ``starts_at``, ``date`` or nothing."""

    title: str
    zone: str
    description: str = ""
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    date: date | None = None

    @classmethod
    def of(cls, entry: Entry) -> ImportedFields:
        """The fields of a date that was read."""
        return cls(
            title=entry.title,
            description=entry.description,
            zone=entry.zone,
            starts_at=entry.starts_at,
            ends_at=entry.ends_at,
            date=entry.date,
        )

    @property
    def time(self) -> EventTime:
        """The time that the calendar says."""
        if self.starts_at is not None:
            return Timed(self.starts_at, self.ends_at)
        return TimeTba() if self.date is None else DateOnly(self.date)

    def written(self, event: EventView | None) -> EventFields:
        """What applying it writes. Doors are the club's own: they keep their distance from the start."""
        time, before = self.time, None if event is None else event.time
        if isinstance(time, Timed) and isinstance(before, Timed) and before.doors_at is not None:
            time = replace(time, doors_at=time.starts_at - (before.starts_at - before.doors_at))
        return EventFields(self.title, time, self.zone, self.description)


@dataclass(frozen=True)
class Item:
    """One date of a document before it is stored."""

    uid: str
    change: ItemChange
    fields: ImportedFields
    notes: tuple[str, ...] = ()
    event: EventView | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Difference:
    """One field that applying would change, as it is and as it would be; in the words of ``differences``."""

    field: str
    before: Any
    after: Any


def compare(reading: Reading, events: Mapping[str, EventView]) -> Iterator[Item]:
    """Every date of the reading beside the club's event of the same key, and the events whose date is there no more.
    Cancelled dates that the club never had are left out."""
    seen = set()
    for entry in reading.entries:
        seen.add(entry.key)
        item = _compared(entry, events.get(entry.key))
        if item is not None:
            yield item
    uids = set(reading.uids)
    for key, event in events.items():
        is_covered = uid_of(key) in uids and columns_of(event.time).sort_at < reading.complete_until
        is_ahead = event.status is EventStatus.SCHEDULED and not event.is_over
        if is_covered and is_ahead and key not in seen:
            yield Item(key, ItemChange.CANCELLED, _as_it_is(event), (GONE,), event)


def differences(event: EventView, fields: EventFields) -> tuple[Difference, ...]:
    """What writing ``fields`` would change of the event."""
    pairs = (
        ("title", event.title, fields.title),
        ("time", event.time, fields.time),
        ("zone", event.zone, fields.zone),
        ("description", event.description, fields.description),
    )
    return tuple(Difference(name, before, after) for name, before, after in pairs if before != after)


def _compared(entry: Entry, event: EventView | None) -> Item | None:
    fields = ImportedFields.of(entry)
    if entry.problem is not None:
        return Item(entry.key, ItemChange.UNREADABLE, fields, entry.notes, None, entry.problem)
    try:
        written = valid_fields(fields.written(event))
    except Invalid as error:
        return Item(entry.key, ItemChange.UNREADABLE, fields, entry.notes, None, error.sentence)
    if event is None:
        return None if entry.is_cancelled else Item(entry.key, ItemChange.NEW, fields, entry.notes)
    if entry.is_cancelled and event.status is EventStatus.SCHEDULED:
        return Item(entry.key, ItemChange.CANCELLED, fields, entry.notes, event)
    notes = entry.notes
    if not entry.is_cancelled and event.status is EventStatus.CANCELLED:
        notes = (*notes, CANCELLED_HERE)
    is_same = entry.is_cancelled or not differences(event, written)
    return Item(entry.key, ItemChange.SAME if is_same else ItemChange.CHANGED, fields, notes, event)


def _as_it_is(event: EventView) -> ImportedFields:
    time = event.time
    return ImportedFields(
        title=event.title,
        description=event.description,
        zone=event.zone,
        starts_at=event.starts_at,
        ends_at=time.ends_at if isinstance(time, Timed) else None,
        date=None if isinstance(time, Timed) else time.date,
    )
