"""Commands on people: add and block."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.errors import Conflict, Invalid, NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.audit import audit
from lastcall.people.listeners import person_blocked
from lastcall.people.sessions import end_all_sessions
from lastcall.people.tables import Person

EMAIL_LENGTH = 254  # characters, RFC 5321's limit for a forward path
NAME_LENGTH = 80  # characters


async def add_person(
    db: Database, email: str, display_name: str, *, operator: bool = False, actor: Actor | None = None
) -> UUID:
    """Add a person who may sign in; answers their id. No ``actor`` means the host's command line.

    Raises ``Invalid`` for a malformed address or name and ``Conflict`` when the address is taken (without
    regard to case).
    """
    _require_operator(actor)
    email, display_name = _valid_email(email), _valid_name(display_name)
    person_id = new_id()
    async with db.transaction() as tx:
        try:
            async with db.transaction() as inner:
                await inner.execute(
                    insert(Person).values(
                        id=person_id, email=email, display_name=display_name, is_operator=operator
                    )
                )
        except IntegrityError as error:
            raise Conflict(
                "email_taken",
                f"A person with the address {email} exists already.",
                advice="Make a sign-in link for them instead.",
            ) from error
        await audit(tx, actor.person_id if actor else None, "person.added", str(person_id), operator=operator)
    return person_id


async def block_person(db: Database, actor: Actor | None, person_id: UUID) -> None:
    """Take away a person's sessions and all they may do, in every club, at once. Blocking twice is once."""
    _require_operator(actor)
    async with db.transaction() as tx:
        await person_blocked(tx, person_id)
        blocked = await tx.scalar(
            update(Person)
            .where(Person.id == person_id, Person.blocked_at.is_(None))
            .values(blocked_at=NOW)
            .returning(Person.id)
        )
        if blocked is None:
            await _require_known(db, person_id)
            return
        await end_all_sessions(db, person_id)
        await audit(tx, actor.person_id if actor else None, "person.blocked", str(person_id))


async def unblock_person(db: Database, actor: Actor | None, person_id: UUID) -> None:
    """Give a blocked person their roles' authority back; they sign in anew."""
    _require_operator(actor)
    async with db.transaction() as tx:
        unblocked = await tx.scalar(
            update(Person)
            .where(Person.id == person_id, Person.blocked_at.is_not(None))
            .values(blocked_at=None)
            .returning(Person.id)
        )
        if unblocked is None:
            await _require_known(db, person_id)
            return
        await audit(tx, actor.person_id if actor else None, "person.unblocked", str(person_id))


def _require_operator(actor: Actor | None) -> None:
    if actor is not None and not actor.is_operator:
        raise NotAllowed("operators_only", "Only an operator may do this.", advice="Ask an operator.")


async def _require_known(db: Database, person_id: UUID) -> None:
    async with db.read() as tx:
        if await tx.scalar(select(Person.id).where(Person.id == person_id)) is None:
            raise NotFound("person_unknown", "There is no such person.")


def _valid_email(email: str) -> str:
    email = email.strip()
    local, at, domain = email.rpartition("@")
    if not (local and at and domain) or len(email) > EMAIL_LENGTH or any(c.isspace() for c in email):
        raise Invalid(
            "email_malformed",
            f"{email!r} is not an e-mail address.",
            advice=f"Give one address like name@example.org, at most {EMAIL_LENGTH} characters.",
            field="email",
        )
    return email


def _valid_name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= NAME_LENGTH or not name.isprintable():
        raise Invalid(
            "name_malformed",
            "The name is empty, too long or holds control characters.",
            advice=f"Give a name of 1 to {NAME_LENGTH} printable characters.",
            field="display_name",
        )
    return name
