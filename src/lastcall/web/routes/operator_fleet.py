"""Operator, an account: its state, its limits, its clubs and its collectors; and the limits of fleet and clubs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.connections.account_states import LEAVING
from lastcall.connections.accounts import set_account_state
from lastcall.connections.overview import AccountLine, ConnectionLine, Overview, overview
from lastcall.connections.reassigning import reassign_connection
from lastcall.connections.states import AccountState
from lastcall.connections.switches import set_account_limits, set_connection_limit, set_fleet_limit
from lastcall.db.ids import encode_id
from lastcall.errors import Conflict, Invalid, LastcallError, NotFound
from lastcall.web.access import Access, Visitor, access
from lastcall.web.account_words import STATES, obstacle_of
from lastcall.web.connection_words import STATES as CONNECTION_STATES
from lastcall.web.fields import known_id
from lastcall.web.looks import obstacle
from lastcall.web.pages import PageRequest, Place, form_fields, go_to
from lastcall.web.room import Web

PLACE = Place("operator")
LIMITS = ("requests_per_minute", "writes_per_day", "capacity", "reserved_headroom")


@dataclass(frozen=True)
class Limit:
    """The requests a minute of the fleet or of one club, for the form that sets it."""

    what: str
    key: str
    name: str
    requests_per_minute: int

    @property
    def path(self) -> str:
        return f"/operator/limits/{self.what}/{self.key}"


@get("/operator/accounts/{account_id:str}", opt=access(Access.OPERATOR))
async def show_account(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    account_id: FromPath[str],
) -> Response[str]:
    return await _account_page(request, web, visitor, known_id(account_id))


@post("/operator/accounts/{account_id:str}", opt=access(Access.OPERATOR))
async def set_limits(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    account_id: FromPath[str],
) -> Response[str] | Redirect:
    """The account's limits, as one form."""
    wanted = known_id(account_id)
    fields = await form_fields(request)
    try:
        requests, writes, capacity, headroom = (number_in(fields, name) for name in LIMITS)
        await set_account_limits(
            web.database,
            visitor.actor,
            wanted,
            requests_per_minute=requests,
            writes_per_day=writes,
            capacity=capacity,
            reserved_headroom=headroom,
        )
    except Invalid as problem:
        return await _account_page(request, web, visitor, wanted, fields=fields, problem=problem)
    return go_to(f"/operator/accounts/{account_id}")


@get("/operator/accounts/{account_id:str}/{to:str}", opt=access(Access.OPERATOR))
async def ask_state(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    account_id: FromPath[str],
    to: FromPath[str],
) -> Response[str]:
    """The question before an account's state is set; whoever lets it work confirms first that it is them."""
    async with web.database.read() as tx:
        seen = await overview(tx, visitor.actor)
    account, state = _account_in(seen, known_id(account_id)), _settable(to)
    if state is AccountState.READY:
        visitor.actor.require_recent()
    return _ask(request, web, seen, account, state)


@post("/operator/accounts/{account_id:str}/{to:str}", opt=access(Access.OPERATOR))
async def set_state(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    account_id: FromPath[str],
    to: FromPath[str],
) -> Response[str] | Redirect:
    wanted, state = known_id(account_id), _settable(to)
    try:
        await set_account_state(web.database, visitor.actor, wanted, state)
    except Conflict as problem:
        async with web.database.read() as tx:
            seen = await overview(tx, visitor.actor)
        return _ask(request, web, seen, _account_in(seen, wanted), state, problem)
    return go_to(f"/operator/accounts/{account_id}")


@get("/operator/reassign/{key:str}", opt=access(Access.OPERATOR))
async def ask_reassign(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], key: FromPath[str]
) -> Response[str]:
    """Which account takes a club over whose own is leaving."""
    return await _reassign_page(request, web, visitor, key)


@post("/operator/reassign/{key:str}", opt=access(Access.OPERATOR))
async def reassign(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], key: FromPath[str]
) -> Response[str] | Redirect:
    chosen = (await form_fields(request)).get("account", "")
    club_id, connection_id = pair(key)
    try:
        taken = await reassign_connection(
            web.database, visitor.actor, club_id, connection_id, known_id(chosen) if chosen else None
        )
    except Conflict as problem:
        return await _reassign_page(request, web, visitor, key, chosen=chosen, problem=problem)
    return go_to(f"/operator/accounts/{encode_id(taken)}")


@get("/operator/limits/{what:str}/{key:str}", opt=access(Access.OPERATOR))
async def ask_limit(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    what: FromPath[str],
    key: FromPath[str],
) -> Response[str]:
    """The form with the requests a minute of the fleet, or of one club."""
    return await _limit_page(request, web, visitor, what, key)


@post("/operator/limits/{what:str}/{key:str}", opt=access(Access.OPERATOR))
async def set_limit(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    what: FromPath[str],
    key: FromPath[str],
) -> Response[str] | Redirect:
    fields = await form_fields(request)
    async with web.database.read() as tx:
        limit = _limit(await overview(tx, visitor.actor), what, key)
    try:
        requests = number_in(fields, "requests_per_minute")
        if limit.what == "fleet":
            await set_fleet_limit(web.database, visitor.actor, requests)
        else:
            await set_connection_limit(web.database, visitor.actor, *pair(key), requests)
    except Invalid as problem:
        return await _limit_page(request, web, visitor, what, key, fields=fields, problem=problem)
    return go_to("/operator")


def number_in(fields: Mapping[str, str], name: str) -> int:
    """A whole number that somebody typed; ``Invalid`` for anything else."""
    text = fields.get(name, "").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise Invalid(
            "number_malformed", "This is not a whole number.", advice="Use digits alone.", field=name
        )
    return int(text)


def pair(key: str) -> tuple[UUID, UUID]:
    """A club and its connection, as an address names them."""
    club_id, _, connection_id = key.partition(".")
    return known_id(club_id), known_id(connection_id)


async def _account_page(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    account_id: UUID,
    *,
    fields: Mapping[str, str] | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        seen = await overview(tx, visitor.actor)
    account = _account_in(seen, account_id)
    return web.pages.show(
        request,
        "operator_account.html",
        PLACE,
        seen.now,
        status=problem.status if problem else 200,
        account=account,
        words=STATES,
        connection_words=CONNECTION_STATES,
        stopped=obstacle_of(account),
        connections=[one for one in seen.connections if one.account_id == account_id],
        presence={one.worker_id: one for one in web.presence() if one.account_id == account_id},
        obstacle=obstacle,
        fields=fields or {name: str(getattr(account, name)) for name in LIMITS},
        problem=problem,
    )


def _ask(
    request: PageRequest,
    web: Web,
    seen: Overview,
    account: AccountLine,
    state: AccountState,
    problem: LastcallError | None = None,
) -> Response[str]:
    return web.pages.ask(
        request,
        "account_ask.html",
        PLACE,
        seen.now,
        title="Operator",
        status=problem.status if problem else 200,
        account=account,
        state=state,
        words=STATES[state],
        problem=problem,
    )


async def _reassign_page(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    key: str,
    *,
    chosen: str = "",
    problem: LastcallError | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        seen = await overview(tx, visitor.actor)
    connection = _connection_in(seen, key)
    return web.pages.ask(
        request,
        "reassign_ask.html",
        PLACE,
        seen.now,
        title="Operator",
        status=problem.status if problem else 200,
        connection=connection,
        key=key,
        others=[one for one in seen.accounts if one.may_be_named],
        leaving=sorted(state.words for state in LEAVING),
        chosen=chosen.lower(),
        problem=problem,
    )


async def _limit_page(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    what: str,
    key: str,
    *,
    fields: Mapping[str, str] | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        seen = await overview(tx, visitor.actor)
    limit = _limit(seen, what, key)
    return web.pages.ask(
        request,
        "limit_ask.html",
        PLACE,
        seen.now,
        title="Operator",
        status=problem.status if problem else 200,
        limit=limit,
        fields=fields or {"requests_per_minute": str(limit.requests_per_minute)},
        problem=problem,
    )


def _account_in(seen: Overview, account_id: UUID) -> AccountLine:
    for one in seen.accounts:
        if one.account_id == account_id:
            return one
    raise NotFound("not_found", "There is no such page.")


def _connection_in(seen: Overview, key: str) -> ConnectionLine:
    wanted = pair(key)
    for one in seen.connections:
        if (one.club_id, one.connection_id) == wanted:
            return one
    raise NotFound("not_found", "There is no such page.")


def _limit(seen: Overview, what: str, key: str) -> Limit:
    if (what, key) == ("fleet", "all"):
        return Limit(what, key, "all accounts together", seen.fleet.requests_per_minute)
    if what == "connection":
        connection = _connection_in(seen, key)
        return Limit(what, key, connection.club_name, connection.requests_per_minute)
    raise NotFound("not_found", "There is no such page.")


def _settable(to: str) -> AccountState:
    """The state in the address, if an operator can set it."""
    for one, words in STATES.items():
        if one.value == to and words.button:
            return one
    raise NotFound("not_found", "There is no such page.")


HANDLERS = (
    show_account,
    set_limits,
    ask_state,
    set_state,
    ask_reassign,
    reassign,
    ask_limit,
    set_limit,
)
