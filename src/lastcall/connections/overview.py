"""What operators see: the fleet, its accounts with their collectors, and every club's connection."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from sqlalchemy import text

from lastcall.connections.account_states import LEAVING, moves_of_operator
from lastcall.connections.allocation import WORKS
from lastcall.connections.queries import USED, OpenLease, lease_of
from lastcall.connections.states import AccountState
from lastcall.connections.transitions import REASSIGNED
from lastcall.db.transaction import Reader
from lastcall.people.actor import Actor
from lastcall.people.holding import require_operator_now

_FLEET = text(f"""
    select f.kill_switch, f.requests_per_minute, n.now, {USED.format(scope="'fleet'")} as used_last_minute
    from (select lastcall_now() as now) n, fleet_settings f
    where f.id = 1
""")  # noqa: S608 - the scope is a literal of this file

_ACCOUNTS = text(f"""
    select a.id, a.alias, a.vrchat_user_id, a.state, a.kill_switch, a.requests_per_minute, a.cooldown_until,
           a.credential_generation, a.capacity, a.reserved_headroom, a.writes_per_day, a.joined_on,
           writes_allowed(a.joined_on, a.writes_per_day, n.day) as writes_allowed,
           writes_reserved(a.id, n.day) as writes_today,
           account_obstacle(a.id, n.now) as obstacle,
           exists (
               select from worker_keys k
               where k.account_id = a.id and k.generation = a.credential_generation and k.revoked_at is null
           ) as has_key,
           {USED.format(scope="'account:' || a.id")} as used_last_minute,
           (select count(*) from connections c where c.account_id = a.id and c.state <> 'disconnected')
               as connections
    from (select s.now, (s.now at time zone 'UTC')::date as day from (select lastcall_now() as now) s) n,
         accounts a
    order by a.alias
""")  # noqa: S608

_COLLECTORS = text("""
    select w.account_id, w.worker_id, w.release, w.last_hello_at
    from collectors w
    order by w.account_id, w.last_hello_at desc, w.worker_id
""")

_CONNECTIONS = text("""
    select c.club_id, c.id, k.name as club_name, c.group_name, c.state, c.kill_switch, c.frozen_at,
           c.frozen_reason, a.id as account_id, a.alias, a.state as account_state, c.requests_per_minute,
           connection_obstacle(c.club_id, c.id, a.id, null, n.now) as obstacle,
           l.worker_id, l.fencing_token, l.expires_at
    from (select lastcall_now() as now) n
    join connections c on c.state <> 'disconnected'
    join clubs k on k.id = c.club_id
    join accounts a on a.id = c.account_id
    left join leases l
      on l.club_id = c.club_id and l.connection_id = c.id and l.released_at is null and l.expires_at > n.now
    order by k.name, c.id
""")


@dataclass(frozen=True)
class FleetLine:
    """The whole fleet."""

    kill_switch: bool
    requests_per_minute: int
    used_last_minute: int


@dataclass(frozen=True)
class CollectorLine:
    """A collector process of an account, as its last hello described it."""

    worker_id: UUID
    release: str
    last_hello_at: datetime


@dataclass(frozen=True)
class AccountLine:
    """An account. ``obstacle`` is why it does not work now ('none' when it does).

    ``connections`` counts those that are not over; ``capacity`` is their most, of which ``reserved_headroom`` are not
    given out by themselves. ``writes_today`` were reserved this day of UTC, of ``writes_allowed``, which is less than
    ``writes_per_day`` as long as the account is young. ``collectors``: the one that started last is first.
    """

    account_id: UUID
    alias: str
    vrchat_user_id: str
    state: AccountState
    obstacle: str
    kill_switch: bool
    requests_per_minute: int
    used_last_minute: int
    cooldown_until: datetime | None
    key_generation: int
    has_key: bool
    connections: int
    capacity: int
    reserved_headroom: int
    writes_per_day: int
    writes_allowed: int
    writes_today: int
    joined_on: date | None
    collectors: tuple[CollectorLine, ...]

    @property
    def last_hello_at(self) -> datetime | None:
        return self.collectors[0].last_hello_at if self.collectors else None

    @property
    def places_free(self) -> int:
        """Places that a club without a named account may get."""
        return max(0, self.capacity - self.reserved_headroom - self.connections)

    @property
    def may_be_named(self) -> bool:
        """Whether an operator can give it a club."""
        return self.state in WORKS and self.connections < self.capacity

    @property
    def moves(self) -> tuple[AccountState, ...]:
        """What an operator can set it to now."""
        return tuple(
            to
            for to in moves_of_operator(self.state)
            if to is not AccountState.RETIRED or not self.connections
        )


@dataclass(frozen=True)
class ConnectionLine:
    """A club's connection. ``is_reassignable``: its account is leaving, so that another one may take over."""

    club_id: UUID
    connection_id: UUID
    club_name: str
    group_name: str
    account_id: UUID
    account_alias: str
    is_reassignable: bool
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


async def overview(tx: Reader, actor: Actor | None) -> Overview:
    """Fleet, accounts and connections; operators only. No ``actor`` means the host's command line."""
    await require_operator_now(tx, actor)
    fleet = (await tx.execute(_FLEET)).one()
    return Overview(
        now=fleet.now,
        fleet=FleetLine(fleet.kill_switch, fleet.requests_per_minute, fleet.used_last_minute),
        accounts=await _accounts(tx),
        connections=await _connections(tx),
    )


async def _accounts(tx: Reader) -> tuple[AccountLine, ...]:
    collectors: dict[UUID, list[CollectorLine]] = {}
    for row in (await tx.execute(_COLLECTORS)).all():
        known = CollectorLine(row.worker_id, row.release, row.last_hello_at)
        collectors.setdefault(row.account_id, []).append(known)
    return tuple(
        AccountLine(
            account_id=row.id,
            alias=row.alias,
            vrchat_user_id=row.vrchat_user_id,
            state=AccountState(row.state),
            obstacle=row.obstacle,
            kill_switch=row.kill_switch,
            requests_per_minute=row.requests_per_minute,
            used_last_minute=row.used_last_minute,
            cooldown_until=row.cooldown_until,
            key_generation=row.credential_generation,
            has_key=row.has_key,
            connections=row.connections,
            capacity=row.capacity,
            reserved_headroom=row.reserved_headroom,
            writes_per_day=row.writes_per_day,
            writes_allowed=row.writes_allowed,
            writes_today=row.writes_today,
            joined_on=row.joined_on,
            collectors=tuple(collectors.get(row.id, ())),
        )
        for row in (await tx.execute(_ACCOUNTS)).all()
    )


async def _connections(tx: Reader) -> tuple[ConnectionLine, ...]:
    return tuple(
        ConnectionLine(
            club_id=row.club_id,
            connection_id=row.id,
            club_name=row.club_name,
            group_name=row.group_name,
            account_id=row.account_id,
            account_alias=row.alias,
            is_reassignable=row.account_state in LEAVING and row.state in REASSIGNED.leaves,
            state=row.state,
            obstacle=row.obstacle,
            kill_switch=row.kill_switch,
            frozen_at=row.frozen_at,
            frozen_reason=row.frozen_reason,
            requests_per_minute=row.requests_per_minute,
            lease=lease_of(row),
        )
        for row in (await tx.execute(_CONNECTIONS)).all()
    )
