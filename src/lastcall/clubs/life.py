"""The life of a club: pause, resume, archive, bring back, delete.

Each step leaves one state for another, moves the gate, is in the activity log and tells the listeners, all in
one transaction. The owner, an operator or the host's command line (no ``actor``) may; archiving and deleting
need a person who has just shown that it is them.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, update

from lastcall.clubs.activity import COMMAND_LINE, System, log
from lastcall.clubs.gates import bump_gate
from lastcall.clubs.listeners import ClubChange, club_changed
from lastcall.clubs.policy import require_owner_or_operator
from lastcall.clubs.queries import ClubSettings, read_settings
from lastcall.clubs.tables import Club
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.deadlines.signals import Signal
from lastcall.errors import Conflict, Invalid
from lastcall.people.actor import Actor
from lastcall.people.audit import audit
from lastcall.people.scopes import Scope

CLUB_DELETION = "club_deletion"
"""Name of the owner that removes a deleted club's rows; signals carry it."""
CLUB_TOPIC = "club"
"""Topic of the ``Hint`` for pages that show a club's settings or state."""

_NOT_PAUSED = {"paused_at": None, "pause_reason": None}


async def pause_club(db: Database, actor: Actor | None, club_id: UUID) -> ClubSettings:
    """Stop what the club does by itself (retention, agents); reviewed operations go on.

    Raises ``Conflict`` with the fresh settings when the club is not active.
    """
    values = {"state": "paused", "paused_at": NOW, "pause_reason": "manual"}
    return await _step(db, actor, club_id, {"active"}, values, ClubChange.PAUSED)


async def resume_club(db: Database, actor: Actor | None, club_id: UUID) -> ClubSettings:
    """Let a club go on that was paused by hand. Errors as for ``pause_club``, and ``Conflict``
    (``paused_by_budget``) for one that its budget paused."""
    return await _step(db, actor, club_id, {"paused"}, {"state": "active", **_NOT_PAUSED}, ClubChange.RESUMED)


async def pause_for_budget(tx: Transaction, club_id: UUID, *, by: System) -> bool:
    """Pause an active club in the accounting transaction, which has moved the club's gate; whether it did. One that
    is paused already keeps its reason, and an archived club never becomes paused (ACC-07).
    """
    values = {"state": "paused", "paused_at": NOW, "pause_reason": "budget"}
    return await _budget_step(tx, club_id, (Club.state == "active",), values, ClubChange.PAUSED, by)


async def resume_after_budget(tx: Transaction, club_id: UUID, *, by: System) -> bool:
    """Let a club go on that its budget paused, and no other; whether it did. The caller has moved the gate."""
    by_budget = (Club.state == "paused", Club.pause_reason == "budget")
    values = {"state": "active", **_NOT_PAUSED}
    return await _budget_step(tx, club_id, by_budget, values, ClubChange.RESUMED, by)


async def archive_club(db: Database, actor: Actor | None, club_id: UUID) -> ClubSettings:
    """Close the club: it is disconnected, what was not sent never is, and nothing runs. Everything stays to be
    read. Errors as for ``pause_club``, and ``NotAllowed`` for a person who must first confirm."""
    if actor is not None:
        actor.require_recent()
    values = {"state": "archived", "archived_at": NOW, **_NOT_PAUSED}
    return await _step(db, actor, club_id, {"active", "paused"}, values, ClubChange.ARCHIVED)


async def unarchive_club(db: Database, actor: Actor | None, club_id: UUID) -> ClubSettings:
    """Bring an archived club back, active and not connected. Errors as for ``pause_club``."""
    values = {"state": "active", "archived_at": None}
    return await _step(db, actor, club_id, {"archived"}, values, ClubChange.UNARCHIVED)


async def delete_club(db: Database, actor: Actor | None, club_id: UUID, *, confirm_slug: str) -> None:
    """Delete an archived club for good: from now on it exists for nobody, and ``deletion.py`` removes its rows.

    ``confirm_slug`` is the club's short name, typed by the person. Raises ``Invalid`` when it is another,
    ``Conflict`` when the club is not archived or something that was sent still waits for its outcome, and
    ``NotAllowed`` for a person who must first confirm that it is them.
    """
    if actor is not None:
        actor.require_recent()
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        await require_owner_or_operator(tx, actor, club_id, scope=Scope.CLUBS)
        before = await read_settings(tx, club_id)
        if confirm_slug != before.slug:
            raise Invalid(
                "slug_differs",
                f"“{confirm_slug}” is not the short name of this club.",
                advice="Type the name as it stands in the club's address.",
                field="confirm_slug",
            )
        since = await _change(tx, before, {"archived"}, {"state": "deleting"})
        # The log goes with the club; that it was deleted, and by whom, stays in the server's audit.
        await audit(tx, actor.person_id if actor else None, "club.deleted", str(club_id), slug=before.slug)
        await club_changed(tx, club_id, ClubChange.DELETED)
        tx.publish(Signal(CLUB_DELETION, since))
        tx.publish(Hint(club_id, CLUB_TOPIC))


async def _budget_step(
    tx: Transaction,
    club_id: UUID,
    leaves: tuple[ColumnElement[bool], ...],
    values: dict[str, Any],
    change: ClubChange,
    by: System,
) -> bool:
    step = update(Club).where(Club.id == club_id, *leaves).values(**values, updated_at=Club.forward())
    if await tx.scalar(step.returning(Club.id)) is None:
        return False
    await log(tx, club_id, by, f"club.{change}", "club", club_id, {"reason": "budget"})
    await club_changed(tx, club_id, change)
    tx.publish(Hint(club_id, CLUB_TOPIC))
    return True


async def _step(
    db: Database,
    actor: Actor | None,
    club_id: UUID,
    leaves: set[str],
    values: dict[str, Any],
    change: ClubChange,
) -> ClubSettings:
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        await require_owner_or_operator(tx, actor, club_id, scope=Scope.CLUBS)
        before = await read_settings(tx, club_id)
        if change is ClubChange.RESUMED and before.pause_reason == "budget":
            raise Conflict(
                "paused_by_budget",
                "This club has used up its budget.",
                advice="Raise the budget, which resumes the club.",
                fresh=before,
            )
        await _change(tx, before, leaves, values)
        await log(tx, club_id, actor or COMMAND_LINE, f"club.{change}", "club", club_id)
        await club_changed(tx, club_id, change)
        tx.publish(Hint(club_id, CLUB_TOPIC))
        return await read_settings(tx, club_id)


async def _change(tx: Transaction, before: ClubSettings, leaves: set[str], values: dict[str, Any]) -> Any:
    """Guarded by the states it may leave; answers when it happened."""
    changed = await tx.scalar(
        update(Club)
        .where(Club.id == before.id, Club.state.in_(leaves))
        .values(**values, updated_at=Club.forward())
        .returning(Club.updated_at)
    )
    if changed is None:
        needed = " or ".join(sorted(leaves))
        raise Conflict(
            "club_state",
            f"This club is {before.state}; that can be done with one that is {needed}.",
            advice="Look at the club as it is now.",
            fresh=before,
        )
    return changed
