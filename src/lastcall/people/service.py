"""What operators do to people: add, block, make an operator."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, NotAllowed, NotFound
from lastcall.mail.addresses import valid_address
from lastcall.names import valid_name
from lastcall.people.actor import Actor, require_operator
from lastcall.people.api_tokens import revoke_all_tokens
from lastcall.people.audit import audit
from lastcall.people.holding import hold_operator, no_longer_operator
from lastcall.people.links import end_links
from lastcall.people.listeners import person_blocked
from lastcall.people.sessions import end_all_sessions
from lastcall.people.tables import Person


async def add_person(
    db: Database, email: str, display_name: str, *, operator: bool = False, actor: Actor | None = None
) -> UUID:
    """Add a person who may sign in; answers their id. No ``actor`` means the host's command line.

    Raises ``Invalid`` for a malformed address or name and ``Conflict`` when the address is taken (without
    regard to case).
    """
    require_operator(actor)
    email, display_name = valid_address(email), valid_name(display_name, field="display_name")
    person_id = new_id()
    async with db.transaction() as tx:
        await hold_operator(tx, actor)
        try:
            async with db.transaction() as inner:
                await inner.execute(
                    insert(Person).values(
                        id=person_id, email=email, display_name=display_name, is_operator=operator
                    )
                )
        except IntegrityError as error:
            raise email_taken(email) from error
        await audit(tx, actor.person_id if actor else None, "person.added", str(person_id), operator=operator)
    return person_id


def email_taken(email: str) -> Conflict:
    """For operators and the command line only: nobody else is told who has an account."""
    return Conflict(
        "email_taken",
        f"A person with the address {email} exists already.",
        advice="Make a sign-in link for them instead.",
    )


async def block_person(db: Database, actor: Actor | None, person_id: UUID) -> None:
    """Take away a person's sessions, tokens and all they may do, in every club, at once. Blocking twice is
    once. Nobody blocks themself: so an operator always remains.
    """
    _require_recent_operator(actor, person_id)
    async with db.transaction() as tx:
        await person_blocked(tx, person_id)
        await _lock(tx, actor, person_id)
        await person_blocked(tx, person_id)  # for a club that let them in until the lock was had
        blocked = await tx.scalar(
            update(Person)
            .where(Person.id == person_id, Person.blocked_at.is_(None))
            .values(blocked_at=NOW)
            .returning(Person.id)
        )
        if blocked is None:
            return
        await end_links(tx, person_id)
        await end_all_sessions(db, person_id)
        await revoke_all_tokens(tx, person_id)
        await audit(tx, actor.person_id if actor else None, "person.blocked", str(person_id))


async def unblock_person(db: Database, actor: Actor | None, person_id: UUID) -> None:
    """Give a blocked person their roles' authority back; they sign in anew and make new tokens. Raises
    ``Conflict`` for an erased person.
    """
    _require_recent_operator(actor, person_id)
    async with db.transaction() as tx:
        person = await _lock(tx, actor, person_id)
        if person.erased_at is not None:
            raise Conflict("person_erased", "This person was erased, and that is for good.")
        if person.blocked_at is None:
            return
        await tx.execute(update(Person).where(Person.id == person_id).values(blocked_at=None))
        await audit(tx, actor.person_id if actor else None, "person.unblocked", str(person_id))


async def set_operator(db: Database, actor: Actor | None, person_id: UUID, *, is_operator: bool) -> None:
    """Make a person an operator, or no longer one. Nobody does it to themself: so an operator always remains."""
    _require_recent_operator(actor, person_id)
    async with db.transaction() as tx:
        person = await _lock(tx, actor, person_id)
        if person.is_operator == is_operator:
            return
        await tx.execute(update(Person).where(Person.id == person_id).values(is_operator=is_operator))
        action = "person.made_operator" if is_operator else "person.no_longer_operator"
        await audit(tx, actor.person_id if actor else None, action, str(person_id))


def _require_recent_operator(actor: Actor | None, person_id: UUID) -> None:
    require_operator(actor)
    if actor is None:
        return
    actor.require_recent()
    if actor.person_id == person_id:
        raise NotAllowed(
            "not_to_oneself",
            "You cannot do this to yourself.",
            advice="Another operator can, and so can the command line of the host.",
        )


async def _lock(tx: Transaction, actor: Actor | None, person_id: UUID) -> Row[Any]:
    """The person, locked together with the operator who acts, in the order of their ids: of two operators who
    turn on each other at once, the second is one no longer and is refused.
    """
    ids = {person_id} | ({actor.person_id} if actor else set())
    rows = await tx.execute(
        select(Person.id, Person.is_operator, Person.blocked_at, Person.erased_at)
        .where(Person.id.in_(ids))
        .order_by(Person.id)
        .with_for_update(key_share=True)
    )
    people = {row.id: row for row in rows.all()}
    if actor is not None and not (
        people[actor.person_id].is_operator and not people[actor.person_id].blocked_at
    ):
        raise no_longer_operator()
    if person_id not in people:
        raise NotFound("person_unknown", "There is no such person.")
    return people[person_id]
