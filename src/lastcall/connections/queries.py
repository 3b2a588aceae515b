"""What pages show of connections, accounts and the fleet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Row, text

from lastcall.connections.evidence import GrantsSeen, grants_of
from lastcall.connections.states import BASELINE_GRANTS, Feature
from lastcall.db.transaction import Reader
from lastcall.people.actor import Actor
from lastcall.people.holding import require_operator_now
from lastcall.protocol.messages import RoleSeen

_USED = """
    coalesce((
        select sum(u.granted)
        from allowances w, unnest(w.recent_until, w.recent_granted) as u (until, granted)
        where w.scope = {scope} and u.until > n.now - interval '60 seconds'
    ), 0)::integer
"""

_CONNECTION = text(f"""
    select c.club_id, c.id, c.group_id, c.group_name, c.state, c.epoch, c.features, c.kill_switch,
           c.frozen_at, c.frozen_reason, c.consecutive_failures, c.backoff_until,
           a.id as account_id, a.alias,
           connection_obstacle(c.club_id, c.id, a.id, null, n.now) as obstacle,
           least(c.requests_per_minute, a.requests_per_minute, f.requests_per_minute) as requests_per_minute,
           {_USED.format(scope="'connection:' || c.id")} as used_last_minute,
           e.body, n.now - e.observed_at as evidence_age,
           l.worker_id, l.fencing_token, l.expires_at
    from (select lastcall_now() as now) n
    join fleet_settings f on f.id = 1
    join connections c on c.club_id = :club_id and c.state <> 'disconnected'
    join accounts a on a.id = c.account_id
    left join lateral own_member_evidence(c.club_id, c.id, c.epoch) e on true
    left join leases l
      on l.club_id = c.club_id and l.connection_id = c.id and l.released_at is null and l.expires_at > n.now
""")  # noqa: S608 - the scope is a literal of this file

_FLEET = text(f"""
    select f.kill_switch, f.requests_per_minute, n.now, {_USED.format(scope="'fleet'")} as used_last_minute
    from (select lastcall_now() as now) n, fleet_settings f
    where f.id = 1
""")  # noqa: S608

_ACCOUNTS = text(f"""
    select a.id, a.alias, a.vrchat_user_id, a.state, a.kill_switch, a.requests_per_minute, a.cooldown_until,
           a.credential_generation, account_obstacle(a.id, n.now) as obstacle,
           exists (
               select from worker_keys k
               where k.account_id = a.id and k.generation = a.credential_generation and k.revoked_at is null
           ) as has_key,
           {_USED.format(scope="'account:' || a.id")} as used_last_minute,
           (select max(w.last_hello_at) from collectors w where w.account_id = a.id) as last_hello_at
    from (select lastcall_now() as now) n, accounts a
    order by a.alias
""")  # noqa: S608

_CONNECTIONS = text(""" select c.club_id, c.id, k.name as club_name, c.group_name, c.state, c.kill_switch,
c.frozen_at, c.frozen_reason, a.id as account_id, a.alias, c.requests_per_minute,
connection_obstacle(c.club_id, c.id, a.id, null, n.now) as obstacle, l.worker_id, l.fencing_token,
l.expires_at from (select lastcall_now() as now) n join connections c on c.state <> 'disconnected' join
clubs k on k.id = c.club_id join accounts a on a.id = c.account_id left join leases l on l.club_id =
c.club_id and l.connection_id = c.id and l.released_at is null and l.expires_at > n.now order by k.name,
c.id """)


@dataclass(frozen=True)
class OpenLease:
    """Who works on a connection now."""

    worker_id: UUID
    fencing_token: int
    expires_at: datetime


@dataclass(frozen=True)
class Readiness:
    """A feature: whether the club switched it on, and the VRChat grant it lacks, if evidence says so.

    ``is_known`` is false without evidence of this epoch: then nothing is said about grants.
    """

    feature: Feature
    is_on: bool
    is_known: bool
    missing_grant: str | None


@dataclass(frozen=True)
class ConnectionCard:
    """A club's current connection. ``obstacle`` is why nothing is sent now ('none' when it is).

    ``requests_per_minute`` is the lowest of connection, account and fleet; ``used_last_minute`` what was
    granted to this connection in the last 60 seconds. ``evidence_age`` is that of the last read of the own
    membership, and ``roles`` are the group's as that read had them.
    """

    club_id: UUID
    connection_id: UUID
    group_id: str
    group_name: str
    state: str
    epoch: datetime
    kill_switch: bool
    frozen_at: datetime | None
    frozen_reason: str | None
    consecutive_failures: int
    backoff_until: datetime | None
    account_id: UUID
    account_alias: str
    obstacle: str
    requests_per_minute: int
    used_last_minute: int
    readiness: tuple[Readiness, ...]
    evidence_age: timedelta | None
    roles: tuple[RoleSeen, ...]
    lease: OpenLease | None

    def is_on(self, feature: Feature) -> bool:
        """Whether the club lets Lastcall use this feature."""
        return any(ready.feature is feature and ready.is_on for ready in self.readiness)


@dataclass(frozen=True)
class FleetLine:
    """The whole fleet, for the operator."""

    kill_switch: bool
    requests_per_minute: int
    used_last_minute: int


@dataclass(frozen=True)
class AccountLine:
    """An account, for the operator. ``obstacle`` is why it does not work now ('none' when it does)."""

    account_id: UUID
    alias: str
    vrchat_user_id: str
    state: str
    obstacle: str
    kill_switch: bool
    requests_per_minute: int
    used_last_minute: int
    cooldown_until: datetime | None
    key_generation: int
    has_key: bool
    last_hello_at: datetime | None


@dataclass(frozen=True)
class ConnectionLine:
    """A connection, for the operator."""

    club_id: UUID
    connection_id: UUID
    club_name: str
    group_name: str
    account_id: UUID
    account_alias: str
    state: str
    obstacle: str
    kill_switch: bool
    frozen_at: datetime | None
    frozen_reason: str | None
    requests_per_minute: int
    lease: OpenLease | None


@dataclass(frozen=True)
class Overview:
    """What the operator page shows of this room, at the database's ``now``."""

    now: datetime
    fleet: FleetLine
    accounts: tuple[AccountLine, ...]
    connections: tuple[ConnectionLine, ...]


async def connection_card(tx: Reader, club_id: UUID) -> ConnectionCard | None:
    """The club's current connection; None when it has none. The caller has asked whether the reader may see
    it."""
    row = (await tx.execute(_CONNECTION, {"club_id": club_id})).one_or_none()
    if row is None:
        return None
    grants = None if row.body is None else grants_of(row.body)
    return ConnectionCard(
        club_id=row.club_id,
        connection_id=row.id,
        group_id=row.group_id,
        group_name=row.group_name,
        state=row.state,
        epoch=row.epoch,
        kill_switch=row.kill_switch,
        frozen_at=row.frozen_at,
        frozen_reason=row.frozen_reason,
        consecutive_failures=row.consecutive_failures,
        backoff_until=row.backoff_until,
        account_id=row.account_id,
        account_alias=row.alias,
        obstacle=row.obstacle,
        requests_per_minute=row.requests_per_minute,
        used_last_minute=row.used_last_minute,
        readiness=tuple(_readiness(feature, row.features, grants) for feature in Feature),
        evidence_age=row.evidence_age,
        roles=() if grants is None else grants.roles,
        lease=_lease(row),
    )


async def overview(tx: Reader, actor: Actor | None) -> Overview:
    """Fleet, accounts and connections; operators only. No ``actor`` means the host's command line."""
    await require_operator_now(tx, actor)
    fleet = (await tx.execute(_FLEET)).one()
    accounts = (await tx.execute(_ACCOUNTS)).all()
    connections = (await tx.execute(_CONNECTIONS)).all()
    return Overview(
        now=fleet.now,
        fleet=FleetLine(fleet.kill_switch, fleet.requests_per_minute, fleet.used_last_minute),
        accounts=tuple(
            AccountLine(
                account_id=row.id,
                alias=row.alias,
                vrchat_user_id=row.vrchat_user_id,
                state=row.state,
                obstacle=row.obstacle,
                kill_switch=row.kill_switch,
                requests_per_minute=row.requests_per_minute,
                used_last_minute=row.used_last_minute,
                cooldown_until=row.cooldown_until,
                key_generation=row.credential_generation,
                has_key=row.has_key,
                last_hello_at=row.last_hello_at,
            )
            for row in accounts
        ),
        connections=tuple(
            ConnectionLine(
                club_id=row.club_id,
                connection_id=row.id,
                club_name=row.club_name,
                group_name=row.group_name,
                account_id=row.account_id,
                account_alias=row.alias,
                state=row.state,
                obstacle=row.obstacle,
                kill_switch=row.kill_switch,
                frozen_at=row.frozen_at,
                frozen_reason=row.frozen_reason,
                requests_per_minute=row.requests_per_minute,
                lease=_lease(row),
            )
            for row in connections
        ),
    )


def _readiness(feature: Feature, features: list[str], grants: GrantsSeen | None) -> Readiness:
    grant = BASELINE_GRANTS[feature]
    lacks = grant is not None and grants is not None and not grants.holds(grant)
    return Readiness(feature, feature.value in features, grants is not None, grant if lacks else None)


def _lease(row: Row[tuple[object, ...]]) -> OpenLease | None:
    if row.worker_id is None:
        return None
    return OpenLease(row.worker_id, row.fencing_token, row.expires_at)
