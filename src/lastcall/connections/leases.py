"""Leases: which worker may work on a connection, and by which fencing token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias
from uuid import UUID

import asyncpg
from sqlalchemy import text

from lastcall.connections.gates import raise_gate
from lastcall.connections.refusals import refused
from lastcall.connections.signals import LEASE_EXPIRY, work
from lastcall.connections.spreading import SPREADING
from lastcall.connections.states import USABLE, ConnectionState, Feature
from lastcall.connections.worker import LeaseHeld, Worker
from lastcall.db.connect import Connection
from lastcall.db.database import Database
from lastcall.db.pool import RawPool
from lastcall.db.transaction import Transaction
from lastcall.deadlines.signals import Signal
from lastcall.protocol.constants import LEASE_LIFE

Fetcher: TypeAlias = Connection | RawPool

_TAKE = "select * from take_lease($1, $2, $3, $4, $5, $6)"
_RENEW = "select * from renew_lease($1, $2, $3, $4, $5, $6, $7, $8)"
_RELEASE = "select * from release_lease($1, $2, $3, $4, $5, $6, $7)"
_END = text("""
    update leases set released_at = lastcall_now()
    where club_id = :club_id and connection_id = :connection_id and released_at is null
    returning account_id
""")
_PASS_OVER = text("""
    update connections set lease_generation = lease_generation + 1
    where club_id = :club_id and id = :connection_id
""")
_HELD = text("""
    select key_is_current(:account_id, :generation, n.now) as has_key,
           lease_is_current(
               :club_id, :connection_id, :account_id, :worker_id, cast(:fencing_token as bigint), n.now
           ) as has_lease,
           c.epoch, c.state, c.group_id, c.group_name, c.features, c.waiting_since, c.last_fault,
           fails_at_its_work(c) as fails_at_its_work
    from (select lastcall_now() as now) n
    left join connections c on c.club_id = :club_id and c.id = :connection_id
""")


@dataclass(frozen=True)
class LeasedConnection:
    """A connection whose lease was found good, its gate held until the transaction ends."""

    club_id: UUID
    id: UUID
    epoch: datetime
    state: ConnectionState
    group_id: str
    group_name: str
    features: frozenset[Feature]
    waiting_since: datetime | None
    last_fault: str | None
    fails_at_its_work: bool
    """Whether being a member ends no row of failures (``evidence.sql``)."""

    @property
    def is_usable(self) -> bool:
        """Whether operations are sent in its state."""
        return self.state in USABLE


@dataclass(frozen=True)
class LeaseGiven:
    """A fresh lease. ``requests_per_minute`` is the lowest of connection, account and fleet."""

    epoch: datetime
    fencing_token: int
    life: timedelta
    state: str
    group_id: str
    features: tuple[str, ...]
    requests_per_minute: int
    account_requests_per_minute: int


@dataclass(frozen=True)
class LeaseRenewed:
    """How much longer the lease lasts, and the limits as they are now."""

    life: timedelta
    requests_per_minute: int
    account_requests_per_minute: int


async def take_lease(db: Database, worker: Worker, club_id: UUID, connection_id: UUID) -> LeaseGiven:
    """Give the worker the connection, with a token higher than any before.

    Raises a refusal (``refusals.py``): another worker holds it, it is not this account's, or an obstacle.
    """
    async with db.transaction() as tx:
        row = await _only(
            tx.raw,
            _TAKE,
            *worker.arguments,
            club_id,
            connection_id,
            LEASE_LIFE,
        )
        # Also when it is refused: the waiter was offered what may not be worked on, so it must look again.
        tx.publish(work(worker.account_id))
        if row["outcome"] == "leased":
            tx.publish(Signal(LEASE_EXPIRY, row["expires_at"]))
    if row["outcome"] != "leased":
        raise refused(row["outcome"])
    return LeaseGiven(
        epoch=row["epoch"],
        fencing_token=row["fencing_token"],
        life=row["expires_at"] - row["judged_at"],
        state=row["state"],
        group_id=row["group_id"],
        features=tuple(row["features"]),
        requests_per_minute=row["least_limit"],
        account_requests_per_minute=row["account_limit"],
    )


async def renew_lease(db: Database, worker: Worker, held: LeaseHeld) -> LeaseRenewed:
    """Let the lease last ``LEASE_LIFE`` from now on. A lease that is over cannot be renewed, only taken
    anew."""
    row = await _only(
        db.pool,
        _RENEW,
        *worker.arguments,
        *held.arguments,
        LEASE_LIFE,
    )
    if row["outcome"] != "renewed":
        raise refused(row["outcome"])
    return LeaseRenewed(
        life=row["expires_at"] - row["judged_at"],
        requests_per_minute=row["least_limit"],
        account_requests_per_minute=row["account_limit"],
    )


async def release_lease(db: Database, worker: Worker, held: LeaseHeld) -> None:
    """Give the connection back, and set when its group is looked at next; what became ready meanwhile is offered at
    once."""
    phase = SPREADING.take()
    async with db.transaction() as tx:
        row = await _only(
            tx.raw,
            _RELEASE,
            *worker.arguments,
            held.club_id,
            held.connection_id,
            held.fencing_token,
            phase,
        )
        if row["outcome"] == "released":
            tx.publish(work(worker.account_id))
    if not row["is_spread"]:
        SPREADING.give_back(phase)
    if row["outcome"] != "released":
        raise refused(row["outcome"])


async def hold_leased(tx: Transaction, worker: Worker, held: LeaseHeld) -> LeasedConnection:
    """Shut the connection's gate and answer what it is, for a call that speaks for its lease. The first thing in a
    transaction. Raises a refusal for a stale key or lease and for another epoch."""
    await raise_gate(tx, held.club_id, held.connection_id)
    row = (
        await tx.execute(
            _HELD,
            {
                "account_id": worker.account_id,
                "generation": worker.generation,
                "worker_id": worker.worker_id,
                "club_id": held.club_id,
                "connection_id": held.connection_id,
                "fencing_token": held.fencing_token,
            },
        )
    ).one()
    if not row.has_key:
        raise refused("stale_key")
    if not row.has_lease:
        raise refused("stale_lease")
    if row.epoch != held.epoch:
        raise refused("epoch")
    return LeasedConnection(
        club_id=held.club_id,
        id=held.connection_id,
        epoch=row.epoch,
        state=ConnectionState(row.state),
        group_id=row.group_id,
        group_name=row.group_name,
        features=frozenset(Feature(name) for name in row.features),
        waiting_since=row.waiting_since,
        last_fault=row.last_fault,
        fails_at_its_work=row.fails_at_its_work,
    )


async def end_open_leases(tx: Transaction, connections: Sequence[tuple[UUID, UUID]]) -> None:
    """End the open leases of these connections; the caller holds their gates. The token is passed over, so
    that not even a lost answer to the lease call can bring the old one back."""
    for club_id, connection_id in connections:
        key = {"club_id": club_id, "connection_id": connection_id}
        account_id = await tx.scalar(_END, key)
        if account_id is not None:
            await tx.execute(_PASS_OVER, key)
            tx.publish(work(account_id))


async def _only(on: Fetcher, statement: str, *arguments: object) -> asyncpg.Record:
    row = await on.fetchrow(statement, *arguments)
    if row is None:
        raise AssertionError("A lease function answers exactly one row.")
    return row
