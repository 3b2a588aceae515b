"""Operator: the people of this server, what may be done to them, and the audit."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.db.cursor import read_cursor
from lastcall.errors import Conflict, Invalid, NotFound
from lastcall.people.erasing import erase_person
from lastcall.people.queries import PersonView, audit_page, people_page, person_for_operators
from lastcall.people.service import add_person, block_person, set_operator, unblock_person
from lastcall.web.access import Access, Visitor, access
from lastcall.web.audit_words import detail_words, words_for
from lastcall.web.fields import known_id
from lastcall.web.pages import PageRequest, Place, form_fields, go_to
from lastcall.web.paging import older
from lastcall.web.room import Web, database_now

PLACE = Place("operator")
PEOPLE, AUDIT = "people", "audit"


@dataclass(frozen=True)
class Act:
    """Something an operator does to a person, with the words for the question before it."""

    title: str
    sentence: str
    button: str
    is_danger: bool = False


ACTS = {
    "block": Act(
        "Block {name}?",
        "They are signed out everywhere, their API tokens end, and they may do nothing in any club until they are"
        " unblocked. What they queued is not sent unless somebody else takes it over.",
        "Block",
        is_danger=True,
    ),
    "unblock": Act(
        "Unblock {name}?",
        "They may sign in again and have their roles back. Sessions and tokens stay ended.",
        "Unblock",
    ),
    "operator": Act(
        "Make {name} an operator?",
        "They may then stop all work, see every person and block them, and make others operators.",
        "Make operator",
        is_danger=True,
    ),
    "erase": Act(
        "Erase {name} for good?",
        "Their name, address and every way to sign in go at once, and they leave every staff. What they did stays, as"
        " done by an erased person. It cannot be undone.",
        "Erase",
        is_danger=True,
    ),
    "no-operator": Act(
        "Take operatorship from {name}?", "They keep their account and their roles in clubs.", "Take it away"
    ),
}


@get("/operator/people", opt=access(Access.OPERATOR))
async def list_people(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    search: FromQuery[str] = "",
    after: FromQuery[str] = "",
) -> Response[str]:
    return await _list(request, web, visitor, search=search, after=after)


@post("/operator/people", opt=access(Access.OPERATOR))
async def add(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str] | Redirect:
    fields = await form_fields(request)
    email, name = fields.get("email", ""), fields.get("display_name", "")
    try:
        await add_person(web.database, email, name or email.partition("@")[0], actor=visitor.actor)
    except (Invalid, Conflict) as error:
        return await _list(request, web, visitor, fields=fields, problem=error)
    return go_to("/operator/people?" + urlencode({"search": email.strip()}))


@get("/operator/people/{person_id:str}", opt=access(Access.OPERATOR))
async def show_person(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    person_id: FromPath[str],
) -> Response[str]:
    wanted = known_id(person_id)
    async with web.database.read() as tx:
        now = await database_now(tx)
        person = await person_for_operators(tx, visitor.actor, wanted)
        entries = await audit_page(tx, visitor.actor, about=wanted, limit=20)
    return web.pages.show(
        request,
        "operator_person.html",
        PLACE,
        now,
        person=person,
        entries=entries,
        acts=[] if person.id == visitor.actor.person_id else _acts_on(person),
        words=words_for,
        details=detail_words,
    )


@get("/operator/people/{person_id:str}/{act:str}", opt=access(Access.OPERATOR))
async def ask(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    person_id: FromPath[str],
    act: FromPath[str],
) -> Response[str]:
    """The question before it is done; whoever must confirm that it is them does that first."""
    async with web.database.read() as tx:
        now = await database_now(tx)
        person = await person_for_operators(tx, visitor.actor, known_id(person_id))
    chosen = _known_act(act)
    visitor.actor.require_recent()
    return web.pages.show(request, "operator_person_ask.html", PLACE, now, person=person, act=chosen, key=act)


@post("/operator/people/{person_id:str}/{act:str}", opt=access(Access.OPERATOR))
async def do(
    web: NamedDependency[Web], visitor: NamedDependency[Visitor], person_id: FromPath[str], act: FromPath[str]
) -> Redirect:
    wanted = known_id(person_id)
    _known_act(act)
    if act == "block":
        await block_person(web.database, visitor.actor, wanted)
    elif act == "unblock":
        await unblock_person(web.database, visitor.actor, wanted)
    elif act == "erase":
        await erase_person(web.database, visitor.actor, wanted)
    else:
        await set_operator(web.database, visitor.actor, wanted, is_operator=act == "operator")
    return go_to(f"/operator/people/{person_id}")


@get("/operator/audit", opt=access(Access.OPERATOR))
async def show_audit(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    about: FromQuery[str] = "",
    after: FromQuery[str] = "",
) -> Response[str]:
    async with web.database.read() as tx:
        now = await database_now(tx)
        person = await person_for_operators(tx, visitor.actor, known_id(about)) if about else None
        entries = await audit_page(
            tx, visitor.actor, about=person.id if person else None, after=read_cursor(AUDIT, after or None)
        )
    return web.pages.show(
        request,
        "operator_audit.html",
        PLACE,
        now,
        entries=entries,
        person=person,
        older=older("/operator/audit", AUDIT, entries.next, about=about),
        words=words_for,
        details=detail_words,
    )


async def _list(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    *,
    search: str = "",
    after: str = "",
    fields: dict[str, str] | None = None,
    problem: Invalid | Conflict | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        now = await database_now(tx)
        people = await people_page(tx, visitor.actor, search=search, after=read_cursor(PEOPLE, after or None))
    return web.pages.show(
        request,
        "operator_people.html",
        PLACE,
        now,
        status=problem.status if problem else 200,
        people=people,
        search=search,
        more=older("/operator/people", PEOPLE, people.next, search=search),
        fields={"email": "", "display_name": ""} | (fields or {}),
        problem=problem,
    )


def _acts_on(person: PersonView) -> list[tuple[str, Act]]:
    """What can be done to this person as they stand."""
    if person.erased_at is not None:
        return []
    keys = ["unblock" if person.blocked_at else "block", "no-operator" if person.is_operator else "operator"]
    return [(key, ACTS[key]) for key in (*keys, "erase")]


def _known_act(key: str) -> Act:
    if key not in ACTS:
        raise NotFound("not_found", "There is no such page.")
    return ACTS[key]


HANDLERS = (list_people, add, show_person, ask, do, show_audit)
