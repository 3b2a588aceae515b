"""What pages show of a club's connection; ``overview`` has the fleet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text

from lastcall.connections.evidence import GrantsSeen, grants_of
from lastcall.connections.states import BASELINE_GRANTS, Feature
from lastcall.db.transaction import Reader
from lastcall.protocol.constants import SERVER_EVIDENCE_AGE
from lastcall.protocol.messages import RoleSeen

USED = """
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
           {USED.format(scope="'connection:' || c.id")} as used_last_minute,
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


@dataclass(frozen=True)
class OpenLease:
    """Who works on a connection now."""

    worker_id: UUID
    fencing_token: int
    expires_at: datetime


@dataclass(frozen=True)
class Readiness:
    """A feature: whether the club switched it on, and the VRChat grant it lacks, if evidence says so.

    ``is_known`` is false without evidence of this epoch: then nothing is said about grants. ``is_ready``: it is on,
    nothing stands against sending, and evidence that would be believed now shows the grant.
    """

    feature: Feature
    is_on: bool
    is_known: bool
    is_ready: bool
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
        readiness=tuple(_readiness(feature, row, grants) for feature in Feature),
        evidence_age=row.evidence_age,
        roles=() if grants is None else grants.roles,
        lease=lease_of(row),
    )


def _readiness(feature: Feature, row: Row[Any], grants: GrantsSeen | None) -> Readiness:
    grant = BASELINE_GRANTS[feature]
    is_on = feature.value in row.features
    lacks = grant is not None and grants is not None and not grants.holds(grant)
    return Readiness(
        feature,
        is_on=is_on,
        is_known=grants is not None,
        is_ready=is_on
        and row.obstacle == "none"
        and grants is not None
        and grants.member_status == "member"
        and not lacks
        and row.evidence_age <= SERVER_EVIDENCE_AGE,
        missing_grant=grant if lacks else None,
    )


def lease_of(row: Row[tuple[object, ...]]) -> OpenLease | None:
    """The lease in a row that has one, or columns that are null."""
    if row.worker_id is None:
        return None
    return OpenLease(row.worker_id, row.fencing_token, row.expires_at)
