"""Giving a connection to another account, when its own is leaving."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import select, update

from lastcall.clubs.activity import COMMAND_LINE, log
from lastcall.clubs.gates import hold_gate
from lastcall.connections.account_states import LEAVING
from lastcall.connections.allocation import allocate_account, hold_account, hold_place
from lastcall.connections.gates import raise_gate
from lastcall.connections.leases import end_open_leases
from lastcall.connections.listeners import Coverage, TelemetryFailure, telemetry_failed
from lastcall.connections.looks import ANEW
from lastcall.connections.signals import CONNECTION_TOPIC, work
from lastcall.connections.states import ConnectionState
from lastcall.connections.staying import note_stayed
from lastcall.connections.switches import connection_unknown
from lastcall.connections.tables import Connection
from lastcall.connections.transitions import REASSIGNED
from lastcall.db.bus import Hint
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict
from lastcall.people.actor import Actor, require_operator
from lastcall.people.holding import hold_operator


async def reassign_connection(
    db: Database, actor: Actor | None, club_id: UUID, connection_id: UUID, account_id: UUID | None
) -> UUID:
    """Let another account serve the connection, the named one or one that is chosen; answers which. Operators only.

    Its epoch and its unsent work stay; the lease ends, and the new account has to become a member of the group before
    anything goes out. The result of what the old account sent is still taken from it (WRK-06). Raises ``Conflict``
    unless the present account is quarantined, retiring or retired, and when the other one does not work or is full.
    """
    require_operator(actor)
    async with db.transaction() as tx:
        await hold_gate(tx, club_id)
        if not await raise_gate(tx, club_id, connection_id):
            raise connection_unknown()
        await hold_operator(tx, actor)
        old, epoch, group_id = await _leaving(tx, club_id, connection_id)
        new = await _successor(tx, account_id)
        await note_stayed(tx, club_id, connection_id, group_id, old, of=club_id)
        await end_open_leases(tx, [(club_id, connection_id)])
        await tx.execute(
            update(Connection)
            .where(Connection.club_id == club_id, Connection.id == connection_id)
            .values(account_id=new, state=REASSIGNED.to.value, **ANEW)
        )
        await telemetry_failed(
            tx, TelemetryFailure(club_id, connection_id, epoch, Coverage.UNKNOWN, "connection_reassigned")
        )
        await log(
            tx,
            club_id,
            actor or COMMAND_LINE,
            "connection.reassigned",
            "connection",
            connection_id,
            {"from": str(old), "to": str(new)},
        )
        for account in (old, new):
            tx.publish(work(account))
        tx.publish(Hint(club_id, CONNECTION_TOPIC))
    return new


async def _leaving(tx: Transaction, club_id: UUID, connection_id: UUID) -> tuple[UUID, datetime, str]:
    """The account that gives the connection away, held, the epoch, and the group. Raises ``Conflict`` when it keeps
    it."""
    row = (
        await tx.execute(
            select(Connection.account_id, Connection.state, Connection.epoch, Connection.group_id).where(
                Connection.club_id == club_id, Connection.id == connection_id
            )
        )
    ).one()
    if ConnectionState(row.state) not in REASSIGNED.leaves:
        raise Conflict(
            "connection_over",
            "This connection has ended or is ending.",
            advice="Connect the club anew; an account that works is chosen then.",
        )
    account = await hold_account(tx, row.account_id)
    if account.state not in LEAVING:
        raise Conflict(
            "account_not_leaving",
            f"The account {account.alias} is {account.state.words}: it keeps its connections.",
            advice="Set it to quarantined or retiring first.",
        )
    return account.account_id, row.epoch, row.group_id


async def _successor(tx: Transaction, account_id: UUID | None) -> UUID:
    """The account that takes over, held."""
    return await allocate_account(tx) if account_id is None else (await hold_place(tx, account_id)).account_id
