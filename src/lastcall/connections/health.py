"""How a club's connection gets on: what its account waits for, when a collector last came by, what went wrong."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from lastcall.connections.evidence import GrantsSeen, grants_of
from lastcall.connections.states import AccountState, ConnectionState, GroupVisibility, JoinPolicy
from lastcall.db.transaction import Reader

_HEALTH = text("""
    select c.state, c.join_policy, c.group_visibility, c.next_look_at, c.waiting_since, c.last_attempt_at,
           c.last_success_at, c.last_fault, c.backoff_until, a.alias, a.vrchat_user_id, a.state as account_state,
           a.cooldown_until, e.body, e.observed_at
    from connections c
    join accounts a on a.id = c.account_id
    left join lateral own_member_evidence(c.club_id, c.id, c.epoch) e on true
    where c.club_id = :club_id and c.state <> 'disconnected'
""")


@dataclass(frozen=True)
class ConnectionHealth:
    """A club's current connection as whoever looks after it wants to know it.

    ``grants`` is what VRChat let the account do when it was last read, at ``observed_at``. ``last_fault`` is the code
    of what went wrong since the last success; ``waiting_since`` since when the account waits to be let in.
    """

    state: ConnectionState
    join_policy: JoinPolicy
    visibility: GroupVisibility
    next_look_at: datetime | None
    waiting_since: datetime | None
    last_attempt_at: datetime | None
    last_success_at: datetime | None
    last_fault: str | None
    backoff_until: datetime | None
    account_alias: str
    account_user_id: str
    account_state: AccountState
    cooldown_until: datetime | None
    grants: GrantsSeen | None
    observed_at: datetime | None


async def connection_health(tx: Reader, club_id: UUID) -> ConnectionHealth | None:
    """None without a connection. The caller has asked whether the reader may see it."""
    row = (await tx.execute(_HEALTH, {"club_id": club_id})).one_or_none()
    if row is None:
        return None
    return ConnectionHealth(
        state=ConnectionState(row.state),
        join_policy=JoinPolicy(row.join_policy),
        visibility=GroupVisibility(row.group_visibility),
        next_look_at=row.next_look_at,
        waiting_since=row.waiting_since,
        last_attempt_at=row.last_attempt_at,
        last_success_at=row.last_success_at,
        last_fault=row.last_fault,
        backoff_until=row.backoff_until,
        account_alias=row.alias,
        account_user_id=row.vrchat_user_id,
        account_state=AccountState(row.account_state),
        cooldown_until=row.cooldown_until,
        grants=None if row.body is None else grants_of(row.body),
        observed_at=row.observed_at,
    )
