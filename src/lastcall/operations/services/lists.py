"""Keep recipient lists (ENQ-14). Every change names the revision that the person saw."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec
from sqlalchemy import delete, func, insert, select, update

from lastcall.clubs.activity import log
from lastcall.clubs.policy import Standing, require_open, require_staff
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid
from lastcall.names import valid_name
from lastcall.operations.kinds.fields import SHAPES, UserId
from lastcall.operations.lists import ListView, recipient_list, require_inviting
from lastcall.operations.paper_tables import NAME_MOST, RECIPIENTS_MOST, RecipientList
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

LISTS_MOST = 200
"""Lists of one club at most: a local limit against floods."""


async def create_list(
    db: Database, actor: Actor, club_id: UUID, name: str, user_ids: Sequence[str]
) -> ListView:
    """Make a list, for whoever may invite members or manage instances.

    Ids are trimmed, put in small letters and named once, in the order given. Raises ``Invalid`` with the field, and
    ``Conflict`` at ``LISTS_MOST``.
    """
    name, kept = _checked(name, user_ids)
    list_id = new_id()
    async with db.transaction() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.OPERATIONS)
        require_inviting(standing)
        await require_open(tx, club_id)
        await _require_room(tx, club_id)
        people = {"created_by": actor.person_id, "updated_by": actor.person_id}
        await tx.execute(
            insert(RecipientList).values(
                club_id=club_id, id=list_id, name=name, user_ids=kept, revision=1, **people
            )
        )
        await _log(tx, club_id, actor, "list.created", list_id, len(kept))
        return await recipient_list(tx, standing, club_id, list_id)


async def edit_list(
    db: Database, actor: Actor, club_id: UUID, list_id: UUID, name: str, user_ids: Sequence[str], seen: int
) -> ListView:
    """Set what the list says. ``seen`` is the revision that the person had before them; raises ``Conflict`` with the
    list as it is when that is not the newest, and ``NotFound`` when it is gone.
    """
    name, kept = _checked(name, user_ids)
    async with db.transaction() as tx:
        standing, before = await _seen(tx, actor, club_id, list_id, seen)
        if (before.name, list(before.user_ids)) == (name, kept):
            return before
        await tx.execute(
            update(RecipientList)
            .where(RecipientList.club_id == club_id, RecipientList.id == list_id)
            .values(
                name=name,
                user_ids=kept,
                revision=RecipientList.revision + 1,
                updated_by=actor.person_id,
                updated_at=NOW,
            )
        )
        await _log(tx, club_id, actor, "list.edited", list_id, len(kept))
        return await recipient_list(tx, standing, club_id, list_id)


async def delete_list(db: Database, actor: Actor, club_id: UUID, list_id: UUID, seen: int) -> None:
    """Remove the list; what was queued with it stays. Errors as for ``edit_list``."""
    async with db.transaction() as tx:
        _, before = await _seen(tx, actor, club_id, list_id, seen)
        await tx.execute(
            delete(RecipientList).where(RecipientList.club_id == club_id, RecipientList.id == list_id)
        )
        await _log(tx, club_id, actor, "list.deleted", list_id, len(before.user_ids))


async def _require_room(tx: Transaction, club_id: UUID) -> None:
    there = select(RecipientList.id).where(RecipientList.club_id == club_id).limit(LISTS_MOST).subquery()
    if await tx.scalar(select(func.count()).select_from(there)) >= LISTS_MOST:
        raise Conflict(
            "lists_full",
            f"A club keeps at most {LISTS_MOST} recipient lists.",
            advice="Delete one that nobody needs first.",
        )


async def _seen(
    tx: Transaction, actor: Actor, club_id: UUID, list_id: UUID, seen: int
) -> tuple[Standing, ListView]:
    """The actor's standing, and the list, locked, if it still is as they saw it."""
    standing = await require_staff(tx, actor, club_id, scope=Scope.OPERATIONS)
    require_inviting(standing)
    await tx.execute(
        select(RecipientList.id)
        .where(RecipientList.club_id == club_id, RecipientList.id == list_id)
        .with_for_update()
    )
    found = await recipient_list(tx, standing, club_id, list_id)
    if found.revision != seen:
        raise Conflict(
            "revision_stale",
            "Refresh to continue.",
            advice="The list was changed since you opened it.",
            fresh=found,
        )
    return standing, found


def _checked(name: str, user_ids: Sequence[str]) -> tuple[str, list[str]]:
    name = valid_name(name, most=NAME_MOST, what="The name of the list")
    kept = list(dict.fromkeys(user_id.strip().lower() for user_id in user_ids))
    if not 1 <= len(kept) <= RECIPIENTS_MOST:
        raise Invalid(
            "recipient_count",
            f"A list holds 1 to {RECIPIENTS_MOST} people; this one holds {len(kept)}.",
            advice="Split it into several lists." if kept else "Add at least one VRChat user id.",
            field="userIds",
        )
    for number, user_id in enumerate(kept):
        try:
            msgspec.convert(user_id, UserId)
        except msgspec.ValidationError:
            raise Invalid(
                "field_invalid",
                f"Number {number + 1} must be {SHAPES['targetUserId']}.",
                advice="Correct or remove it.",
                field=f"userIds.{number}",
            ) from None
    return name, kept


async def _log(tx: Transaction, club_id: UUID, actor: Actor, action: str, list_id: UUID, people: int) -> None:
    await log(tx, club_id, actor, action, "recipient_list", list_id, {"people": people})
