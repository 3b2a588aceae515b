"""Reads of events for screens and API. Every staff member sees a club's events; drafts are for those who manage them.

Each takes the reader's ``Standing``, which only ``clubs.policy`` gives; somebody off the staff sees no club at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, select, tuple_

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing, club_unknown
from lastcall.db.clock import NOW
from lastcall.db.cursor import Cursor, cut
from lastcall.db.transaction import Reader
from lastcall.errors import NotFound
from lastcall.events.tables import Event, EventWorld
from lastcall.events.times import LONGEST, EventTime, ScheduleKind, time_of
from lastcall.events.worlds import Confirmation, WorldView, prefilled

PAGE = 50
"""Events of one page at most."""
PICKER_LINKS = 21
"""World links that the picker reads of one event: one more than can be unambiguous (EVT-08)."""
UPCOMING, PAST, PICKER = "events", "past_events", "event_picker"
"""The lists, as their cursors name them."""


class EventStatus(StrEnum):
    """Whether the event takes place."""

    SCHEDULED = "scheduled"
    CANCELLED = "cancelled"


class Publication(StrEnum):
    """Who may know of the event: those who manage events, or all staff."""

    DRAFT = "draft"
    PUBLISHED = "published"


@dataclass(frozen=True)
class EventView:
    """An event as it stands. ``is_over``: it counts as past. ``worlds`` are in the order in which they were linked."""

    id: UUID
    title: str
    description: str
    time: EventTime
    zone: str
    status: EventStatus
    publication: Publication
    cancel_generation: int
    tba_generation: int
    revision: int
    import_uid: str | None
    created_by: UUID
    created_at: datetime
    updated_at: datetime
    is_over: bool
    worlds: tuple[WorldView, ...]

    @property
    def starts_at(self) -> datetime | None:
        """The exact start, where there is one: what event-relative work reckons from."""
        return getattr(self.time, "starts_at", None)


@dataclass(frozen=True)
class EventPage:
    """Some events and the text of the cursor behind them; none at the end."""

    events: tuple[EventView, ...]
    next: str | None


@dataclass(frozen=True)
class PickedEvent:
    """An event that relative work can be timed by. ``world_id`` is null unless exactly one confirmed link with a valid
    id says where it is (EVT-08)."""

    id: UUID
    title: str
    starts_at: datetime
    zone: str
    publication: Publication
    world_id: str | None


def may_see_drafts(standing: Standing) -> bool:
    """Owners hold every permission."""
    return standing.holds(Permission.MANAGE_EVENTS)


def event_unknown() -> NotFound:
    """The one answer for an event that is not there, was removed, or is a draft that the reader may not see."""
    return NotFound("event_unknown", "There is no such event.", advice="Load the list of events again.")


async def event(tx: Reader, standing: Standing, club_id: UUID, event_id: UUID) -> EventView:
    """One event. ``NotFound`` for a draft, too, without the right to see it."""
    found = await read_event(tx, club_id, event_id, _visible(standing))
    if found is None:
        raise event_unknown()
    return found


async def upcoming_events(
    tx: Reader,
    standing: Standing,
    club_id: UUID,
    after: Cursor | None = None,
    limit: int = PAGE,
    *,
    publication: Publication | None = None,
) -> EventPage:
    """Events that are not over, the next first; those without any date come last. Each takes its place by its start,
    or by the midnight in UTC of its date. ``publication``: only those."""
    statement = (
        _events(club_id)
        .where(*_visible(standing), Event.over_at > NOW, Event.sort_at > NOW - LONGEST)
        .order_by(Event.sort_at, Event.id)
    )
    if publication is not None:
        statement = statement.where(Event.publication == publication)
    if after is not None:
        statement = statement.where(tuple_(Event.sort_at, Event.id) > tuple_(after.time, after.id))
    return await _page(tx, club_id, statement, UPCOMING, limit)


async def past_events(
    tx: Reader, standing: Standing, club_id: UUID, after: Cursor | None = None, limit: int = PAGE
) -> EventPage:
    """Events that are over, the latest first."""
    statement = (
        _events(club_id)
        .where(*_visible(standing), Event.over_at <= NOW, Event.sort_at <= NOW)
        .order_by(Event.sort_at.desc(), Event.id.desc())
    )
    if after is not None:
        statement = statement.where(tuple_(Event.sort_at, Event.id) < tuple_(after.time, after.id))
    return await _page(tx, club_id, statement, PAST, limit)


async def timed_picker(
    tx: Reader,
    standing: Standing,
    club_id: UUID,
    after: Cursor | None = None,
    search: str = "",
    limit: int = PAGE,
) -> tuple[tuple[PickedEvent, ...], str | None]:
    """Events that something can be timed by: with an exact start, not cancelled, not over, the next first, those whose
    title holds ``search``; and the text of the cursor behind them."""
    statement = (
        _events(club_id)
        .where(
            *_visible(standing),
            Event.schedule_kind == ScheduleKind.TIMED,
            Event.status == EventStatus.SCHEDULED,
            Event.over_at > NOW,
            Event.sort_at > NOW - LONGEST,
        )
        .order_by(Event.sort_at, Event.id)
    )
    if search.strip():
        statement = statement.where(Event.title.icontains(search.strip(), autoescape=True))
    if after is not None:
        statement = statement.where(tuple_(Event.sort_at, Event.id) > tuple_(after.time, after.id))
    limit = min(limit, PAGE)
    rows, behind = cut((await tx.execute(statement.limit(limit + 1))).all(), limit, PICKER, _cursor)
    worlds = await _worlds(tx, club_id, [row.id for row in rows], PICKER_LINKS)
    return tuple(
        PickedEvent(
            id=row.id,
            title=row.title,
            starts_at=row.starts_at,
            zone=row.zone,
            publication=Publication(row.publication),
            world_id=prefilled(worlds.get(row.id, ())),
        )
        for row in rows
    ), behind


async def read_event(
    tx: Reader, club_id: UUID, event_id: UUID, visible: Sequence[ColumnElement[bool]] = ()
) -> EventView | None:
    """One event that was not removed, whoever asks; within a command that asked who may."""
    found = await read_events(tx, club_id, Event.id == event_id, *visible)
    return found[0] if found else None


async def read_events(tx: Reader, club_id: UUID, *which: ColumnElement[bool]) -> list[EventView]:
    """All such events that were not removed, in order of their times; as ``read_event``."""
    rows = (await tx.execute(_events(club_id).where(*which).order_by(Event.sort_at, Event.id))).all()
    worlds = await _worlds(tx, club_id, [row.id for row in rows])
    return [_view(row, worlds.get(row.id, ())) for row in rows]


def _visible(standing: Standing) -> list[ColumnElement[bool]]:
    if not standing.is_staff:
        raise club_unknown()
    return [] if may_see_drafts(standing) else [Event.publication == Publication.PUBLISHED]


def _events(club_id: UUID) -> Select[*tuple[Any, ...]]:
    statement: Select[*tuple[Any, ...]] = select(
        *Event.__table__.columns, (Event.over_at <= NOW).label("is_over")
    ).where(Event.club_id == club_id, Event.removed_at.is_(None))
    return statement


def _cursor(row: Row[Any]) -> Cursor:
    return Cursor(row.sort_at, row.id)


async def _page(
    tx: Reader, club_id: UUID, statement: Select[*tuple[Any, ...]], listing: str, limit: int
) -> EventPage:
    limit = min(limit, PAGE)
    rows, behind = cut((await tx.execute(statement.limit(limit + 1))).all(), limit, listing, _cursor)
    worlds = await _worlds(tx, club_id, [row.id for row in rows])
    return EventPage(tuple(_view(row, worlds.get(row.id, ())) for row in rows), behind)


def _view(row: Row[Any], worlds: Sequence[WorldView]) -> EventView:
    return EventView(
        id=row.id,
        title=row.title,
        description=row.description,
        time=time_of(row.schedule_kind, row.starts_at, row.ends_at, row.doors_at, row.event_date),
        zone=row.zone,
        status=EventStatus(row.status),
        publication=Publication(row.publication),
        cancel_generation=row.cancel_generation,
        tba_generation=row.tba_generation,
        revision=row.revision,
        import_uid=row.import_uid,
        created_by=row.created_by,
        created_at=row.created_at,
        updated_at=row.updated_at,
        is_over=row.is_over,
        worlds=tuple(worlds),
    )


async def _worlds(
    tx: Reader, club_id: UUID, event_ids: Sequence[UUID], most: int | None = None
) -> dict[UUID, list[WorldView]]:
    """The links of each event, at most ``most`` of each: its first by id."""
    if not event_ids:
        return {}
    asked = select(Event.id).where(Event.club_id == club_id, Event.id.in_(event_ids)).subquery("asked")
    links = (
        select(EventWorld)
        .where(EventWorld.club_id == club_id, EventWorld.event_id == asked.c.id)
        .order_by(EventWorld.id)
        .limit(most)
        .lateral("links")
    )
    found: dict[UUID, list[WorldView]] = {}
    for row in (
        await tx.execute(select(links).select_from(asked.join(links, links.c.event_id == asked.c.id)))
    ).all():
        view = WorldView(row.id, row.world_id, row.name, Confirmation(row.confirmation))
        found.setdefault(row.event_id, []).append(view)
    return found
