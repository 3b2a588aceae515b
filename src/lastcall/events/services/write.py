"""The one path on which events are written (EVT-01): pages, API, MCP tools, imports and fixtures all call these.

Every command asks for ``manage_events`` with the club's gate held, locks the event's row, writes, logs, tells the
listeners (``events.listeners``) and hints live pages, in one transaction. It joins the caller's when there is one.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from lastcall.clubs.activity import log
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid, NotFound
from lastcall.events.fields import EventFields, valid_fields
from lastcall.events.listeners import EventChange, event_changed
from lastcall.events.queries import EventStatus, EventView, Publication, event_unknown, read_event
from lastcall.events.tables import Event, EventWorld
from lastcall.events.times import LONGEST, Timed, columns_of
from lastcall.events.worlds import Confirmation, is_world_id
from lastcall.names import valid_name
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

WORLD_NAME_LENGTH = 120  # characters
WORLD_ID_LENGTH = 100  # characters; a world's id has 41
EVENTS_MOST = 2000
"""Events of a club that are not over, at most: a local limit against floods."""
WORLDS_MOST = 50
"""Worlds linked to one event at most."""
TOPIC = "events"  # of the hints for live pages


async def create_event(
    db: Database,
    actor: Actor,
    club_id: UUID,
    fields: EventFields,
    *,
    publication: Publication = Publication.DRAFT,
    import_uid: str | None = None,
) -> EventView:
    """Add an event. ``import_uid``: the entry of a calendar elsewhere that it came from.

    Raises ``Invalid`` with the field, and ``Conflict`` at ``EVENTS_MOST`` and when an event of that entry is there.
    """
    fields = valid_fields(fields)
    event_id = new_id()
    async with db.transaction() as tx:
        await require(tx, actor, club_id, Permission.MANAGE_EVENTS, scope=Scope.EVENTS)
        await _require_room(tx, club_id)
        values = _columns(fields) | {
            "club_id": club_id,
            "id": event_id,
            "publication": publication,
            "import_uid": import_uid,
            "created_by": actor.person_id,
        }
        try:
            async with db.transaction() as inner:
                await inner.execute(insert(Event).values(values))
        except IntegrityError as error:
            raise _imported_already(error) from error
        return await _written(tx, actor, club_id, event_id, "event.created", None, {"title": fields.title})


async def edit_event(
    db: Database, actor: Actor, club_id: UUID, event_id: UUID, fields: EventFields, seen: int
) -> EventView:
    """Set all fields at once; answers the event as it is then. ``seen`` is the revision that the form was made from.

    Raises ``Invalid`` with the field, ``NotFound``, and ``Conflict`` with the fresh event when it moved meanwhile.
    """
    fields = valid_fields(fields)
    async with db.transaction() as tx:
        before = await _hold(tx, actor, club_id, event_id)
        if before.revision != seen:
            raise Conflict(
                "event_changed",
                "Somebody changed this event meanwhile.",
                advice="Look at it as it is now, and edit again.",
                fresh=before,
            )
        values = _columns(fields)
        if isinstance(before.time, Timed) and not isinstance(fields.time, Timed):
            values["tba_generation"] = Event.tba_generation + 1
        details = _changes(before, fields)
        return await _write(tx, actor, club_id, before, "event.edited", values, details)


async def cancel_event(db: Database, actor: Actor, club_id: UUID, event_id: UUID) -> EventView:
    """The event does not take place. What is linked to it and unsent stops for good, though it be reinstated at once
    (EVT-05). Cancelling twice is once."""
    async with db.transaction() as tx:
        before = await _hold(tx, actor, club_id, event_id)
        if before.status is EventStatus.CANCELLED:
            return before
        values = {"status": EventStatus.CANCELLED, "cancel_generation": Event.cancel_generation + 1}
        return await _write(tx, actor, club_id, before, "event.cancelled", values)


async def reinstate_event(db: Database, actor: Actor, club_id: UUID, event_id: UUID) -> EventView:
    """A cancelled event takes place after all. It revives nothing that the cancelling stopped. Twice is once."""
    async with db.transaction() as tx:
        before = await _hold(tx, actor, club_id, event_id)
        if before.status is EventStatus.SCHEDULED:
            return before
        return await _write(tx, actor, club_id, before, "event.reinstated", {"status": EventStatus.SCHEDULED})


async def publish_event(db: Database, actor: Actor, club_id: UUID, event_id: UUID) -> EventView:
    """Show the event to all staff. Twice is once."""
    return await _set_publication(db, actor, club_id, event_id, Publication.PUBLISHED, "event.published")


async def unpublish_event(db: Database, actor: Actor, club_id: UUID, event_id: UUID) -> EventView:
    """Make the event a draft again, for those who manage events. What is linked to it goes on. Twice is once."""
    return await _set_publication(db, actor, club_id, event_id, Publication.DRAFT, "event.unpublished")


async def remove_event(db: Database, actor: Actor, club_id: UUID, event_id: UUID) -> None:
    """Take the event away: it is missing for everybody, and what is linked to it and unsent stops (EVT-06). The row
    stays, so that nothing that names it dangles; there is no way back."""
    async with db.transaction() as tx:
        before = await _hold(tx, actor, club_id, event_id)
        values = {"removed_at": NOW, "cancel_generation": Event.cancel_generation + 1}
        await _update(tx, club_id, event_id, values)
        await log(tx, club_id, actor, "event.removed", "event", event_id, {"title": before.title})
        await _tell(tx, EventChange(club_id, event_id, before.time, before.time, is_removed=True))


async def link_world(
    db: Database,
    actor: Actor,
    club_id: UUID,
    event_id: UUID,
    world_id: str,
    name: str = "",
    confirmation: Confirmation = Confirmation.CONFIRMED,
) -> EventView:
    """Say in which world the event is. The id is kept as given, though it be no world's; linking a world again sets its
    name and confirmation. Raises ``Invalid`` with the field, and ``Conflict`` at ``WORLDS_MOST``."""
    world_id = _valid_world_id(world_id)
    name = valid_name(name, field="name", most=WORLD_NAME_LENGTH, least=0, what="The world's name")
    async with db.transaction() as tx:
        before = await _hold(tx, actor, club_id, event_id)
        link = next((one for one in before.worlds if one.world_id == world_id), None)
        if link is not None:
            await tx.execute(
                update(EventWorld)
                .where(EventWorld.club_id == club_id, EventWorld.id == link.id)
                .values(name=name, confirmation=confirmation)
            )
        elif len(before.worlds) >= WORLDS_MOST:
            raise Conflict(
                "event_worlds_full",
                f"An event is linked to {WORLDS_MOST} worlds at most.",
                advice="Unlink one first.",
            )
        else:
            await tx.execute(
                insert(EventWorld).values(
                    club_id=club_id,
                    event_id=event_id,
                    world_id=world_id,
                    name=name,
                    confirmation=confirmation,
                )
            )
        details = {"world": world_id, "confirmation": confirmation}
        return await _write(tx, actor, club_id, before, "event.world_linked", {}, details)


async def confirm_world(
    db: Database, actor: Actor, club_id: UUID, event_id: UUID, link_id: UUID
) -> EventView:
    """Confirm a suggested world. Twice is once."""
    async with db.transaction() as tx:
        before = await _hold(tx, actor, club_id, event_id)
        link = next((one for one in before.worlds if one.id == link_id), None)
        if link is None:
            raise _link_unknown()
        if link.confirmation is Confirmation.CONFIRMED:
            return before
        await tx.execute(
            update(EventWorld)
            .where(EventWorld.club_id == club_id, EventWorld.id == link_id)
            .values(confirmation=Confirmation.CONFIRMED)
        )
        details = {"world": link.world_id}
        return await _write(tx, actor, club_id, before, "event.world_confirmed", {}, details)


async def unlink_world(db: Database, actor: Actor, club_id: UUID, event_id: UUID, link_id: UUID) -> EventView:
    """Take a world from the event."""
    async with db.transaction() as tx:
        before = await _hold(tx, actor, club_id, event_id)
        link = next((one for one in before.worlds if one.id == link_id), None)
        if link is None:
            raise _link_unknown()
        await tx.execute(delete(EventWorld).where(EventWorld.club_id == club_id, EventWorld.id == link_id))
        details = {"world": link.world_id}
        return await _write(tx, actor, club_id, before, "event.world_unlinked", {}, details)


async def _set_publication(
    db: Database, actor: Actor, club_id: UUID, event_id: UUID, publication: Publication, action: str
) -> EventView:
    async with db.transaction() as tx:
        before = await _hold(tx, actor, club_id, event_id)
        if before.publication is publication:
            return before
        return await _write(tx, actor, club_id, before, action, {"publication": publication})


async def _hold(tx: Transaction, actor: Actor, club_id: UUID, event_id: UUID) -> EventView:
    """The event as it is once its row is locked: who waited for another writer reads what that one wrote."""
    await require(tx, actor, club_id, Permission.MANAGE_EVENTS, scope=Scope.EVENTS)
    await tx.execute(
        select(Event.id).where(Event.club_id == club_id, Event.id == event_id).with_for_update(key_share=True)
    )
    found = await read_event(tx, club_id, event_id)
    if found is None:
        raise event_unknown()
    return found


async def _write(
    tx: Transaction,
    actor: Actor,
    club_id: UUID,
    before: EventView,
    action: str,
    values: dict[str, Any],
    details: dict[str, Any] | None = None,
) -> EventView:
    await _update(tx, club_id, before.id, values)
    return await _written(tx, actor, club_id, before.id, action, before, details)


async def _update(tx: Transaction, club_id: UUID, event_id: UUID, values: dict[str, Any]) -> None:
    await tx.execute(
        update(Event)
        .where(Event.club_id == club_id, Event.id == event_id)
        .values(values | {"revision": Event.revision + 1, "updated_at": NOW})
    )


async def _written(
    tx: Transaction,
    actor: Actor,
    club_id: UUID,
    event_id: UUID,
    action: str,
    before: EventView | None,
    details: dict[str, Any] | None,
) -> EventView:
    """What every write ends with: the log, the listeners, the hint."""
    after = await read_event(tx, club_id, event_id)
    assert after is not None
    await log(tx, club_id, actor, action, "event", event_id, details)
    change = EventChange(
        club_id,
        event_id,
        before.time if before else None,
        after.time,
        is_cancelled=before is not None
        and before.status is EventStatus.SCHEDULED
        and after.status is EventStatus.CANCELLED,
    )
    await _tell(tx, change)
    return after


async def _tell(tx: Transaction, change: EventChange) -> None:
    await event_changed(tx, change)
    tx.publish(Hint(change.club_id, TOPIC))


def _columns(fields: EventFields) -> dict[str, Any]:
    return {
        "title": fields.title,
        "description": fields.description,
        "zone": fields.zone,
        **asdict(columns_of(fields.time)),
    }


def _changes(before: EventView, after: EventFields) -> dict[str, Any]:
    """What an edit changed, in the words of the log."""
    changed: dict[str, Any] = {
        name: getattr(after, name)
        for name in ("title", "description", "zone")
        if getattr(before, name) != getattr(after, name)
    }
    if before.time != after.time:
        changed |= {
            name: None if value is None else str(value)
            for name, value in asdict(columns_of(after.time)).items()
            if name not in ("sort_at", "over_at") and value != asdict(columns_of(before.time))[name]
        }
    return changed


async def _require_room(tx: Transaction, club_id: UUID) -> None:
    there = (
        select(Event.id)
        .where(
            Event.club_id == club_id,
            Event.removed_at.is_(None),
            Event.over_at > NOW,
            Event.sort_at > NOW - LONGEST,
        )
        .limit(EVENTS_MOST)
        .subquery()
    )
    if await tx.scalar(select(func.count()).select_from(there)) >= EVENTS_MOST:
        raise Conflict(
            "events_full",
            f"A club has at most {EVENTS_MOST} events that are not over.",
            advice="Remove some that nobody needs first.",
        )


def _valid_world_id(text: str) -> str:
    given = text.strip()
    if not 1 <= len(given) <= WORLD_ID_LENGTH or not given.isprintable():
        raise Invalid(
            "world_malformed",
            "The world's id is empty, too long or holds control characters.",
            advice="Copy it from the world's page on vrchat.com: it begins with wrld_.",
            field="world_id",
        )
    return given.lower() if is_world_id(given) else given


def _link_unknown() -> NotFound:
    return NotFound("world_unknown", "The event is not linked to this world.", advice="Load the event again.")


def _imported_already(error: IntegrityError) -> Conflict:
    if "events_import_uid_idx" not in str(error.orig):
        raise error
    return Conflict(
        "event_imported",
        "This entry of the calendar was imported already.",
        advice="Import the calendar again to see what changed.",
    )
