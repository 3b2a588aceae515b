"""A club's connection to its VRChat group, for whoever looks after it."""

from __future__ import annotations

from datetime import datetime

from litestar import get, post, put
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from lastcall.api.v1.answers import answers
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.connections.connect import connect_club, disconnect_club, finish_disconnect
from lastcall.connections.features import switch_feature
from lastcall.connections.health import ConnectionHealth, connection_health
from lastcall.connections.looks import check_now, rejoin
from lastcall.connections.queries import ConnectionCard, connection_card
from lastcall.connections.states import ConnectionState, Feature, GroupVisibility, JoinPolicy
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.errors import NotFound
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope
from lastcall.telemetry.queries import CoverageView, coverage_of
from lastcall.telemetry.states import CoverageState

TAGS = ["Connection"]


class FeatureStanding(Shape, frozen=True):
    """A feature. `isReady`: it is on, nothing stands against it, and what VRChat lets the account do was read within
    the last minute. `missingGrant` is the grant without which nothing of it works, as of that read.
    """

    feature: Feature
    is_on: bool
    is_ready: bool
    missing_grant: str | None


class ClubConnection(Shape, frozen=True):
    """A club's connection. `obstacle` is why nothing is sent now (`none` when it is), `lastFault` the code of what went
    wrong since the last look that succeeded, `nextLookAt` when the group is looked at though nothing else is to do.
    `coverage` is how its analytics stand, whatever its state; `lastObservationAt` the last time they were observed.
    """

    id: Id
    group_id: str
    group_name: str
    state: ConnectionState
    obstacle: str
    is_stopped: bool
    join_policy: JoinPolicy
    visibility: GroupVisibility
    features: list[FeatureStanding]
    waiting_since: datetime | None
    next_look_at: datetime | None
    last_look_at: datetime | None
    last_fault: str | None
    backoff_until: datetime | None
    evidence_at: datetime | None
    coverage: CoverageState
    last_observation_at: datetime | None


class NewConnection(Input, frozen=True):
    """The group, and what Lastcall may do there. A collector's account has to be let into the group."""

    group_id: str
    features: list[Feature]


class Connected(Shape, frozen=True):
    """The connection that was made."""

    id: Id


class FeatureSwitch(Input, frozen=True):
    """Whether Lastcall may do what the feature says."""

    is_on: bool


@get("/clubs/{club:str}/connection", tags=TAGS, responses=answers(404))
async def show_connection(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId
) -> ClubConnection:
    """The club's connection to its VRChat group; 404 when it has none."""
    club_id = known(club)
    async with db.read() as tx:
        await require(tx, actor, club_id, Permission.MANAGE_CONNECTION, scope=Scope.READ)
        card = await connection_card(tx, club_id)
        health = await connection_health(tx, club_id)
        coverage = await coverage_of(tx, club_id)
    if card is None or health is None or coverage is None:
        raise NotFound("connection_unknown", "The club is not connected to a group.")
    return _shape(card, health, coverage)


@post("/clubs/{club:str}/connections", status_code=201, tags=TAGS, responses=answers(404, 409, body=True))
async def connect(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    data: JSONBody[NewConnection],
) -> Connected:
    """Connect the club to its VRChat group, through the account that has most room."""
    made = await connect_club(db, actor, known(club), group_id=data.group_id, features=data.features)
    return Connected(id=encode_id(made))


@post(
    "/clubs/{club:str}/connections/{connection_id:str}/check",
    status_code=204,
    tags=TAGS,
    responses=answers(404, 409),
)
async def check(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, connection_id: PathId
) -> None:
    """Have the group looked at as soon as its account may."""
    await check_now(db, actor, known(club), known(connection_id))


@post(
    "/clubs/{club:str}/connections/{connection_id:str}/rejoin",
    status_code=204,
    tags=TAGS,
    responses=answers(404, 409),
)
async def join_again(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, connection_id: PathId
) -> None:
    """Let the account try to come into the group again."""
    await rejoin(db, actor, known(club), known(connection_id))


@put(
    "/clubs/{club:str}/connections/{connection_id:str}/features/{feature:str}",
    status_code=204,
    tags=TAGS,
    responses=answers(404, body=True),
)
async def switch(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    connection_id: PathId,
    feature: FromPath[str],
    data: JSONBody[FeatureSwitch],
) -> None:
    """Switch one feature on or off: `analytics`, `membership_management`, `posts` or `instances`."""
    if feature not in set(Feature):
        raise NotFound("feature_unknown", f"There is no such feature; there are {', '.join(Feature)}.")
    await switch_feature(db, actor, known(club), known(connection_id), Feature(feature), is_on=data.is_on)


@post(
    "/clubs/{club:str}/connections/{connection_id:str}/disconnect",
    status_code=204,
    tags=TAGS,
    responses=answers(404),
)
async def disconnect(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, connection_id: PathId
) -> None:
    """End the connection: nothing unsent goes out any more, and the account leaves the group."""
    await disconnect_club(db, actor, known(club), known(connection_id))


@post(
    "/clubs/{club:str}/connections/{connection_id:str}/abandon",
    status_code=204,
    tags=TAGS,
    responses=answers(404, 409),
)
async def abandon(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, connection_id: PathId
) -> None:
    """End a connection whose account cannot leave the group: it stays a member there."""
    await finish_disconnect(db, actor, known(club), known(connection_id))


def _shape(card: ConnectionCard, health: ConnectionHealth, coverage: CoverageView) -> ClubConnection:
    return ClubConnection(
        id=encode_id(card.connection_id),
        group_id=card.group_id,
        group_name=card.group_name,
        state=health.state,
        obstacle=card.obstacle,
        is_stopped=card.kill_switch,
        join_policy=health.join_policy,
        visibility=health.visibility,
        features=[
            FeatureStanding(
                feature=one.feature,
                is_on=one.is_on,
                is_ready=one.is_ready,
                missing_grant=one.missing_grant,
            )
            for one in card.readiness
        ],
        waiting_since=health.waiting_since,
        next_look_at=health.next_look_at,
        last_look_at=health.last_success_at,
        last_fault=health.last_fault,
        backoff_until=health.backoff_until,
        evidence_at=health.observed_at,
        coverage=coverage.state,
        last_observation_at=coverage.observed_at,
    )


HANDLERS = (show_connection, connect, check, join_again, switch, disconnect, abandon)
