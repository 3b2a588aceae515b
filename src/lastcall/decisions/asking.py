"""Who asks for an approval or a decision, and the forms of what is asked."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from lastcall.access.agents.policy import require_agent
from lastcall.clubs.activity import System
from lastcall.clubs.policy import club_unknown, require_open, require_staff
from lastcall.db.transaction import Transaction
from lastcall.decisions.deliveries.deliver import Message, Recipient, ToAgent, ToPerson, deliver
from lastcall.errors import Conflict, Invalid
from lastcall.names import valid_name, valid_note
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.scopes import Scope

Asker = Actor | AgentActor | System
"""Somebody on the staff, an agent, or a part of Lastcall itself."""

_KEY = re.compile(r"[A-Za-z0-9_.:-]{1,200}\Z")
NOTE_MOST = 1000  # characters


async def require_asker(tx: Transaction, asker: Asker, club_id: UUID) -> None:
    """Let them ask in this club, or raise: staff of any role, an agent with the grant ``ask``. Holds the club's gate.
    ``Conflict`` in an archived club."""
    match asker:
        case Actor():
            await require_staff(tx, asker, club_id, scope=Scope.DECISIONS)
        case AgentActor():
            if asker.club_id != club_id:
                raise club_unknown()
            await require_agent(tx, asker, AgentGrant.ASK)
        case System():
            pass
    await require_open(tx, club_id)


def asker_columns(asker: Asker) -> dict[str, Any]:
    """What a row says of who asked."""
    match asker:
        case Actor():
            return {"requested_by_kind": "person", "requested_by_person_id": asker.person_id}
        case AgentActor():
            return {"requested_by_kind": "agent", "requested_by_agent_id": asker.agent_id}
        case System():
            return {"requested_by_kind": "system", "requested_by_system": asker.name}


def is_theirs(row: Any, asker: Asker) -> bool:
    """Whether they asked for what this row (with the columns of ``Asked``) is."""
    match asker:
        case Actor():
            return bool(row.requested_by_person_id == asker.person_id)
        case AgentActor():
            return bool(row.requested_by_agent_id == asker.agent_id)
        case System():
            return bool(row.requested_by_system == asker.name)


async def tell_asker(tx: Transaction, club_id: UUID, row: Any, message: Message) -> None:
    """Tell whoever asked for what this row is. Lastcall itself is told nothing."""
    recipient: Recipient
    if row.requested_by_person_id is not None:
        recipient = ToPerson(row.requested_by_person_id)
    elif row.requested_by_agent_id is not None:
        recipient = ToAgent(row.requested_by_agent_id)
    else:
        return
    await deliver(tx, club_id, [recipient], message)


def valid_title(text: str, *, most: int) -> str:
    """The title in the form it is stored. Raises ``Invalid`` naming ``title``."""
    return valid_name(text, "title", most=most, what="The title")


def valid_text(text: str | None, field: str, *, most: int) -> str:
    """Several lines of text, or none; raises ``Invalid`` naming ``field``."""
    try:
        return valid_note(text, most=most) or ""
    except Invalid as error:
        raise Invalid(
            "text_malformed",
            "The text is too long or holds control characters.",
            advice=f"Write at most {most} characters.",
            field=field,
        ) from error


def valid_key(key: str | None, field: str) -> str | None:
    """A key that a program chose: letters, digits and ``_ . : -``. Raises ``Invalid`` naming ``field``."""
    if key is not None and not _KEY.match(key):
        raise Invalid(
            "key_malformed",
            "A key is made of letters, digits and the signs _ . : - and has 1 to 200 of them.",
            advice="Choose such a key.",
            field=field,
        )
    return key


def digest_of(asked: Mapping[str, Any]) -> bytes:
    """What makes two asks under one key the same one, whatever the order of their fields."""
    return hashlib.sha256(json.dumps(asked, sort_keys=True, separators=(",", ":")).encode()).digest()


def key_used() -> Conflict:
    """The answer to another ask under a key that stands for one already."""
    return Conflict(
        "idempotency_key_used",
        "This key was used for something else that was asked.",
        advice="Make a new key for each thing to ask.",
        field="key",
    )
