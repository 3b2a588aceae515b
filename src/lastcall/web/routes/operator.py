"""Operator: fleet, accounts, leases, allowances and deadlines, and the switches that stop work."""

from __future__ import annotations

from dataclasses import dataclass

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect, Stream

from lastcall.connections.overview import Overview, overview
from lastcall.connections.switches import (
    set_account_switch,
    set_connection_switch,
    set_fleet_switch,
    thaw_connection,
)
from lastcall.db.ids import encode_id
from lastcall.errors import NotFound
from lastcall.web.access import Access, Visitor, access
from lastcall.web.account_words import STATES
from lastcall.web.connection_words import STATES as CONNECTION_STATES
from lastcall.web.fields import known_id
from lastcall.web.live import EVERYTHING
from lastcall.web.looks import OWNERS, obstacle
from lastcall.web.pages import PageRequest, form_fields, go_to, is_fragment
from lastcall.web.room import Web
from lastcall.web.routes.live import event_stream
from lastcall.web.routes.operator_fleet import PLACE, pair


@dataclass(frozen=True)
class Switch:
    """One thing an operator can stop or let go on, with the words for the question before it."""

    what: str
    key: str
    name: str
    is_on: bool

    @property
    def path(self) -> str:
        return f"/operator/{self.what}/{self.key}"


@get("/operator", opt=access(Access.OPERATOR))
async def operator(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str]:
    seen = web.live.mark(EVERYTHING)
    async with web.database.read() as tx:
        seen_now = await overview(tx, visitor.actor)
    owners = web.deadlines()
    return web.pages.show(
        request,
        "operator_live.html" if is_fragment(request) else "operator.html",
        PLACE,
        seen_now.now,
        seen=seen,
        overview=seen_now,
        owners=owners,
        owner_words=OWNERS,
        poison=[(owner, row) for owner in owners for row in owner.poison],
        presence={(one.account_id, one.worker_id): one for one in web.presence()},
        waiting={one.account_id for one in web.presence() if one.is_waiting},
        obstacle=obstacle,
        account_words=STATES,
        connection_words=CONNECTION_STATES,
        open_streams=web.live.open_streams,
    )


@get("/operator/live", opt=access(Access.OPERATOR))
async def live_operator(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    seen: FromQuery[str] = "",
) -> Stream:
    return event_stream(request, web, visitor, EVERYTHING, seen=seen)


@get("/operator/{what:str}/{key:str}", opt=access(Access.OPERATOR))
async def ask_switch(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    what: FromPath[str],
    key: FromPath[str],
) -> Response[str]:
    """The question before a switch is thrown: what stops, and what does not."""
    async with web.database.read() as tx:
        seen_now = await overview(tx, visitor.actor)
    return web.pages.ask(
        request,
        "switch_ask.html",
        PLACE,
        seen_now.now,
        title="Operator",
        switch=_switch(seen_now, what, key),
    )


@post("/operator/{what:str}/{key:str}", opt=access(Access.OPERATOR))
async def throw_switch(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    what: FromPath[str],
    key: FromPath[str],
) -> Redirect:
    fields = await form_fields(request)
    async with web.database.read() as tx:
        switch = _switch(await overview(tx, visitor.actor), what, key)
    is_on = fields.get("on") == "yes"
    match what:
        case "fleet":
            await set_fleet_switch(web.database, visitor.actor, is_on=is_on)
        case "account":
            await set_account_switch(web.database, visitor.actor, known_id(switch.key), is_on=is_on)
        case "connection":
            await set_connection_switch(web.database, visitor.actor, *pair(switch.key), is_on=is_on)
        case _:
            await thaw_connection(web.database, visitor.actor, *pair(switch.key))
    return go_to("/operator")


def _switch(seen_now: Overview, what: str, key: str) -> Switch:
    """The switch in the address; ``NotFound`` when there is no such thing."""
    if what == "fleet" and key == "all":
        return Switch(what, key, "all accounts", seen_now.fleet.kill_switch)
    if what == "account":
        for account in seen_now.accounts:
            if encode_id(account.account_id) == key.lower():
                return Switch(what, key, f"the account {account.alias}", account.kill_switch)
    if what in {"connection", "thaw"}:
        for connection in seen_now.connections:
            if (connection.club_id, connection.connection_id) == pair(key):
                is_on = connection.kill_switch if what == "connection" else connection.frozen_at is not None
                return Switch(what, key, f"the connection of {connection.club_name}", is_on)
    raise NotFound("not_found", "There is no such page.")


HANDLERS = (operator, live_operator, ask_switch, throw_switch)
