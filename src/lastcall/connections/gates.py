"""The gates, for services. Take them before anything else in the transaction: fleet, account, club,
connection."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from sqlalchemy import text

from lastcall.db.transaction import Transaction

_LOCK_FLEET = text("select lock_fleet()")
_LOCK_ACCOUNT = text("select lock_account(:account_id)")
_RAISE = text("select raise_connection_gate(:club_id, :connection_id)")
_LOCK_GATES = text("""
    select g.club_id, g.connection_id
    from connection_gates g
    join connections c on c.club_id = g.club_id and c.id = g.connection_id
    where c.account_id = :account_id and c.state <> 'disconnected'
    order by g.club_id, g.connection_id
    for no key update of g
""")


async def lock_fleet(tx: Transaction) -> None:
    """Hold the fleet's gate alone until the transaction ends: no authorization is under way in that time."""
    await tx.execute(_LOCK_FLEET)


async def lock_account(tx: Transaction, account_id: UUID) -> None:
    """Hold the account's gate alone until the transaction ends."""
    await tx.execute(_LOCK_ACCOUNT, {"account_id": account_id})


async def raise_gate(tx: Transaction, club_id: UUID, connection_id: UUID) -> bool:
    """Shut the connection's gate until the transaction ends; False when there is no such connection."""
    return bool(await tx.scalar(_RAISE, {"club_id": club_id, "connection_id": connection_id}))


async def raise_gates_of_account(tx: Transaction, account_id: UUID) -> list[tuple[UUID, UUID]]:
    """Shut the gates of all current connections of the account, in one order so that two callers cannot
    deadlock; answers (club, connection) of each."""
    rows = (await tx.execute(_LOCK_GATES, {"account_id": account_id})).all()
    return await raise_gates(tx, ((row.club_id, row.connection_id) for row in rows))


async def raise_gates(tx: Transaction, connections: Iterable[tuple[UUID, UUID]]) -> list[tuple[UUID, UUID]]:
    """Shut the gates of these connections, in id order; answers those that exist."""
    return [key for key in sorted(set(connections)) if await raise_gate(tx, *key)]
