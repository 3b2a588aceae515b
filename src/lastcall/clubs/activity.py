"""The club's own log of what happened and who did it: how entries are written. ``activity_log.py`` reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import insert

from lastcall.clubs.tables import ActivityEntry
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.people.actor import Actor, AgentActor

TEXT_LENGTH = 200
"""Characters of one text in an entry's details; the rest is cut."""
REDACTED = "[redacted]"

_SECRET_KEY = re.compile(
    r"(?:^|_)(?:token|secret|password|passwd|code|cookie|key|hash|nonce|credential|authorization|bearer)$"
)
# Our own prefixes, and anything as long and as mixed as 32 random bytes in base 64 or hex.
_SECRET_TEXT = re.compile(
    r"\b(?:lc|lck|lca|lcc)_[A-Za-z0-9_-]{16,}|(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])|\b[0-9a-f]{64}\b"
)


@dataclass(frozen=True)
class System:
    """Lastcall itself, under the name of the part that acted."""

    name: str


COMMAND_LINE = System("command line")


async def log(
    tx: Transaction,
    club_id: UUID,
    actor: Actor | AgentActor | System,
    action: str,
    entity_type: str,
    entity_id: UUID,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Write one entry in the caller's transaction. ``details`` hold ids and choices, never secrets: they are
    ``redacted``."""
    await tx.execute(
        insert(ActivityEntry).values(
            club_id=club_id,
            id=new_id(),
            **_who(actor),
            action=action,
            entity_type=entity_type,
            entity_id=entity_id,
            details=redacted(details or {}),
        )
    )


def _who(actor: Actor | AgentActor | System) -> dict[str, Any]:
    match actor:
        case Actor():
            return {"actor_kind": "person", "actor_id": actor.person_id}
        case AgentActor():
            return {"actor_kind": "agent", "actor_id": actor.agent_id, "actor_name": actor.name}
        case System():
            return {"actor_kind": "system", "actor_name": actor.name}


def redacted(details: Mapping[str, Any], *, most: int = TEXT_LENGTH) -> dict[str, Any]:
    """The details as they may be kept: texts of more than ``most`` characters cut, and what looks like a secret taken
    out, by its key or by its own look, at any depth."""
    return {
        key: REDACTED if _SECRET_KEY.search(_snake(key)) else _kept(value, most)
        for key, value in details.items()
    }


def _kept(value: Any, most: int) -> Any:
    match value:
        case str():
            shown = _SECRET_TEXT.sub(REDACTED, value)
            return shown if len(shown) <= most else f"{shown[: most - 1]}…"
        case Mapping():
            return redacted(value, most=most)
        case list() | tuple() | set() | frozenset():
            return [_kept(entry, most) for entry in value]
        case _:
            return value


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower().replace("-", "_")
