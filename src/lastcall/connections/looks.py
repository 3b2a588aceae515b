"""Looks at a group that no operation asks for: when they are due, and the buttons that ask for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import select, update

from lastcall.clubs.activity import COMMAND_LINE, log
from lastcall.clubs.policy import require_open
from lastcall.connections.gates import raise_gate
from lastcall.connections.leases import end_open_leases
from lastcall.connections.signals import CONNECTION_TOPIC, work
from lastcall.connections.states import PASSABLE, ConnectionState
from lastcall.connections.switches import connection_unknown, require_connection_manager
from lastcall.connections.tables import Connection
from lastcall.connections.transitions import REJOIN
from lastcall.connections.work import Ready
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.limits import Limit, take
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict
from lastcall.people.actor import Actor

CONNECTION_CHECK = Limit("connection_check", 6, timedelta(minutes=1))
"""Looks at groups that one person asks for."""

ANEW: Mapping[str, Any] = {
    "next_look_at": NOW,
    "waiting_since": None,
    "consecutive_failures": 0,
    "telemetry_failures": 0,
    "backoff_until": None,
    "last_fault": None,
    "updated_at": NOW,
}
"""What becomes of a connection whose state somebody moves, besides the state: a collector looks at once, and nothing
that it met before counts."""

_READY = """
    select c.club_id, c.id, c.next_look_at
    from connections c
    where c.account_id = $1 and c.state <> 'disconnected' and c.state = any (passable_states())
      and c.next_look_at is not null
"""


class LookWork:
    """The next look at each of an account's groups. Those that wait for nothing but work have none."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def ready(self, account_id: UUID) -> Sequence[Ready]:
        rows = await self._db.pool.fetch(_READY, account_id)
        return [Ready(row["club_id"], row["id"], row["next_look_at"]) for row in rows]


async def check_now(db: Database, actor: Actor | None, club_id: UUID, connection_id: UUID) -> None:
    """Let the group be looked at as soon as its account may. Raises ``Conflict`` where nobody looks, ``TooFast`` for
    who asks too often."""
    async with db.transaction() as tx:
        await require_connection_manager(tx, actor, club_id)
    if actor is not None:
        await take(db, CONNECTION_CHECK, str(actor.person_id))
    async with db.transaction() as tx:
        await require_connection_manager(tx, actor, club_id)
        state = await _held_state(tx, club_id, connection_id)
        if state not in PASSABLE:
            raise Conflict(
                "connection_state",
                f"No collector looks at a group whose connection is {state.label.lower()}.",
                advice=_ADVICE.get(state, "Connect the group anew."),
            )
        await _change(tx, club_id, connection_id, {"next_look_at": NOW, "updated_at": NOW})


async def rejoin(db: Database, actor: Actor | None, club_id: UUID, connection_id: UUID) -> None:
    """Let the account try to come into the group again. Raises ``Conflict`` where it does so already, or is in."""
    async with db.transaction() as tx:
        await require_connection_manager(tx, actor, club_id)
        await require_open(tx, club_id)
        state = await _held_state(tx, club_id, connection_id)
        if state not in REJOIN.leaves:
            raise Conflict(
                "connection_state",
                f"There is nothing to join again: the connection is {state.label.lower()}.",
                advice=_ADVICE.get(state, "Have the group looked at instead."),
            )
        # The pass that may be under way decided not to join.
        await end_open_leases(tx, [(club_id, connection_id)])
        await _change(tx, club_id, connection_id, {"state": REJOIN.to.value, **ANEW})
        await log(tx, club_id, actor or COMMAND_LINE, "connection.rejoin", "connection", connection_id)


_ADVICE = {
    ConnectionState.BLOCKED: "Lift the ban at VRChat, then let the account join again.",
    ConnectionState.AUTH_REQUIRED: "Sign the account in again at its collector first.",
}


async def _held_state(tx: Transaction, club_id: UUID, connection_id: UUID) -> ConnectionState:
    if not await raise_gate(tx, club_id, connection_id):
        raise connection_unknown()
    return ConnectionState(
        await tx.scalar(
            select(Connection.state).where(Connection.club_id == club_id, Connection.id == connection_id)
        )
    )


async def _change(tx: Transaction, club_id: UUID, connection_id: UUID, values: dict[str, object]) -> None:
    account_id = await tx.scalar(
        update(Connection)
        .where(Connection.club_id == club_id, Connection.id == connection_id)
        .values(values)
        .returning(Connection.account_id)
    )
    tx.publish(work(account_id))
    tx.publish(Hint(club_id, CONNECTION_TOPIC))
