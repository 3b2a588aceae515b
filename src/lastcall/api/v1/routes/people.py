"""People and the audit, for operators."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter

from lastcall.api.v1.answers import answers
from lastcall.api.v1.idempotency import Key, called, once
from lastcall.api.v1.paging import CURSOR, After, Limit, Search
from lastcall.api.v1.requests import ApiRequest
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, known_in, spelled
from lastcall.db.cursor import read_cursor, write_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.people.actor import Actor
from lastcall.people.queries import (
    AuditView,
    PersonView,
    audit_page,
    people_page,
    person_for_operators,
)
from lastcall.people.service import add_person

TAGS = ["Operator"]
_PEOPLE, _AUDIT = "people", "audit"


class Person(Shape, frozen=True):
    """Somebody who can sign in. `lastSeenAt` is of any browser they used."""

    id: Id
    email: str
    display_name: str
    is_operator: bool
    is_verified: bool
    created_at: datetime
    blocked_at: datetime | None
    erased_at: datetime | None
    last_seen_at: datetime | None


class PersonPage(Shape, frozen=True):
    """`next` is the cursor of the next page; null at the end. A page of a search may be short and yet have one."""

    items: list[Person]
    next: str | None


class NewPerson(Input, frozen=True):
    """Somebody who may sign in from now on, by a mail to this address."""

    email: str
    display_name: str


class PersonMade(Shape, frozen=True):
    """The person who was added."""

    id: Id


class AuditEntry(Shape, frozen=True):
    """A sign-in or an act of an operator. Without `actorId` it was the host's command line, or somebody erased."""

    id: Id
    created_at: datetime
    action: str
    actor_id: str | None
    actor_name: str | None
    subject: str
    subject_name: str | None
    details: dict[str, Any]


class AuditPage(Shape, frozen=True):
    """`next` is the cursor of the next page; null at the end."""

    items: list[AuditEntry]
    next: str | None


@get("/operator/people", tags=TAGS, responses=answers())
async def list_people(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    limit: Limit = 50,
    cursor: After = None,
    search: Search = "",
) -> PersonPage:
    """Everybody, those added last first. Operators only, as everything here."""
    async with db.read() as tx:
        page = await people_page(
            tx, actor, search=search, after=read_cursor(_PEOPLE, cursor, field=CURSOR), limit=limit
        )
    return PersonPage(
        items=[_person(view) for view in page.rows],
        next=None if page.next is None else write_cursor(_PEOPLE, page.next),
    )


@get("/operator/people/{person_id:str}", tags=TAGS, responses=answers(404))
async def show_person(
    db: NamedDependency[Database], actor: NamedDependency[Actor], person_id: PathId
) -> Person:
    """One person. Blocking one and making one an operator needs a person in a browser."""
    async with db.read() as tx:
        return _person(await person_for_operators(tx, actor, known(person_id)))


@post("/operator/people", tags=TAGS, responses=answers(409, body=True))
async def create_person(
    request: ApiRequest,
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    data: JSONBody[NewPerson],
    key: Key = None,
) -> PersonMade:
    """Add a person who may sign in."""

    async def make() -> PersonMade:
        made = await add_person(db, data.email, data.display_name, actor=actor)
        return PersonMade(id=encode_id(made))

    return await once(db, actor, called(request), key, data, make, PersonMade)


@get("/operator/audit", tags=TAGS, responses=answers())
async def list_audit(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    limit: Limit = 50,
    cursor: After = None,
    about: Annotated[
        str | None,
        QueryParameter(max_length=26, description="A person: what they did and what was done to them."),
    ] = None,
) -> AuditPage:
    """Sign-ins and what operators did, the newest first."""
    person_id = None if about is None else known_in(about, "about")
    async with db.read() as tx:
        page = await audit_page(
            tx, actor, about=person_id, after=read_cursor(_AUDIT, cursor, field=CURSOR), limit=limit
        )
    return AuditPage(
        items=[_entry(view) for view in page.rows],
        next=None if page.next is None else write_cursor(_AUDIT, page.next),
    )


def _person(view: PersonView) -> Person:
    return Person(
        id=encode_id(view.id),
        email=view.email,
        display_name=view.display_name,
        is_operator=view.is_operator,
        is_verified=view.is_verified,
        created_at=view.created_at,
        blocked_at=view.blocked_at,
        erased_at=view.erased_at,
        last_seen_at=view.last_seen_at,
    )


def _entry(view: AuditView) -> AuditEntry:
    return AuditEntry(
        id=encode_id(view.id),
        created_at=view.created_at,
        action=view.action,
        actor_id=spelled(view.actor_id),
        actor_name=view.actor_name,
        subject=view.subject,
        subject_name=view.subject_name,
        details=view.details,
    )


HANDLERS = (list_people, show_person, create_person, list_audit)
