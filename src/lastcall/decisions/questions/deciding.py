"""Deciding: one of the options is chosen, and what it does is done."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import select

from lastcall.clubs.policy import require_open, require_staff
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.decisions.asking import NOTE_MOST, let_decide
from lastcall.decisions.questions.actions import action_named
from lastcall.decisions.questions.asking import (
    DecisionStatus,
    decision_unknown,
    end,
    fresh,
    hold,
    read,
    require_waiting,
)
from lastcall.errors import Conflict, Invalid
from lastcall.names import valid_note
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope


async def decide(
    db: Database, actor: Actor, club_id: UUID, decision_id: UUID, option: str, *, note: str | None = None
) -> dict[str, Any] | None:
    """Choose ``option`` and do what it does; answers what that answered. The asker is told, and shown ``note``.

    Needs ``decide_approvals`` and whatever the action asks for. The same person choosing the same again is answered the
    same. Raises ``Conflict`` when it was decided otherwise, was called off or has expired, and in an archived club;
    ``NotAllowed`` for one's own, ``NotFound`` for one they may not see, ``Invalid`` for an option it does not have, and
    what the action refuses with: then nothing was done and it stays open.
    """
    note = valid_note(note, most=NOTE_MOST)
    async with db.transaction() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.DECISIONS)
        seen = await read(tx, club_id, decision_id)
        let_decide(seen, actor, standing, own="own_decision", unknown=decision_unknown())
        if option not in {one["key"] for one in seen.options}:
            raise Invalid(
                "option_unknown",
                "This decision has no such option.",
                advice="Choose one that it has.",
                field="option",
            )
        action = None if seen.action_name is None else action_named(seen.action_name)
        if action is not None and seen.status == DecisionStatus.OPEN:
            await action.lock(tx, club_id, seen.action_body, option)
        row = await hold(tx, club_id, decision_id)
        if row.decided_by == actor.person_id and row.decided_option == option:
            return None if row.action_result is None else dict(row.action_result)
        require_waiting(row)
        if await tx.scalar(select(row.expires_at <= NOW)):
            raise Conflict(
                "decision_ended",
                "The time for this decision is over.",
                advice="Let it be asked again.",
                fresh=fresh(row),
            )
        await require_open(tx, club_id)
        result: dict[str, Any] | None = None
        if action is not None:
            result = await action.apply(db, actor, club_id, decision_id, row.action_body, option)
        decided = {
            "decided_option": option,
            "decided_by": actor.person_id,
            "decision_note": note,
            "action_result": result,
        }
        await end(tx, actor, row, DecisionStatus.DECIDED, decided)
    return result
