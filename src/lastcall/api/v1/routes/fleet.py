"""The fleet, for operators: accounts, connections, their limits, and what stops work."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal

from litestar import get, put
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import Meta

from lastcall.api.v1.answers import answers
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known
from lastcall.connections.accounts import set_account_state
from lastcall.connections.overview import AccountLine, ConnectionLine, Overview, overview
from lastcall.connections.reassigning import reassign_connection
from lastcall.connections.states import AccountState
from lastcall.connections.switches import (
    set_account_limits,
    set_account_switch,
    set_connection_limit,
    set_connection_switch,
    set_fleet_limit,
    set_fleet_switch,
)
from lastcall.connections.tables import ALLOWANCE_MOST, CAPACITY_MOST, WRITES_MOST
from lastcall.db.database import Database
from lastcall.db.ids import decode_id, encode_id
from lastcall.people.actor import Actor

TAGS = ["Fleet"]


class Collector(Shape, frozen=True):
    """A collector process of an account, as it said when it started."""

    worker_id: Id
    release: str
    last_hello_at: datetime


class Account(Shape, frozen=True):
    """A VRChat account. `obstacle` is why it does not work now (`none` when it does).

    It serves `connections` clubs of `capacity`; `reservedHeadroom` of these places are not given out by themselves.
    `writesToday` were reserved this day of UTC, of `writesAllowed`: fewer than `writesPerDay` while the account is
    young (`joinedOn`, as VRChat says).
    """

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
    connections: int
    capacity: int
    reserved_headroom: int
    writes_today: int
    writes_allowed: int
    writes_per_day: int
    joined_on: date | None
    last_hello_at: datetime | None
    collectors: list[Collector]


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


class AccountLimits(Input, frozen=True):
    """How much an account does: requests and writes, and how many clubs it serves at most."""

    requests_per_minute: Annotated[int, Meta(ge=1, le=ALLOWANCE_MOST)]
    writes_per_day: Annotated[int, Meta(ge=1, le=WRITES_MOST)]
    capacity: Annotated[int, Meta(ge=1, le=CAPACITY_MOST)]
    reserved_headroom: Annotated[int, Meta(ge=0, le=CAPACITY_MOST)]


class AccountStanding(Input, frozen=True):
    """Where an account stands. Only a person in a browser, or the host's command line, sets it to `ready`."""

    state: Literal["ready", "degraded", "quarantined", "retiring", "retired"]


class Takeover(Input, frozen=True):
    """Which account takes over; without one it is chosen."""

    account_id: Id | None = None


class Served(Shape, frozen=True):
    """The account that serves the connection from now on."""

    account_id: Id


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
    "/operator/accounts/{account_id:str}/limits",
    status_code=204,
    tags=TAGS,
    responses=answers(404, body=True),
)
async def limit_account(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    account_id: PathId,
    data: JSONBody[AccountLimits],
) -> None:
    """Set what one account may use, and how many clubs it takes."""
    await set_account_limits(
        db,
        actor,
        known(account_id),
        requests_per_minute=data.requests_per_minute,
        writes_per_day=data.writes_per_day,
        capacity=data.capacity,
        reserved_headroom=data.reserved_headroom,
    )


@put(
    "/operator/accounts/{account_id:str}/state",
    status_code=204,
    tags=TAGS,
    responses=answers(404, 409, body=True),
)
async def move_account(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    account_id: PathId,
    data: JSONBody[AccountStanding],
) -> None:
    """Take an account out of work. What was already sent is still recorded."""
    await set_account_state(db, actor, known(account_id), AccountState(data.state))


@put(
    "/clubs/{club:str}/connections/{connection_id:str}/account",
    tags=TAGS,
    responses=answers(404, 409, body=True),
)
async def reassign(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    connection_id: PathId,
    data: JSONBody[Takeover],
) -> Served:
    """Let another account serve a club whose account is quarantined, retiring or retired."""
    wanted = None if data.account_id is None else decode_id(data.account_id)
    taken = await reassign_connection(db, actor, known(club), known(connection_id), wanted)
    return Served(account_id=encode_id(taken))


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
        connections=line.connections,
        capacity=line.capacity,
        reserved_headroom=line.reserved_headroom,
        writes_today=line.writes_today,
        writes_allowed=line.writes_allowed,
        writes_per_day=line.writes_per_day,
        joined_on=line.joined_on,
        last_hello_at=line.last_hello_at,
        collectors=[
            Collector(
                worker_id=encode_id(one.worker_id), release=one.release, last_hello_at=one.last_hello_at
            )
            for one in line.collectors
        ],
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
    move_account,
    reassign,
    stop_connection,
    limit_connection,
)
