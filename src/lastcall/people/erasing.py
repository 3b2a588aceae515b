"""Export of what is kept about a person, and their erasure.

Erasing pseudonymises: the person's id stays where it says who did what (the ledger keeps its truth), and nothing
that says who that was. It is for good; the mail address is free for somebody new.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import func, or_, select, update

from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, NotFound
from lastcall.people.actor import Actor, require_operator
from lastcall.people.audit import audit
from lastcall.people.holding import hold_actor, hold_operator
from lastcall.people.listeners import person_blocked, person_erasing
from lastcall.people.personal_data import ERASED_NAME, rows_about, sources
from lastcall.people.scopes import Scope
from lastcall.people.tables import Person


async def export_person(db: Database, actor: Actor | None, person_id: UUID) -> AsyncIterator[bytes]:
    """Everything that is kept about a person, as JSON lines: ``{"what": …, …}``, without secrets and without other
    people. For themself, an operator, or the host's command line (no ``actor``). Recorded in the audit.
    """
    _require_self_or_operator(actor, person_id, Scope.ACCOUNT)
    async with db.transaction() as tx:
        if await tx.scalar(select(Person.id).where(Person.id == person_id)) is None:
            raise person_unknown()
        await _require_still(tx, actor, person_id)
        await audit(tx, actor.person_id if actor else None, "person.exported", str(person_id))
    for source in sources():
        async for row in rows_about(db, source, person_id):
            yield json_line({"what": source.name, **row})


async def erase_person(db: Database, actor: Actor | None, person_id: UUID) -> None:
    """Erase a person for good: sessions and every way to sign in go at once, names and addresses with them.

    For themself or an operator, each having confirmed just now, or the host's command line (no ``actor``). Raises
    ``Conflict`` while they own clubs (naming them) and for the last operator. Erasing twice is once.
    """
    _require_self_or_operator(actor, person_id, Scope.ACCOUNT)
    if actor is not None:
        actor.require_recent()
    async with db.transaction(outermost=True) as tx:
        await person_erasing(tx, person_id)  # the gates, which come first in the lock order
        await _lock(tx, person_id)
        if await _is_erased(tx, person_id):
            return
        await _require_still(tx, actor, person_id)
        await person_blocked(tx, person_id)  # for a club that let them in until the lock was had
        for source in sources():
            if source.erase is not None:
                await source.erase(db, tx, person_id)
        await tx.execute(
            update(Person)
            .where(Person.id == person_id)
            .values(
                # No address of anybody: nothing is ever sent to .invalid (RFC 2606).
                email=f"{encode_id(person_id)}@erased.invalid",
                email_verified_at=None,
                display_name=ERASED_NAME,
                is_operator=False,
                blocked_at=NOW,
                erased_at=NOW,
            )
        )
        await audit(tx, actor.person_id if actor else None, "person.erased", str(person_id))


def json_line(row: dict[str, Any]) -> bytes:
    """One row of an export; ids in the form in which pages and API show them."""
    return msgspec.json.encode({name: _shown(value) for name, value in row.items()}) + b"\n"


def person_unknown() -> NotFound:
    return NotFound("person_unknown", "There is no such person.")


def _shown(value: Any) -> Any:
    match value:
        case UUID():
            return encode_id(value)
        case bytes() | memoryview():
            return bytes(value).hex()
        case list() | tuple():
            return [_shown(one) for one in value]
        case _:
            return value


def _require_self_or_operator(actor: Actor | None, person_id: UUID, scope: Scope) -> None:
    if actor is not None and actor.person_id == person_id:
        actor.require_scope(scope)
    elif actor is not None and not actor.is_operator:
        raise person_unknown()
    else:
        require_operator(actor)


async def _require_still(tx: Transaction, actor: Actor | None, person_id: UUID) -> None:
    """Nothing is handed out or erased for somebody who was signed out, blocked or relieved meanwhile."""
    if actor is not None and actor.person_id == person_id:
        await hold_actor(tx, actor)
    else:
        await hold_operator(tx, actor)


async def _lock(tx: Transaction, person_id: UUID) -> None:
    """Hold the person, and every operator, in the order of their ids: of two operators who leave at once the
    second finds itself the last.
    """
    await tx.execute(
        select(Person.id)
        .where(or_(Person.id == person_id, Person.is_operator & Person.blocked_at.is_(None)))
        .order_by(Person.id)
        .with_for_update(key_share=True)
    )


async def _is_erased(tx: Transaction, person_id: UUID) -> bool:
    """Whether there is nothing left to do. Raises ``NotFound``, and ``Conflict`` for the last operator."""
    others = (
        select(func.count())
        .select_from(Person)
        .where(Person.is_operator, Person.blocked_at.is_(None), Person.id != person_id)
        .scalar_subquery()
    )
    person = (
        await tx.execute(
            select(Person.is_operator, Person.erased_at, others.label("others")).where(Person.id == person_id)
        )
    ).one_or_none()
    if person is None:
        raise person_unknown()
    if person.is_operator and not person.others:
        raise Conflict(
            "last_operator",
            "Nobody else could run this server.",
            advice="Make somebody else an operator first.",
        )
    return person.erased_at is not None
