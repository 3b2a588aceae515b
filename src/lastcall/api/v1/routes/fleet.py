"""The fleet, for operators: accounts, connections, and the switches that stop work."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from litestar import get, put
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import Meta

from lastcall.api.v1.answers import answers
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known
from lastcall.connections.queries import AccountLine, ConnectionLine, Overview, overview
from lastcall.connections.switches import (
    set_account_limits,
    set_account_switch,
    set_connection_limit,
    set_connection_switch,
    set_fleet_limit,
    set_fleet_switch,
)
from lastcall.connections.tables import ALLOWANCE_MOST
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.people.actor import Actor

TAGS = ["Fleet"]


class Account(Shape, frozen=True):
    """A VRChat account. `obstacle` is why it does not work now (`none` when it does)."""

    id: Id
    alias: str
    vrchat_user_id: str
    state: str
    obstacle: str
    is_stopped: bool
    requests_per_minute: int
    used_last_minute: int
    cooldown_until: datetime | None
    has_key: bool
    last_hello_at: datetime | None


class Connection(Shape, frozen=True):
    """A club's connection to its VRChat group. `obstacle` is why nothing is sent now (`none` when it is)."""

    id: Id
    club_id: Id
    club_name: str
    group_name: str
    account_id: Id
    state: str
    obstacle: str
    is_stopped: bool
    frozen_at: datetime | None
    frozen_reason: str | None
    requests_per_minute: int


class Fleet(Shape, frozen=True):
    """Everything an operator may stop, and how it works now."""

    is_stopped: bool
    requests_per_minute: int
    used_last_minute: int
    accounts: list[Account]
    connections: list[Connection]


class Stop(Input, frozen=True):
    """Whether it is stopped. A stop is lifted by a person in a browser, or by the host's command line."""

    is_stopped: bool


class RateLimit(Input, frozen=True):
    """How many requests to the provider a minute."""

    requests_per_minute: Annotated[int, Meta(ge=1, le=ALLOWANCE_MOST)]


@get("/operator/fleet", tags=TAGS, responses=answers())
async def show_fleet(db: NamedDependency[Database], actor: NamedDependency[Actor]) -> Fleet:
    """The fleet with every account and connection. Operators only, as everything here."""
    async with db.read() as tx:
        return _fleet(await overview(tx, actor))


@put("/operator/fleet/stop", status_code=204, tags=TAGS, responses=answers(body=True))
async def stop_fleet(
    db: NamedDependency[Database], actor: NamedDependency[Actor], data: JSONBody[Stop]
) -> None:
    """Stop every account, or no longer. What was already sent is still recorded."""
    await set_fleet_switch(db, actor, is_on=data.is_stopped)


@put("/operator/fleet/limit", status_code=204, tags=TAGS, responses=answers(body=True))
async def limit_fleet(
    db: NamedDependency[Database], actor: NamedDependency[Actor], data: JSONBody[RateLimit]
) -> None:
    """Set what all accounts share."""
    await set_fleet_limit(db, actor, data.requests_per_minute)


@put(
    "/operator/accounts/{account_id:str}/stop", status_code=204, tags=TAGS, responses=answers(404, body=True)
)
async def stop_account(
    db: NamedDependency[Database], actor: NamedDependency[Actor], account_id: PathId, data: JSONBody[Stop]
) -> None:
    """Stop one account, or no longer."""
    await set_account_switch(db, actor, known(account_id), is_on=data.is_stopped)


@put(
    "/operator/accounts/{account_id:str}/limit", status_code=204, tags=TAGS, responses=answers(404, body=True)
)
async def limit_account(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    account_id: PathId,
    data: JSONBody[RateLimit],
) -> None:
    """Set what one account may use."""
    await set_account_limits(db, actor, known(account_id), requests_per_minute=data.requests_per_minute)


@put(
    "/clubs/{club:str}/connections/{connection_id:str}/stop",
    status_code=204,
    tags=TAGS,
    responses=answers(404, body=True),
)
async def stop_connection(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    connection_id: PathId,
    data: JSONBody[Stop],
) -> None:
    """Stop a club's connection, or no longer; staff with the permission for connections may as well."""
    await set_connection_switch(db, actor, known(club), known(connection_id), is_on=data.is_stopped)


@put(
    "/clubs/{club:str}/connections/{connection_id:str}/limit",
    status_code=204,
    tags=TAGS,
    responses=answers(404, body=True),
)
async def limit_connection(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    connection_id: PathId,
    data: JSONBody[RateLimit],
) -> None:
    """Set what one connection may use of its account."""
    await set_connection_limit(db, actor, known(club), known(connection_id), data.requests_per_minute)


def _fleet(seen: Overview) -> Fleet:
    return Fleet(
        is_stopped=seen.fleet.kill_switch,
        requests_per_minute=seen.fleet.requests_per_minute,
        used_last_minute=seen.fleet.used_last_minute,
        accounts=[_account(line) for line in seen.accounts],
        connections=[_connection(line) for line in seen.connections],
    )


def _account(line: AccountLine) -> Account:
    return Account(
        id=encode_id(line.account_id),
        alias=line.alias,
        vrchat_user_id=line.vrchat_user_id,
        state=line.state,
        obstacle=line.obstacle,
        is_stopped=line.kill_switch,
        requests_per_minute=line.requests_per_minute,
        used_last_minute=line.used_last_minute,
        cooldown_until=line.cooldown_until,
        has_key=line.has_key,
        last_hello_at=line.last_hello_at,
    )


def _connection(line: ConnectionLine) -> Connection:
    return Connection(
        id=encode_id(line.connection_id),
        club_id=encode_id(line.club_id),
        club_name=line.club_name,
        group_name=line.group_name,
        account_id=encode_id(line.account_id),
        state=line.state,
        obstacle=line.obstacle,
        is_stopped=line.kill_switch,
        frozen_at=line.frozen_at,
        frozen_reason=line.frozen_reason,
        requests_per_minute=line.requests_per_minute,
    )


HANDLERS = (
    show_fleet,
    stop_fleet,
    limit_fleet,
    stop_account,
    limit_account,
    stop_connection,
    limit_connection,
)
