"""Calendar imports: read a calendar into a document, and apply what somebody reviewed of it (EVT-02).

Reading writes a document and no event. Applying calls the one path on which events are written, date by date: what
cannot be written leaves its sentence at the date, and the others are written.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import msgspec
from sqlalchemy import Row, delete, insert, select, update

from lastcall.clubs.activity import log
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.clubs.tables import Club
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.limits import Limit, take
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid, NotFound
from lastcall.events.import_queries import ImportView, events_of_calendars, import_unknown, read_import
from lastcall.events.imports.child import read_calendar
from lastcall.events.imports.comparison import ImportedFields, Item, ItemChange, compare
from lastcall.events.imports.entries import Reading
from lastcall.events.imports.feeds import feed_host, fetch_feed
from lastcall.events.imports.wording import one_line
from lastcall.events.queries import EventView, Publication, event_unknown, read_event
from lastcall.events.services.write import TOPIC, cancel_event, create_event, edit_event
from lastcall.events.tables import CalendarImport, CalendarImportItem
from lastcall.local_time import valid_zone
from lastcall.people.actor import Actor
from lastcall.people.data_retention import data_written
from lastcall.people.scopes import Scope

CALENDAR_IMPORT = Limit("calendar_import", 30, timedelta(hours=1))
"""Calendars read for one person, files and feeds."""
IMPORTS_KEPT = 20
"""Documents of one club; the oldest goes when another comes."""
APPLIED_MOST = 100
"""Dates applied or skipped in one transaction at most."""
_APPLICABLE = (ItemChange.NEW, ItemChange.CHANGED, ItemChange.CANCELLED)


@dataclass(frozen=True)
class Reviewed:
    """What became of the dates: how many were applied, which were refused and why, and the document as it is then."""

    applied: int
    refused: tuple[tuple[UUID, str], ...]
    document: ImportView


async def import_file(
    db: Database, actor: Actor, club_id: UUID, name: str, content: bytes, zone: str | None = None
) -> ImportView:
    """Read a calendar that somebody brings. Times that name no zone are in ``zone``, or the club's.

    Raises ``Invalid`` for what is no calendar and ``TooFast`` over the limit.
    """
    zone, now = await _begin(db, actor, club_id, zone)
    reading = await read_calendar(content, zone, now)
    return await _keep(db, actor, club_id, ("file", one_line(name)), zone, reading)


async def import_feed(
    db: Database, actor: Actor, club_id: UUID, url: str, zone: str | None = None
) -> ImportView:
    """Fetch a calendar from an address and read it. The address is used once and not kept: it is often the key to a
    private calendar. Errors as for ``import_file``; what cannot be fetched names ``url``."""
    zone, now = await _begin(db, actor, club_id, zone)
    reading = await read_calendar(await fetch_feed(url), zone, now)
    return await _keep(db, actor, club_id, ("feed", feed_host(url)), zone, reading)


async def apply_items(
    db: Database,
    actor: Actor,
    club_id: UUID,
    import_id: UUID,
    item_ids: Collection[UUID],
    seen: int,
    publication: Publication = Publication.DRAFT,
) -> Reviewed:
    """Write what the calendar says of these dates: new ones as events of that ``publication``, changed ones over
    theirs, cancelled ones by cancelling. ``seen`` is the document's revision under review.

    A date whose event was changed since the document was made is refused. Raises ``Conflict`` with the fresh document
    when somebody reviewed it meanwhile, ``NotFound`` for a date that is not there or decided, and ``Invalid`` for
    more than ``APPLIED_MOST``.
    """
    refused: list[tuple[UUID, str]] = []
    async with db.transaction() as tx:
        items = await _hold(tx, actor, club_id, import_id, item_ids, seen)
        for item in items:
            try:
                async with db.transaction() as inner:
                    event = await _apply(db, inner, actor, club_id, item, publication)
                    await _decide(
                        inner, club_id, [item.id], decision="applied", event_id=event.id, problem=None
                    )
            except (Conflict, Invalid, NotFound) as error:
                refused.append((item.id, error.sentence))
                await _decide(tx, club_id, [item.id], problem=error.sentence)
        details = {"applied": len(items) - len(refused), "refused": len(refused)}
        await log(tx, club_id, actor, "event.import_applied", "calendar_import", import_id, details)
        document = await _reviewed(tx, club_id, import_id)
    return Reviewed(len(items) - len(refused), tuple(refused), document)


async def skip_items(
    db: Database, actor: Actor, club_id: UUID, import_id: UUID, item_ids: Collection[UUID], seen: int
) -> ImportView:
    """Say that these dates are not wanted. Errors as for ``apply_items``."""
    async with db.transaction() as tx:
        items = await _hold(tx, actor, club_id, import_id, item_ids, seen)
        await _decide(tx, club_id, [item.id for item in items], decision="skipped")
        details = {"skipped": len(items)}
        await log(tx, club_id, actor, "event.import_skipped", "calendar_import", import_id, details)
        return await _reviewed(tx, club_id, import_id)


async def _begin(db: Database, actor: Actor, club_id: UUID, zone: str | None) -> tuple[str, datetime]:
    """Ask who may before anything is read or fetched for them; answers the zone and the database's now."""
    async with db.read() as tx:
        await require(tx, actor, club_id, Permission.MANAGE_EVENTS, scope=Scope.EVENTS)
        club = (await tx.execute(select(Club.zone, NOW.label("now")).where(Club.id == club_id))).one()
    zone = valid_zone(club.zone if zone is None else zone)
    await take(db, CALENDAR_IMPORT, str(actor.person_id))
    return zone, club.now


async def _keep(
    db: Database, actor: Actor, club_id: UUID, source: tuple[str, str], zone: str, reading: Reading
) -> ImportView:
    import_id = new_id()
    async with db.transaction() as tx:
        await require(tx, actor, club_id, Permission.MANAGE_EVENTS, scope=Scope.EVENTS)
        events = await events_of_calendars(tx, club_id, [entry.key for entry in reading.entries])
        items = list(compare(reading, events))
        data_written(tx)
        await tx.execute(
            insert(CalendarImport).values(
                club_id=club_id,
                id=import_id,
                source_kind=source[0],
                source=source[1],
                name=reading.name,
                zone=zone,
                notes=list(reading.notes),
                created_by=actor.person_id,
            )
        )
        if items:
            rows = [_row(club_id, import_id, place, item) for place, item in enumerate(items)]
            await tx.execute(insert(CalendarImportItem), rows)
        await _drop_old(tx, club_id)
        details = {"from": source[0], "dates": len(items)}
        await log(tx, club_id, actor, "event.calendar_read", "calendar_import", import_id, details)
        tx.publish(Hint(club_id, TOPIC))
        return await read_import(tx, club_id, import_id)


def _row(club_id: UUID, import_id: UUID, position: int, item: Item) -> dict[str, object]:
    return {
        "club_id": club_id,
        "id": new_id(),
        "import_id": import_id,
        "position": position,
        "uid": item.uid,
        "change": item.change,
        "fields": msgspec.to_builtins(item.fields),
        "notes": list(item.notes),
        "event_id": None if item.event is None else item.event.id,
        "event_revision": None if item.event is None else item.event.revision,
        "problem": item.problem,
    }


async def _drop_old(tx: Transaction, club_id: UUID) -> None:
    kept = (
        select(CalendarImport.id)
        .where(CalendarImport.club_id == club_id)
        .order_by(CalendarImport.created_at.desc(), CalendarImport.id.desc())
        .limit(IMPORTS_KEPT)
    )
    await tx.execute(
        delete(CalendarImport).where(CalendarImport.club_id == club_id, CalendarImport.id.not_in(kept))
    )


async def _hold(
    tx: Transaction, actor: Actor, club_id: UUID, import_id: UUID, item_ids: Collection[UUID], seen: int
) -> Sequence[Row[tuple[object, ...]]]:
    """The dates, once the document is locked and stands as it was seen; in the order in which their events are locked
    and new ones claim their UIDs, so that two who apply cannot wait for each other."""
    if len(item_ids) > APPLIED_MOST:
        raise Invalid(
            "import_items_too_many",
            f"At most {APPLIED_MOST} dates are decided at once.",
            advice="Decide them in several steps.",
            field="items",
        )
    await require(tx, actor, club_id, Permission.MANAGE_EVENTS, scope=Scope.EVENTS)
    mine = (CalendarImport.club_id == club_id, CalendarImport.id == import_id)
    revision = await tx.scalar(select(CalendarImport.revision).where(*mine).with_for_update(key_share=True))
    if revision is None:
        raise import_unknown()
    if revision != seen:
        raise Conflict(
            "import_reviewed",
            "Somebody reviewed this import meanwhile.",
            advice="Look at it as it is now.",
            fresh=await read_import(tx, club_id, import_id),
        )
    items = await tx.execute(
        select(CalendarImportItem.__table__)
        .where(
            CalendarImportItem.club_id == club_id,
            CalendarImportItem.import_id == import_id,
            CalendarImportItem.id.in_(item_ids),
            CalendarImportItem.decision.is_(None),
            CalendarImportItem.change.in_(_APPLICABLE),
        )
        .order_by(CalendarImportItem.event_id, CalendarImportItem.uid)
    )
    found = items.all()
    if len(found) != len(set(item_ids)):
        raise NotFound(
            "import_item_unknown",
            "A date of this import is not there, or there is nothing to decide about it.",
            advice="Load the import again.",
        )
    return found


async def _apply(
    db: Database,
    tx: Transaction,
    actor: Actor,
    club_id: UUID,
    item: Row[tuple[object, ...]],
    publication: Publication,
) -> EventView:
    row = item._mapping
    fields = msgspec.convert(row["fields"], ImportedFields)
    if row["change"] == ItemChange.NEW:
        return await create_event(
            db, actor, club_id, fields.written(None), publication=publication, import_uid=row["uid"]
        )
    event = await read_event(tx, club_id, row["event_id"])
    if event is None:
        raise event_unknown()
    _check_unmoved(event, row["event_revision"])
    if row["change"] == ItemChange.CANCELLED:
        cancelled = await cancel_event(db, actor, club_id, event.id)
        _check_unmoved(cancelled, event.revision + 1)  # somebody may have written between the two
        return cancelled
    return await edit_event(db, actor, club_id, event.id, fields.written(event), event.revision)


def _check_unmoved(event: EventView, revision: int) -> None:
    if event.revision != revision:
        raise Conflict(
            "event_changed",
            "This event was changed after the calendar was read.",
            advice="Import the calendar again.",
        )


async def _decide(tx: Transaction, club_id: UUID, item_ids: Collection[UUID], **values: object) -> None:
    await tx.execute(
        update(CalendarImportItem)
        .where(CalendarImportItem.club_id == club_id, CalendarImportItem.id.in_(item_ids))
        .values(values)
    )


async def _reviewed(tx: Transaction, club_id: UUID, import_id: UUID) -> ImportView:
    await tx.execute(
        update(CalendarImport)
        .where(CalendarImport.club_id == club_id, CalendarImport.id == import_id)
        .values(revision=CalendarImport.revision + 1)
    )
    tx.publish(Hint(club_id, TOPIC))
    return await read_import(tx, club_id, import_id)
