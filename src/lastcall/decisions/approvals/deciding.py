"""Deciding an approval: approve, reject, ask for a revision.

The order of locks is the house's: the club's gate, what the effect needs, the approval's row, and then whatever the
effect writes. Of two who decide at once one waits for the row and then sees what the other decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from lastcall.clubs.policy import require_open, require_staff
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.decisions.approvals.asking import say
from lastcall.decisions.approvals.machine import Event, Status
from lastcall.decisions.approvals.rows import (
    hold,
    move_of,
    read,
    require_decider,
    require_seen,
    write,
)
from lastcall.decisions.askers import BODY_MOST
from lastcall.decisions.asking import NOTE_MOST, valid_text
from lastcall.decisions.effects import Effect, effect_named
from lastcall.errors import Invalid
from lastcall.names import valid_note
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope


async def approve(
    db: Database,
    actor: Actor,
    club_id: UUID,
    approval_id: UUID,
    *,
    seen_revision: int,
    note: str | None = None,
    reviewed: Mapping[str, Any] | None = None,
) -> dict[str, Any] | None:
    """Say yes, and do at once what it carries, under the approver's own authority; answers what the effect answered.

    Needs ``decide_approvals`` and whatever the effect asks for. ``reviewed`` is what the approver confirms beyond what
    it says. Approving what this person approved already answers the same and does nothing. Raises ``Conflict`` when it
    was changed or decided meanwhile and in an archived club, ``NotAllowed`` for one's own, ``NotFound`` for one they
    may not see, and what the effect refuses with: then nothing was done and it waits as before.
    """
    note = valid_note(note, most=NOTE_MOST)
    async with db.transaction() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.DECISIONS)
        seen = await read(tx, club_id, approval_id)
        require_decider(seen, actor, standing)
        effect = None if seen.effect_name is None else effect_named(seen.effect_name)
        if effect is not None and Status(seen.status).is_open:
            await effect.lock(tx, club_id, seen.effect_body)
        row = await hold(tx, club_id, approval_id)
        if _is_repeated(row, actor, Status.APPROVED):
            return dict(row.effect_result) if row.effect_result is not None else None
        move = move_of(row, Event.APPROVE)
        require_seen(row, seen_revision)
        require_seen(row, seen.revision)  # the effect's locks are for what it said when they were taken
        await require_open(tx, club_id)
        result = await _apply(db, effect, actor, row, reviewed or {})
        decided = {"decided_at": NOW, "decided_by": actor.person_id, "decision_note": note}
        await write(tx, actor, row, move, {**decided, "effect_result": result})
    return result


async def reject(
    db: Database,
    actor: Actor,
    club_id: UUID,
    approval_id: UUID,
    *,
    seen_revision: int,
    note: str | None = None,
) -> None:
    """Say no; the asker is told, and shown ``note``. Rejecting what this person rejected already changes nothing.
    Errors as for ``approve``."""
    note = valid_note(note, most=NOTE_MOST)
    async with db.transaction() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.DECISIONS)
        row = await hold(tx, club_id, approval_id)
        require_decider(row, actor, standing)
        if _is_repeated(row, actor, Status.REJECTED):
            return
        move = move_of(row, Event.REJECT)
        require_seen(row, seen_revision)
        decided = {"decided_at": NOW, "decided_by": actor.person_id, "decision_note": note}
        await write(tx, actor, row, move, decided)


async def request_revision(
    db: Database, actor: Actor, club_id: UUID, approval_id: UUID, *, seen_revision: int, note: str
) -> None:
    """Send it back to its asker with what to change; it waits for them and nobody's list has it as waiting.

    ``note`` becomes a comment. Errors as for ``approve``, and ``Invalid`` without a note.
    """
    text = valid_text(note, "note", most=BODY_MOST)
    if not text:
        raise Invalid("note_needed", "Nothing says what is to be changed.", advice="Write it.", field="note")
    async with db.transaction() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.DECISIONS)
        row = await hold(tx, club_id, approval_id)
        require_decider(row, actor, standing)
        move = move_of(row, Event.REQUEST_REVISION)
        require_seen(row, seen_revision)
        await say(tx, actor, row, text, kind="revision_requested")
        await write(tx, actor, row, move, {})


async def _apply(
    db: Database, effect: Effect | None, actor: Actor, row: Any, reviewed: Mapping[str, Any]
) -> dict[str, Any] | None:
    if effect is None:
        if reviewed:
            raise Invalid(
                "nothing_reviewed",
                "This approval does nothing by itself.",
                field="reviewed",
                advice="Leave it out.",
            )
        return None
    return await effect.apply(db, actor, row.club_id, row.id, row.effect_body, reviewed)


def _is_repeated(row: Any, actor: Actor, status: Status) -> bool:
    return bool(row.status == status and row.decided_by == actor.person_id)
