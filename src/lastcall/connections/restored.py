"""``lastcall db restored``: the database was brought back from a backup and may have forgotten what was
sent."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from lastcall.clubs.activity import COMMAND_LINE, log
from lastcall.connections.gates import lock_fleet, raise_gates
from lastcall.connections.leases import end_open_leases
from lastcall.connections.listeners import EpochEnd, epoch_ends
from lastcall.connections.signals import CONNECTION_TOPIC, work
from lastcall.db.bus import Hint
from lastcall.db.database import Database
from lastcall.people.actor import Actor, require_operator
from lastcall.people.audit import audit
from lastcall.people.holding import hold_operator

RESTORED = "restored"
"""The reason that listeners get: their unsent work of the old epoch is put up for review."""

_CURRENT = text("""
    select club_id, id, epoch, account_id from connections
    where state <> 'disconnected'
    order by club_id, id
""")
_NEW_EPOCH = text("""
    update connections
    set epoch = greatest(lastcall_now(), epoch + interval '1 microsecond'), updated_at = lastcall_now()
    where club_id = :club_id and id = :connection_id
""")


@dataclass(frozen=True)
class Restored:
    """How many connections started a new epoch."""

    connections: int


async def restored(db: Database, actor: Actor | None) -> Restored:
    """Start a new epoch on every connection: nothing that was authorized, claimed or queued before goes out.

    Leases end too. Run it after a restore or a failover that lost commits, before collectors are started
    again; each of them then reports on hello what its journal knows and this database does not.
    """
    require_operator(actor)
    async with db.transaction() as tx:
        await lock_fleet(tx)
        await hold_operator(tx, actor)
        rows = (await tx.execute(_CURRENT)).all()
        await raise_gates(tx, [(row.club_id, row.id) for row in rows])
        for row in rows:
            await end_open_leases(tx, [(row.club_id, row.id)])
            await epoch_ends(tx, EpochEnd(row.club_id, row.id, row.epoch, RESTORED))
            await tx.execute(_NEW_EPOCH, {"club_id": row.club_id, "connection_id": row.id})
            await log(
                tx,
                row.club_id,
                actor or COMMAND_LINE,
                "connection.new_epoch",
                "connection",
                row.id,
                {"reason": RESTORED},
            )
            tx.publish(work(row.account_id))
            tx.publish(Hint(row.club_id, CONNECTION_TOPIC))
        await audit(
            tx, actor.person_id if actor else None, "database.restored", "database", connections=len(rows)
        )
    return Restored(len(rows))
