"""The club's own log of what happened and who did it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import insert

from lastcall.clubs.tables import ActivityEntry
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.people.actor import Actor


@dataclass(frozen=True)
class System:
    """Lastcall itself, under the name of the part that acted."""

    name: str


COMMAND_LINE = System("command line")


async def log(
    tx: Transaction,
    club_id: UUID,
    actor: Actor | System,
    action: str,
    entity_type: str,
    entity_id: UUID,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Write one entry in the caller's transaction. ``details`` hold ids and choices, never secrets."""
    is_person = isinstance(actor, Actor)
    await tx.execute(
        insert(ActivityEntry).values(
            club_id=club_id,
            id=new_id(),
            actor_kind="person" if is_person else "system",
            actor_id=actor.person_id if isinstance(actor, Actor) else None,
            actor_name=actor.display_name if isinstance(actor, Actor) else actor.name,
            action=action,
            entity_type=entity_type,
            entity_id=entity_id,
            details=dict(details or {}),
        )
    )
