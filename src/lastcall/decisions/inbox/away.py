"""Putting an item out of one's own sight, and back. The club's record has none of it: nothing changes for others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import delete, select, text
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.clubs.policy import require_staff
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.decisions.inbox.source import Source, sources
from lastcall.decisions.inbox.tables import InboxDismissal
from lastcall.errors import Conflict, Invalid
from lastcall.people.actor import Actor

SNOOZE_MOST = timedelta(days=5 * 365)
TOPIC = "inbox"  # of the hints for live pages


@dataclass(frozen=True)
class Until:
    """How long an item stays away: until ``time``, or (null) until something happens to it."""

    time: datetime | None = None


async def put_away(
    db: Database,
    actor: Actor,
    club_id: UUID,
    source: Source,
    item_id: UUID,
    until: Until,
    *,
    seen: datetime | None = None,
) -> None:
    """Put the item out of the actor's own sight. ``seen`` is its last activity as they saw it; null: whatever it is.

    Raises the source's ``NotFound`` for one that waits no more or that they may not see, ``Conflict`` for one to which
    something happened after ``seen``, so that nothing is put away unseen, and ``Invalid`` for a time that is over or
    more than ``SNOOZE_MOST`` ahead.
    """
    async with db.transaction() as tx:
        activity_at = await _readable(tx, actor, club_id, source, item_id)
        if seen is not None and seen < activity_at:
            raise Conflict(
                "item_moved",
                "Something happened to this meanwhile.",
                advice="Look at it as it is now, and decide again.",
                fresh=activity_at,
            )
        if until.time is not None:
            _check(until.time, await tx.scalar(select(NOW)))
        await _drop_the_moot(tx, actor, club_id)
        changed = {"until": until.time, "activity_at": activity_at}
        await tx.execute(
            upsert(InboxDismissal)
            .values(club_id=club_id, id=new_id(), person_id=actor.person_id, item_id=item_id, **changed)
            .on_conflict_do_update(index_elements=["club_id", "person_id", "item_id"], set_=changed)
        )
        tx.publish(Hint(club_id, TOPIC))


async def show_again(db: Database, actor: Actor, club_id: UUID, source: Source, item_id: UUID) -> None:
    """Undo it. What is in sight stays so; errors as above."""
    async with db.transaction() as tx:
        await _readable(tx, actor, club_id, source, item_id)
        await tx.execute(
            delete(InboxDismissal).where(
                InboxDismissal.club_id == club_id,
                InboxDismissal.person_id == actor.person_id,
                InboxDismissal.item_id == item_id,
            )
        )
        tx.publish(Hint(club_id, TOPIC))


async def _readable(tx: Transaction, actor: Actor, club_id: UUID, source: Source, item_id: UUID) -> datetime:
    found = await require_staff(tx, actor, club_id, scope=source.scope)
    if source.permission is not None and not found.holds(source.permission):
        raise source.unknown()
    where = f"s.club_id = :club_id and s.id = :id and {source.waits}"
    statement = text(f"select s.{source.activity} from {source.table} s where {where}")  # noqa: S608 - own names
    activity_at: datetime | None = await tx.scalar(statement, {"club_id": club_id, "id": item_id})
    if activity_at is None:
        raise source.unknown()
    return activity_at


def _check(time: datetime, now: datetime) -> None:
    if not now < time <= now + SNOOZE_MOST:
        raise Invalid(
            "snooze_out_of_range",
            "An item is put away until a time from now to five years ahead.",
            advice="Choose another time.",
            field="until",
        )


async def _drop_the_moot(tx: Transaction, actor: Actor, club_id: UUID) -> None:
    """Forget what this person put away and what waits no more, so that it does not pile up over the years."""
    waiting = " or ".join(
        f"exists (select from {source.table} s where s.club_id = d.club_id and s.id = d.item_id"
        f" and {source.waits})"
        for source in sources()
    )
    own = "d.club_id = :club_id and d.person_id = :person"
    moot = text(f"delete from inbox_dismissals d where {own} and not ({waiting})")  # noqa: S608 - own names
    await tx.execute(moot, {"club_id": club_id, "person": actor.person_id})
