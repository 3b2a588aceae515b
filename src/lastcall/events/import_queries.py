"""Reads of import documents, for those who manage events."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec
from sqlalchemy import RowMapping, func, or_, select

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing
from lastcall.db.clock import NOW
from lastcall.db.transaction import Reader
from lastcall.errors import NotFound
from lastcall.events.imports.comparison import Difference, ImportedFields, ItemChange, differences
from lastcall.events.queries import EventView, read_events
from lastcall.events.tables import CalendarImport, CalendarImportItem, Event
from lastcall.people.tables import Person


@dataclass(frozen=True)
class ImportSummary:
    """A document in the list: how many of its dates wait to be decided. ``source`` is the file's name or the feed's
    host, ``created_by`` a name."""

    id: UUID
    source_kind: str
    source: str
    name: str
    created_by: str
    created_at: datetime
    dates: int
    undecided: int


@dataclass(frozen=True)
class ItemView:
    """One date. ``differences`` are what applying it would change of its event as that is now; ``is_open`` says that
    there is something to decide."""

    id: UUID
    uid: str
    change: ItemChange
    fields: ImportedFields
    notes: tuple[str, ...]
    event: EventView | None
    differences: tuple[Difference, ...]
    decision: str | None
    problem: str | None

    @property
    def is_open(self) -> bool:
        return self.decision is None and self.change in (
            ItemChange.NEW,
            ItemChange.CHANGED,
            ItemChange.CANCELLED,
        )


@dataclass(frozen=True)
class ImportView:
    """A document with its dates, the next first. ``revision`` is what a review names as seen."""

    id: UUID
    source_kind: str
    source: str
    name: str
    zone: str
    notes: tuple[str, ...]
    revision: int
    created_by: str
    created_at: datetime
    items: tuple[ItemView, ...]


def import_unknown() -> NotFound:
    """The one answer for a document that is not there and for a reader who does not manage events."""
    return NotFound("import_unknown", "There is no such import.", advice="Import the calendar again.")


async def calendar_imports(tx: Reader, standing: Standing, club_id: UUID) -> tuple[ImportSummary, ...]:
    """The documents of a club, the newest first; there are few (``importing.IMPORTS_KEPT``)."""
    _require(standing)
    applicable = (ItemChange.NEW, ItemChange.CHANGED, ItemChange.CANCELLED)
    of_it = (
        CalendarImportItem.club_id == CalendarImport.club_id,
        CalendarImportItem.import_id == CalendarImport.id,
    )
    counts = (
        select(
            func.count().label("dates"),
            func.count()
            .filter(CalendarImportItem.decision.is_(None), CalendarImportItem.change.in_(applicable))
            .label("undecided"),
        )
        .where(*of_it)
        .lateral()
    )
    rows = await tx.execute(
        select(
            CalendarImport.id,
            CalendarImport.source_kind,
            CalendarImport.source,
            CalendarImport.name,
            Person.display_name.label("created_by"),
            CalendarImport.created_at,
            counts.c.dates,
            counts.c.undecided,
        )
        .join(Person, Person.id == CalendarImport.created_by)
        .join(counts, counts.c.dates >= 0)
        .where(CalendarImport.club_id == club_id)
        .order_by(CalendarImport.created_at.desc(), CalendarImport.id.desc())
    )
    return tuple(ImportSummary(**row._mapping) for row in rows.all())


async def calendar_import(tx: Reader, standing: Standing, club_id: UUID, import_id: UUID) -> ImportView:
    """One document. ``NotFound`` for one that is not there, and without ``manage_events``."""
    _require(standing)
    return await read_import(tx, club_id, import_id)


async def read_import(tx: Reader, club_id: UUID, import_id: UUID) -> ImportView:
    """One document, whoever asks; within a command that asked who may."""
    head = (
        await tx.execute(
            select(CalendarImport.__table__, Person.display_name)
            .join(Person, Person.id == CalendarImport.created_by)
            .where(CalendarImport.club_id == club_id, CalendarImport.id == import_id)
        )
    ).one_or_none()
    if head is None:
        raise import_unknown()
    items = (
        await tx.execute(
            select(CalendarImportItem.__table__)
            .where(CalendarImportItem.club_id == club_id, CalendarImportItem.import_id == import_id)
            .order_by(CalendarImportItem.position)
        )
    ).all()
    event_ids = [item.event_id for item in items if item.event_id is not None]
    events = {one.id: one for one in await read_events(tx, club_id, Event.id.in_(event_ids))}
    return ImportView(
        id=head.id,
        source_kind=head.source_kind,
        source=head.source,
        name=head.name,
        zone=head.zone,
        notes=tuple(head.notes),
        revision=head.revision,
        created_by=head.display_name,
        created_at=head.created_at,
        items=tuple(_item(item._mapping, events.get(item.event_id)) for item in items),
    )


async def events_of_calendars(tx: Reader, club_id: UUID, keys: Collection[str]) -> dict[str, EventView]:
    """The club's events that came from calendars and are not over or have one of these keys, by their keys."""
    found = await read_events(
        tx, club_id, Event.import_uid.is_not(None), or_(Event.over_at > NOW, Event.import_uid.in_(keys))
    )
    return {one.import_uid: one for one in found if one.import_uid is not None}


def _item(row: RowMapping, event: EventView | None) -> ItemView:
    change, fields = ItemChange(row["change"]), msgspec.convert(row["fields"], ImportedFields)
    changes: tuple[Difference, ...] = ()
    if change is ItemChange.CHANGED and event is not None:
        changes = differences(event, fields.written(event))
    return ItemView(
        id=row["id"],
        uid=row["uid"],
        change=change,
        fields=fields,
        notes=tuple(row["notes"]),
        event=event,
        differences=changes,
        decision=row["decision"],
        problem=row["problem"],
    )


def _require(standing: Standing) -> None:
    if not standing.holds(Permission.MANAGE_EVENTS):
        raise import_unknown()
