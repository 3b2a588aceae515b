"""Commands on a club's connection: connect, disconnect, choose its features."""

from __future__ import annotations

import re
from collections.abc import Collection
from uuid import UUID

from sqlalchemy import delete, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.clubs.activity import COMMAND_LINE, System, log
from lastcall.clubs.policy import require_open
from lastcall.connections.gates import raise_gate
from lastcall.connections.leases import end_open_leases
from lastcall.connections.listeners import EpochBegin, EpochEnd, epoch_begins, epoch_ends
from lastcall.connections.signals import CONNECTION_TOPIC, work
from lastcall.connections.states import AccountState, ConnectionState, Feature
from lastcall.connections.switches import connection_unknown, require_connection_manager
from lastcall.connections.tables import Account, Connection, ConnectionGate
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.tables import Directory
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid, NotFound
from lastcall.names import valid_name
from lastcall.people.actor import Actor

GROUP_DIRECTORY = "vrchat_group"
"""A VRChat group is connected to at most one club: the directory kind under which that is held."""
_GROUP = re.compile(r"grp_[A-Za-z0-9_-]{1,96}")


async def connect_club(
    db: Database,
    actor: Actor | None,
    club_id: UUID,
    *,
    group_id: str,
    group_name: str,
    account_id: UUID,
    features: Collection[Feature],
) -> UUID:
    """Connect the club to its VRChat group through an account; answers the connection's id.

    The account must be a member of the group already. Every connect is a new row and a new epoch, so no
    work and no evidence of an earlier one is taken for its own. Raises ``Invalid`` for a malformed id or
    name, ``NotFound`` for an unknown account, ``Conflict`` when the club is connected, the group belongs to
    another club, or the account does not work.
    """
    _check_group(group_id)
    group_name = valid_name(group_name, "group_name", what="The group's name")
    connection_id = new_id()
    async with db.transaction() as tx:
        await require_connection_manager(tx, actor, club_id)
        await require_open(tx, club_id)
        await _require_ready(tx, account_id)
        await _refuse_connected(tx, club_id)
        await _take_group(tx, group_id, club_id)
        inserted = await tx.execute(
            insert(Connection)
            .values(
                club_id=club_id,
                id=connection_id,
                group_id=group_id,
                group_name=group_name,
                account_id=account_id,
                state=ConnectionState.ACTIVE.value,
                epoch=NOW,
                features=sorted(feature.value for feature in features),
            )
            .returning(Connection.epoch)
        )
        await tx.execute(insert(ConnectionGate).values(club_id=club_id, connection_id=connection_id))
        await epoch_begins(tx, EpochBegin(club_id, connection_id, inserted.scalar_one()))
        await log(
            tx,
            club_id,
            actor or COMMAND_LINE,
            "connection.connected",
            "connection",
            connection_id,
            {"group_id": group_id, "features": sorted(features)},
        )
        tx.publish(work(account_id))
        tx.publish(Hint(club_id, CONNECTION_TOPIC))
    return connection_id


async def disconnect_club(db: Database, actor: Actor | None, club_id: UUID, connection_id: UUID) -> None:
    """End the connection and its epoch: unsent work never goes out, what was sent is still settled (WRK-06).

    The account stays a member of the group until somebody removes it there.
    """
    async with db.transaction() as tx:
        await require_connection_manager(tx, actor, club_id)
        await end_connection(tx, actor or COMMAND_LINE, club_id, connection_id)


async def end_connection(tx: Transaction, by: Actor | System, club_id: UUID, connection_id: UUID) -> None:
    """The same within a transaction that asked who may. One that is over already stays as it is."""
    if not await raise_gate(tx, club_id, connection_id):
        raise connection_unknown()
    row = (
        await tx.execute(
            select(Connection.epoch, Connection.group_id, Connection.account_id, Connection.state).where(
                Connection.club_id == club_id, Connection.id == connection_id
            )
        )
    ).one()
    if row.state == ConnectionState.DISCONNECTED.value:
        return
    await end_open_leases(tx, [(club_id, connection_id)])
    await epoch_ends(tx, EpochEnd(club_id, connection_id, row.epoch, "disconnected"))
    await tx.execute(
        update(Connection)
        .where(Connection.club_id == club_id, Connection.id == connection_id)
        .values(state=ConnectionState.DISCONNECTED.value, updated_at=NOW)
    )
    await tx.execute(
        delete(Directory).where(
            Directory.kind == GROUP_DIRECTORY, Directory.key == row.group_id, Directory.club_id == club_id
        )
    )
    await log(tx, club_id, by, "connection.disconnected", "connection", connection_id)
    tx.publish(work(row.account_id))
    tx.publish(Hint(club_id, CONNECTION_TOPIC))


async def set_features(
    db: Database, actor: Actor | None, club_id: UUID, connection_id: UUID, features: Collection[Feature]
) -> None:
    """Choose what Lastcall may do in the group. Unsent work of a feature that is off is refused when its turn
    comes."""
    chosen = sorted(feature.value for feature in features)
    async with db.transaction() as tx:
        await require_connection_manager(tx, actor, club_id)
        if not await raise_gate(tx, club_id, connection_id):
            raise connection_unknown()
        account_id = await tx.scalar(
            update(Connection)
            .where(Connection.club_id == club_id, Connection.id == connection_id)
            .values(features=chosen, updated_at=NOW)
            .returning(Connection.account_id)
        )
        await log(
            tx,
            club_id,
            actor or COMMAND_LINE,
            "connection.features",
            "connection",
            connection_id,
            {"features": chosen},
        )
        tx.publish(work(account_id))
        tx.publish(Hint(club_id, CONNECTION_TOPIC))


def _check_group(group_id: str) -> None:
    if _GROUP.fullmatch(group_id) is None:
        raise Invalid(
            "group_malformed",
            f"“{group_id}” is not a VRChat group id.",
            advice="Copy it from the address of the group's page; it begins with grp_.",
            field="group_id",
        )


async def _require_ready(tx: Transaction, account_id: UUID) -> None:
    state = await tx.scalar(select(Account.state).where(Account.id == account_id))
    if state is None:
        raise NotFound("account_unknown", "There is no such account.", advice="Add the account first.")
    if state not in {AccountState.READY.value, AccountState.COOLDOWN.value}:
        raise Conflict(
            "account_not_ready",
            f"This account does not work at present ({state.replace('_', ' ')}).",
            advice="Choose another account, or bring this one back first.",
        )


async def _refuse_connected(tx: Transaction, club_id: UUID) -> None:
    group_name = await tx.scalar(
        select(Connection.group_name).where(
            Connection.club_id == club_id, Connection.state != ConnectionState.DISCONNECTED.value
        )
    )
    if group_name is not None:
        raise Conflict(
            "club_connected",
            f"This club is connected to the group “{group_name}”.",
            advice="Disconnect it first.",
        )


async def _take_group(tx: Transaction, group_id: str, club_id: UUID) -> None:
    taken = await tx.scalar(
        upsert(Directory)
        .values(kind=GROUP_DIRECTORY, key=group_id, club_id=club_id)
        .on_conflict_do_nothing()
        .returning(Directory.club_id)
    )
    if taken is None:
        raise Conflict(
            "group_taken",
            "This VRChat group is connected to another club.",
            advice="Disconnect it there first.",
        )
