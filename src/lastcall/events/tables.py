"""Events of clubs and the worlds they are in, whose one writer is ``services/write.py`` (EVT-01); and import documents,
which say what a calendar elsewhere holds and wait for somebody to review them (EVT-02)."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base, TenantTable, tenant_reference

DATABASE_NOW = text("lastcall_now()")


class Event(TenantTable, Base):
    """One event of a club. ``zone`` is the IANA name in which its times are shown.

    ``cancel_generation`` rises with each cancelling and with the removal, ``tba_generation`` whenever the event loses
    its exact start; both never fall, so that what was copied before stays told apart though the event is reinstated or
    timed again a moment later. A row is never deleted while its club lives: ``removed_at`` makes it missing.
    ``sort_at`` and ``over_at`` follow from the time (``times.columns_of``). ``import_uid`` says which entry of a
    calendar elsewhere it came from.
    """

    __tablename__ = "events"
    __table_args__ = (
        CheckConstraint(
            "case schedule_kind"
            " when 'timed' then starts_at is not null and event_date is null"
            " when 'date_only' then starts_at is null and event_date is not null"
            " when 'tba' then starts_at is null else false end",
            name="schedule",
        ),
        CheckConstraint(
            "(starts_at is not null or num_nonnulls(ends_at, doors_at) = 0)"
            " and (ends_at is null or starts_at < ends_at) and (doors_at is null or doors_at <= starts_at)",
            name="times",
        ),
        CheckConstraint("status in ('scheduled', 'cancelled')", name="status"),
        CheckConstraint("publication in ('draft', 'published')", name="publication"),
        CheckConstraint(
            "cancel_generation >= 0 and tba_generation >= 0 and revision >= 1"
            " and (status <> 'cancelled' and removed_at is null or cancel_generation > 0)",
            name="generations",
        ),
        Index(None, "club_id", "sort_at", "id", postgresql_where=text("removed_at is null")),
        Index(
            "events_import_uid_idx",
            "club_id",
            "import_uid",
            unique=True,
            postgresql_where=text("import_uid is not null and removed_at is null"),
        ),
    )

    club_id: Mapped[UUID] = mapped_column(
        ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True, sort_order=-2
    )
    title: Mapped[str]
    description: Mapped[str] = mapped_column(server_default=text("''"))
    schedule_kind: Mapped[str]
    starts_at: Mapped[datetime | None]
    ends_at: Mapped[datetime | None]
    doors_at: Mapped[datetime | None]
    event_date: Mapped[date | None]
    zone: Mapped[str]
    sort_at: Mapped[datetime]
    over_at: Mapped[datetime]
    status: Mapped[str] = mapped_column(server_default=text("'scheduled'"))
    publication: Mapped[str] = mapped_column(server_default=text("'draft'"))
    cancel_generation: Mapped[int] = mapped_column(server_default=text("0"))
    tba_generation: Mapped[int] = mapped_column(server_default=text("0"))
    revision: Mapped[int] = mapped_column(server_default=text("1"))
    removed_at: Mapped[datetime | None]
    import_uid: Mapped[str | None]
    created_by: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class EventWorld(TenantTable, Base):
    """A world in which an event is or may be. ``world_id`` is as it was given, and may be no world's id."""

    __tablename__ = "event_worlds"
    __table_args__ = (
        tenant_reference("events", "event_id", on_delete="cascade"),
        UniqueConstraint("club_id", "event_id", "world_id"),
        CheckConstraint("confirmation in ('suggested', 'confirmed')", name="confirmation"),
    )

    event_id: Mapped[UUID]
    world_id: Mapped[str]
    name: Mapped[str] = mapped_column(server_default=text("''"))
    confirmation: Mapped[str] = mapped_column(server_default=text("'suggested'"))
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class CalendarImport(TenantTable, Base):
    """One reading of a calendar. ``source`` names the file or the host of the feed, never the feed's address: it is
    often the key to a private calendar. ``revision`` rises with each review, and is what a review is compared with."""

    __tablename__ = "calendar_imports"
    __table_args__ = (
        CheckConstraint("source_kind in ('file', 'feed')", name="source_kind"),
        Index(None, "club_id", "created_at", "id"),
        Index(None, "created_at"),
    )

    club_id: Mapped[UUID] = mapped_column(
        ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True, sort_order=-2
    )
    source_kind: Mapped[str]
    source: Mapped[str]
    name: Mapped[str]
    zone: Mapped[str]
    notes: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    revision: Mapped[int] = mapped_column(server_default=text("1"))
    created_by: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class CalendarImportItem(TenantTable, Base):
    """One date of an import document: what the calendar says (``fields``), and what that was beside the club's events
    when it was read. ``event_revision`` is the one that ``change`` was judged by. ``event_id`` is the event that the
    date belongs to, and of a new one the event that applying it made. ``problem`` says why it cannot be applied."""

    __tablename__ = "calendar_import_items"
    __table_args__ = (
        tenant_reference("calendar_imports", "import_id", on_delete="cascade"),
        tenant_reference("events", "event_id"),
        UniqueConstraint("club_id", "import_id", "position"),
        CheckConstraint(
            "change in ('new', 'changed', 'same', 'cancelled', 'unreadable')"
            " and (change <> 'unreadable' or problem is not null)",
            name="change",
        ),
        CheckConstraint(
            "(decision is null or decision in ('applied', 'skipped'))"
            " and (decision is distinct from 'applied' or event_id is not null)"
            " and (change not in ('changed', 'same', 'cancelled') or event_id is not null)"
            " and (event_revision is null or event_id is not null)",
            name="decision",
        ),
        Index(None, "club_id", "event_id", postgresql_where=text("event_id is not null")),
    )

    import_id: Mapped[UUID]
    position: Mapped[int]
    uid: Mapped[str]
    change: Mapped[str]
    fields: Mapped[dict[str, Any]]
    notes: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    event_id: Mapped[UUID | None]
    event_revision: Mapped[int | None]
    decision: Mapped[str | None]
    problem: Mapped[str | None]
