"""What approvals and decisions have in common: who asks and who decides, their rows, and the forms of what is asked."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import FromClause, Row, select

from lastcall.access.agents.policy import require_agent
from lastcall.access.agents.tables import Agent
from lastcall.clubs.activity import System
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing, club_unknown, require_open, require_staff
from lastcall.db.clock import NOW
from lastcall.db.ids import new_id
from lastcall.db.transaction import Reader, Transaction
from lastcall.decisions.deliveries.deliver import Message, Recipient, ToAgent, ToPerson, deliver
from lastcall.errors import Conflict, Invalid, NotAllowed, NotFound
from lastcall.names import valid_name, valid_note
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.scopes import Scope

Asker = Actor | AgentActor | System
"""Somebody on the staff, an agent, or a part of Lastcall itself."""

_KEY = re.compile(r"[A-Za-z0-9_.:-]{1,200}\Z")
NOTE_MOST = 1000  # characters


async def let_in(tx: Reader, who: Actor | AgentActor, club_id: UUID, scope: Scope) -> bool:
    """Let in whoever may have to do with what is asked, staff of any role or an agent with the grant ``ask``, or raise;
    whether they may decide it. In a transaction this holds the club's gate."""
    if isinstance(who, AgentActor):
        if who.club_id != club_id:
            raise club_unknown()
        await require_agent(tx, who, AgentGrant.ASK)
        return False
    standing = await require_staff(tx, who, club_id, scope=scope)
    return standing.holds(Permission.DECIDE_APPROVALS)


async def require_asker(tx: Transaction, asker: Actor | AgentActor, club_id: UUID) -> None:
    """Let them ask in this club, or raise: as ``let_in``, and ``Conflict`` in an archived club."""
    await let_in(tx, asker, club_id, Scope.DECISIONS)
    await require_open(tx, club_id)


async def hold_agent(tx: Transaction, agent: AgentActor) -> None:
    """One at a time of what this agent asks or reports: two at once would judge by the same rows, such as by how many
    are open, or by which run is the newest."""
    await tx.execute(
        select(Agent.id)
        .where(Agent.club_id == agent.club_id, Agent.id == agent.agent_id)
        .with_for_update(key_share=True)
    )


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
    return all(getattr(row, name) == value for name, value in asker_columns(asker).items())


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


async def read_asked(tx: Reader, table: FromClause, club_id: UUID, item_id: UUID) -> Row[Any] | None:
    """The row as it stands; who may see it is the caller's question."""
    found = await tx.execute(select(table).where(table.c.club_id == club_id, table.c.id == item_id))
    return found.one_or_none()


async def hold_asked(tx: Transaction, table: FromClause, club_id: UUID, item_id: UUID) -> Row[Any] | None:
    """Lock the row, then read it in a new statement: of two who decide the second waits here and sees what the first
    decided."""
    await tx.execute(
        select(table.c.id)
        .where(table.c.club_id == club_id, table.c.id == item_id)
        .with_for_update(key_share=True)
    )
    return await read_asked(tx, table, club_id, item_id)


def let_decide(row: Any, actor: Actor, standing: Standing, *, own: str, unknown: NotFound) -> None:
    """Let whoever may decide go on. To others who may not see it, it is ``unknown``; its asker is refused as such, by
    the code ``own``."""
    if is_theirs(row, actor):
        raise NotAllowed(own, "Nobody decides what they asked for themselves.", advice="Ask somebody else.")
    if not standing.holds(Permission.DECIDE_APPROVALS):
        raise unknown


async def asked_row(
    tx: Transaction, asker: Asker, club_id: UUID, key: str | None, digest: bytes
) -> dict[str, Any]:
    """What a new row says of who asked and when, and by which ``key``. Raises ``Invalid`` for a malformed one."""
    now = await tx.scalar(select(NOW))
    return {
        **asker_columns(asker),
        "club_id": club_id,
        "id": new_id(),
        "idempotency_key": valid_key(key, "key"),
        "asked_digest": None if key is None else digest,
        "activity_at": now,
        "created_at": now,
    }


async def made_before(
    tx: Transaction, table: FromClause, asker: Asker, club_id: UUID, key: str | None, digest: bytes
) -> UUID | None:
    """The id of what this asker made under ``key``, whatever became of it. Raises ``Conflict`` where that was something
    else than ``digest`` says (``idempotency_key_used``)."""
    if key is None:
        return None
    mine = [table.c[name] == value for name, value in asker_columns(asker).items()]
    found = (
        await tx.execute(
            select(table.c.id, table.c.asked_digest).where(
                table.c.club_id == club_id, table.c.idempotency_key == key, *mine
            )
        )
    ).one_or_none()
    if found is None:
        return None
    if found.asked_digest != digest:
        raise Conflict(
            "idempotency_key_used",
            "This key was used for something else that was asked.",
            advice="Make a new key for each thing to ask.",
            field="key",
        )
    return UUID(str(found.id))


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
