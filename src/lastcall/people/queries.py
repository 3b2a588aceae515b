"""Reads about people, for commands and for operators' screens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, func, or_, select, tuple_

from lastcall.db.cursor import LAST, Cursor
from lastcall.db.transaction import Reader
from lastcall.errors import NotFound
from lastcall.people.actor import Actor
from lastcall.people.holding import require_operator_now
from lastcall.people.scopes import Scope
from lastcall.people.tables import AuditEntry, Person, SignInSession

PAGE_MOST = 200
"""Rows of one page at most."""
EXAMINED = 2000
"""Rows that one page of a search looks at, at most: the next page goes on from the last of them."""


@dataclass(frozen=True)
class PersonView:
    """A person as an operator sees them. ``last_seen_at`` is of any session they had."""

    id: UUID
    email: str
    display_name: str
    is_operator: bool
    is_verified: bool
    created_at: datetime
    blocked_at: datetime | None
    erased_at: datetime | None
    last_seen_at: datetime | None


@dataclass(frozen=True)
class AuditView:
    """One entry of the audit. Without ``actor_id`` it was the host's command line, or somebody erased;
    ``subject_name`` is there where the subject is a person."""

    id: UUID
    created_at: datetime
    action: str
    actor_id: UUID | None
    actor_name: str | None
    subject: str
    subject_name: str | None
    details: dict[str, Any]


@dataclass(frozen=True)
class Page:
    """Rows, and where the next page begins; without ``next`` this was the last."""

    rows: list[Any]
    next: Cursor | None


async def person_by_email(tx: Reader, email: str) -> UUID:
    """The id of the person with this address, in any case. Raises ``NotFound``, in words for the host's command
    line; a public form must not repeat them."""
    person_id: UUID | None = await tx.scalar(
        select(Person.id).where(func.lower(Person.email) == email.strip().lower())
    )
    if person_id is None:
        raise NotFound(
            "person_unknown",
            f"Nobody has the address {email.strip()}.",
            advice="Add them first with `lastcall person add`.",
            field="email",
        )
    return person_id


async def own_account(tx: Reader, actor: Actor) -> PersonView:
    """The actor's own row."""
    actor.require_scope(Scope.READ)
    return PersonView(**(await tx.execute(_people().where(Person.id == actor.person_id))).one()._asdict())


async def person_for_operators(tx: Reader, actor: Actor | None, person_id: UUID) -> PersonView:
    """One person. ``NotFound`` when there is none."""
    await require_operator_now(tx, actor)
    row = (await tx.execute(_people().where(Person.id == person_id))).one_or_none()
    if row is None:
        raise NotFound("person_unknown", "There is no such person.", advice="Check the address.")
    return PersonView(**row._asdict())


async def people_page(
    tx: Reader, actor: Actor | None, *, search: str = "", after: Cursor | None = None, limit: int = 50
) -> Page:
    """People, those added last first. ``search`` is part of a name or an address, in any case.

    A search examines ``EXAMINED`` rows a page, so that a page may be short, or empty, and still not the last.
    """
    await require_operator_now(tx, actor)
    limit = min(limit, PAGE_MOST)
    text = search.strip().lower()
    if not text:
        rows = (await tx.execute(_people().where(_before(Person, after)).limit(limit + 1))).all()
        return _page([PersonView(**row._asdict()) for row in rows], limit)
    window = (
        select(Person.id)
        .where(_before(Person, after))
        .order_by(Person.created_at.desc(), Person.id.desc())
        .limit(EXAMINED)
        .subquery()
    )
    matches = or_(
        func.strpos(func.lower(Person.email), text) > 0,
        func.strpos(func.lower(Person.display_name), text) > 0,
    )
    found = _people().join(window, window.c.id == Person.id).where(matches).limit(limit + 1)
    page = _page([PersonView(**row._asdict()) for row in (await tx.execute(found)).all()], limit)
    if page.next is not None:
        return page
    last = (
        await tx.execute(
            select(Person.created_at, Person.id)
            .where(_before(Person, after))
            .order_by(Person.created_at.desc(), Person.id.desc())
            .offset(EXAMINED - 1)
            .limit(1)
        )
    ).one_or_none()
    return Page(page.rows, None if last is None else Cursor(last.created_at, last.id))


async def audit_page(
    tx: Reader,
    actor: Actor | None,
    *,
    about: UUID | None = None,
    after: Cursor | None = None,
    limit: int = 50,
) -> Page:
    """The audit, newest first; ``about``: what this person did and what was done to them."""
    await require_operator_now(tx, actor)
    limit = min(limit, PAGE_MOST)
    found = (
        select(
            AuditEntry.id,
            AuditEntry.created_at,
            AuditEntry.action,
            AuditEntry.actor_person_id.label("actor_id"),
            AuditEntry.subject,
            AuditEntry.details,
        )
        .where(_before(AuditEntry, after))
        .order_by(AuditEntry.created_at.desc(), AuditEntry.id.desc())
        .limit(limit + 1)
    )
    if about is not None:
        found = found.where(or_(AuditEntry.actor_person_id == about, AuditEntry.subject == str(about)))
    rows = (await tx.execute(found)).all()
    names = await _names(tx, {row.actor_id for row in rows} | {_as_id(row.subject) for row in rows})
    return _page(
        [
            AuditView(
                **row._asdict(),
                actor_name=names.get(row.actor_id),
                subject_name=names.get(_as_id(row.subject)),
            )
            for row in rows
        ],
        limit,
    )


async def _names(tx: Reader, ids: set[UUID | None]) -> dict[UUID | None, str]:
    rows = await tx.execute(
        select(Person.id, Person.display_name).where(Person.id.in_([one for one in ids if one is not None]))
    )
    return {row.id: row.display_name for row in rows.all()}


def _as_id(subject: str) -> UUID | None:
    """What an entry is about, where that has an id."""
    try:
        return UUID(subject)
    except ValueError:
        return None


def _people() -> Any:
    last_seen = (
        select(func.max(SignInSession.last_seen_at))
        .where(SignInSession.person_id == Person.id)
        .scalar_subquery()
    )
    return select(
        Person.id,
        Person.email,
        Person.display_name,
        Person.is_operator,
        Person.email_verified_at.is_not(None).label("is_verified"),
        Person.created_at,
        Person.blocked_at,
        Person.erased_at,
        last_seen.label("last_seen_at"),
    ).order_by(Person.created_at.desc(), Person.id.desc())


def _before(table: Any, after: Cursor | None) -> ColumnElement[bool]:
    start = after or LAST
    return tuple_(table.created_at, table.id) < tuple_(start.time, start.id)


def _page(rows: list[Any], limit: int) -> Page:
    """``rows`` has one more than the page, if there is more."""
    last = rows[limit - 1] if len(rows) > limit else None
    return Page(rows[:limit], None if last is None else Cursor(last.created_at, last.id))
