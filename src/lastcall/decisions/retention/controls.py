"""Retention by hand: keep, let go, archive, revive, for whoever may, on what they saw.

None of it says anything about the item itself: it stays pending and can still be decided (RET-13), and its new
activity clears neither a keep nor an archive (RET-12).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from lastcall.clubs.activity import System
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.decisions.retention.kind import Kind
from lastcall.decisions.retention.view import RetentionView
from lastcall.decisions.retention.write import ARCHIVED, KEPT, REVIVED, UNKEPT, Decide, change
from lastcall.people.actor import Actor

NOT_ARCHIVED: dict[str, Any] = {
    "archived_at": None,
    "archived_reason": None,
    "archived_by_kind": None,
    "archived_by_person_id": None,
}


async def keep(
    db: Database, actor: Actor, club_id: UUID, kind: Kind, item_id: UUID, *, seen_version: int
) -> RetentionView:
    """Keep an item from being archived by itself; answers its retention afterwards.

    Works on one that nobody looked at yet (RET-16, ``seen_version`` 0). What is so already changes nothing. Raises
    ``Conflict`` with the fresh row when it moved since the person saw it, the kind's ``NotFound`` for an item they may
    not see and ``NotAllowed`` without ``manage_retention``.
    """
    return await _by_hand(db, actor, club_id, kind, item_id, KEPT, _keep(True), seen_version)


async def unkeep(
    db: Database, actor: Actor, club_id: UUID, kind: Kind, item_id: UUID, *, seen_version: int
) -> RetentionView:
    """Let a kept item go again; its days count as if nobody had kept it. Errors as for ``keep``."""
    return await _by_hand(db, actor, club_id, kind, item_id, UNKEPT, _keep(False), seen_version)


async def archive(
    db: Database, actor: Actor, club_id: UUID, kind: Kind, item_id: UUID, *, seen_version: int
) -> RetentionView:
    """Archive an item, kept or not. Errors as for ``keep``."""
    decide = archived_by(actor, "manual")
    return await _by_hand(db, actor, club_id, kind, item_id, ARCHIVED, decide, seen_version)


async def revive(
    db: Database, actor: Actor, club_id: UUID, kind: Kind, item_id: UUID, *, seen_version: int
) -> RetentionView:
    """Bring an archived item back; its days begin anew now. Errors as for ``keep``."""
    return await _by_hand(db, actor, club_id, kind, item_id, REVIVED, _revived, seen_version)


async def revive_in(
    tx: Transaction, club_id: UUID, kind: Kind, item_id: UUID, by: Actor | System
) -> RetentionView:
    """For a producer whose item must be seen again after it was archived: no activity write does that by itself
    (ACC-20). Who may is the caller's question."""
    return await change(tx, by, club_id, kind, item_id, REVIVED, _revived, seen_version=None)


def archived_by(actor: Actor, reason: str) -> Decide:
    """An archive by that person; nothing for what is archived already."""

    def decide(before: RetentionView) -> dict[str, Any]:
        if before.archived_at is not None:
            return {}
        return {
            "archived_at": NOW,
            "archived_reason": reason,
            "archived_by_kind": "person",
            "archived_by_person_id": actor.person_id,
            "archive_version": before.archive_version + 1,
        }

    return decide


def _keep(value: bool) -> Decide:
    return lambda before: {} if before.keep == value else {"keep": value}


def _revived(before: RetentionView) -> dict[str, Any]:
    return {} if before.archived_at is None else {**NOT_ARCHIVED, "revived_at": NOW}


async def _by_hand(
    db: Database,
    actor: Actor,
    club_id: UUID,
    kind: Kind,
    item_id: UUID,
    action: str,
    decide: Decide,
    seen_version: int,
) -> RetentionView:
    async with db.transaction() as tx:
        await kind.require_readable(tx, actor, club_id, scope=kind.scope)
        await require(tx, actor, club_id, Permission.MANAGE_RETENTION, scope=kind.scope)
        return await change(tx, actor, club_id, kind, item_id, action, decide, seen_version=seen_version)
