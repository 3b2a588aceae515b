"""Commands on a club's connection: connect, disconnect, choose its features."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any
from uuid import UUID

from sqlalchemy import Row, delete, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.clubs.activity import COMMAND_LINE, System, log
from lastcall.clubs.policy import require_open
from lastcall.connections.allocation import allocate_account, hold_place
from lastcall.connections.gates import raise_gate
from lastcall.connections.leases import end_open_leases
from lastcall.connections.listeners import EpochBegin, EpochEnd, epoch_begins, epoch_ends
from lastcall.connections.looks import ANEW
from lastcall.connections.signals import CONNECTION_TOPIC, work
from lastcall.connections.states import USABLE, ConnectionState, Feature
from lastcall.connections.staying import note_left, note_stayed, refuse_stayed
from lastcall.connections.switches import connection_unknown, is_operating, require_connection_manager
from lastcall.connections.tables import Connection, ConnectionGate
from lastcall.connections.transitions import DISCONNECT, LEFT
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.tables import Directory
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid
from lastcall.names import valid_name
from lastcall.people.actor import Actor

GROUP_DIRECTORY = "vrchat_group"
"""A VRChat group is connected to at most one club: the directory kind under which that is held, whatever the case in
which somebody wrote its id."""
_GROUP = re.compile(r"grp_[A-Za-z0-9_-]{1,96}")


async def connect_club(
    db: Database,
    actor: Actor | None,
    club_id: UUID,
    *,
    group_id: str,
    group_name: str | None = None,
    account_id: UUID | None = None,
    features: Collection[Feature],
) -> UUID:
    """Connect the club to its VRChat group through an account, the named one or one that is chosen; answers the
    connection's id.

    The account comes into the group with its next pass, or is in already; until then the connection is no use. The
    name is read then too: the group's id stands for it without ``group_name``. Every connect is a new row and a new
    epoch, so no work and no evidence of an earlier one is taken for its own. Raises ``Invalid`` for a malformed id or
    name, ``NotFound`` for an unknown account, ``Conflict`` when the club is connected, the group belongs to another
    club, or the account does not work, is full, or is in the group for another club (``staying.py``; an operator may).
    """
    _check_group(group_id)
    shown = group_id if group_name is None else valid_name(group_name, "group_name", what="The group's name")
    connection_id = new_id()
    async with db.transaction() as tx:
        await require_connection_manager(tx, actor, club_id)
        await require_open(tx, club_id)
        await _refuse_connected(tx, club_id)
        await _take_group(tx, group_id, club_id)
        if account_id is None:
            account_id = await allocate_account(tx)
        else:
            await hold_place(tx, account_id)
        if not is_operating(actor):
            await refuse_stayed(tx, club_id, group_id, account_id)
        await _begin(
            tx,
            club_id=club_id,
            id=connection_id,
            group_id=group_id,
            group_name=shown,
            account_id=account_id,
            features=sorted({feature.value for feature in features}),
        )
        await log(
            tx,
            club_id,
            actor or COMMAND_LINE,
            "connection.connected",
            "connection",
            connection_id,
            {"group_id": group_id, "features": sorted(set(features))},
        )
        tx.publish(work(account_id))
        tx.publish(Hint(club_id, CONNECTION_TOPIC))
    return connection_id


async def _begin(tx: Transaction, **values: Any) -> None:
    """Insert the connection and begin its epoch. Raises ``Conflict`` when somebody else connected the club while this
    waited for the account, which both may have chosen."""
    club_id, connection_id = values["club_id"], values["id"]
    epoch = await tx.scalar(
        upsert(Connection)
        .values(**values, state=ConnectionState.CONNECTING.value, epoch=NOW, next_look_at=NOW)
        .on_conflict_do_nothing(
            index_elements=[Connection.club_id], index_where=text("state <> 'disconnected'")
        )
        .returning(Connection.epoch)
    )
    if epoch is None:
        raise Conflict(
            "club_connected",
            "Somebody else connected this club just now.",
            advice="Look at the connection page.",
        )
    await tx.execute(insert(ConnectionGate).values(club_id=club_id, connection_id=connection_id))
    await epoch_begins(tx, EpochBegin(club_id, connection_id, epoch))


async def disconnect_club(db: Database, actor: Actor | None, club_id: UUID, connection_id: UUID) -> None:
    """End the connection and its epoch: unsent work never goes out, what was sent is still settled (WRK-06).

    The account leaves the group with its next pass; only then is the connection over. ``finish_disconnect`` ends it for
    an account that cannot.
    """
    async with db.transaction() as tx:
        await require_connection_manager(tx, actor, club_id)
        await end_connection(tx, actor or COMMAND_LINE, club_id, connection_id)


async def end_connection(tx: Transaction, by: Actor | System, club_id: UUID, connection_id: UUID) -> None:
    """The same within a transaction that asked who may. One that ends or is over already stays as it is."""
    row = await _held(tx, club_id, connection_id)
    if row.state not in DISCONNECT.leaves:
        return
    await end_open_leases(tx, [(club_id, connection_id)])
    await epoch_ends(tx, EpochEnd(club_id, connection_id, row.epoch, "disconnected"))
    await tx.execute(
        update(Connection)
        .where(Connection.club_id == club_id, Connection.id == connection_id)
        .values(state=DISCONNECT.to.value, **ANEW)
    )
    await log(tx, club_id, by, "connection.disconnected", "connection", connection_id)
    tx.publish(work(row.account_id))
    tx.publish(Hint(club_id, CONNECTION_TOPIC))


async def finish_disconnect(db: Database, actor: Actor | None, club_id: UUID, connection_id: UUID) -> None:
    """End a connection whose account cannot leave the group: it stays a member until somebody removes it there.

    Raises ``Conflict`` for a connection that was not disconnected before.
    """
    async with db.transaction() as tx:
        await require_connection_manager(tx, actor, club_id)
        row = await _held(tx, club_id, connection_id)
        if row.state == LEFT.to:
            return
        if row.state not in LEFT.leaves:
            raise Conflict(
                "connection_state", "The connection is not being ended.", advice="Disconnect it first."
            )
        await end_open_leases(tx, [(club_id, connection_id)])
        await connection_over(tx, club_id, connection_id, stayed_of=club_id)
        await log(tx, club_id, actor or COMMAND_LINE, "connection.abandoned", "connection", connection_id)


async def connection_over(
    tx: Transaction, club_id: UUID, connection_id: UUID, *, stayed_of: UUID | None = None
) -> None:
    """Record that nothing links the club to the group any more; the caller holds the gate. The group is free for
    whoever connects it next. ``stayed_of``: the account did not leave, and is in the group for that club."""
    row = (
        await tx.execute(
            update(Connection)
            .where(Connection.club_id == club_id, Connection.id == connection_id)
            .values(
                state=LEFT.to.value,
                next_look_at=None,
                backoff_until=None,
                disconnected_at=NOW,
                updated_at=NOW,
            )
            .returning(Connection.group_id, Connection.account_id)
        )
    ).one()
    await tx.execute(
        delete(Directory).where(
            Directory.kind == GROUP_DIRECTORY,
            Directory.key == row.group_id.lower(),
            Directory.club_id == club_id,
        )
    )
    if stayed_of is None:
        await note_left(tx, row.group_id, row.account_id)
    else:
        await note_stayed(tx, club_id, connection_id, row.group_id, row.account_id, of=stayed_of)
    tx.publish(work(row.account_id))
    tx.publish(Hint(club_id, CONNECTION_TOPIC))


async def set_features(
    db: Database, actor: Actor | None, club_id: UUID, connection_id: UUID, features: Collection[Feature]
) -> None:
    """Choose what Lastcall may do in the group. Unsent work of a feature that is off is refused when its turn
    comes; a group whose aggregates are read from now on is looked at at once."""
    chosen = sorted({feature.value for feature in features})
    async with db.transaction() as tx:
        await require_connection_manager(tx, actor, club_id)
        row = await _held(tx, club_id, connection_id)
        values: dict[str, object] = {"features": chosen, "updated_at": NOW}
        if row.state in USABLE and (Feature.ANALYTICS in features) != (Feature.ANALYTICS in row.features):
            values["next_look_at"] = NOW if Feature.ANALYTICS in features else None
        account_id = await tx.scalar(
            update(Connection)
            .where(Connection.club_id == club_id, Connection.id == connection_id)
            .values(values)
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


async def _held(tx: Transaction, club_id: UUID, connection_id: UUID) -> Row[Any]:
    """The connection, its gate shut."""
    if not await raise_gate(tx, club_id, connection_id):
        raise connection_unknown()
    return (
        await tx.execute(
            select(Connection.epoch, Connection.account_id, Connection.state, Connection.features).where(
                Connection.club_id == club_id, Connection.id == connection_id
            )
        )
    ).one()


def _check_group(group_id: str) -> None:
    if _GROUP.fullmatch(group_id) is None:
        raise Invalid(
            "group_malformed",
            f"“{group_id}” is not a VRChat group id.",
            advice="Copy it from the address of the group's page; it begins with grp_.",
            field="group_id",
        )


async def _refuse_connected(tx: Transaction, club_id: UUID) -> None:
    current = (
        await tx.execute(
            select(Connection.group_name, Connection.state).where(
                Connection.club_id == club_id, Connection.state != ConnectionState.DISCONNECTED.value
            )
        )
    ).one_or_none()
    if current is None:
        return
    if current.state == ConnectionState.DISCONNECTING:
        raise Conflict(
            "club_disconnecting",
            f"The club's account has not left the group “{current.group_name}” yet.",
            advice="Wait until it has, or end the connection without leaving.",
        )
    raise Conflict(
        "club_connected",
        f"This club is connected to the group “{current.group_name}”.",
        advice="Disconnect it first.",
    )


async def _take_group(tx: Transaction, group_id: str, club_id: UUID) -> None:
    taken = await tx.scalar(
        upsert(Directory)
        .values(kind=GROUP_DIRECTORY, key=group_id.lower(), club_id=club_id)
        .on_conflict_do_nothing()
        .returning(Directory.club_id)
    )
    if taken is None:
        raise Conflict(
            "group_taken",
            "This VRChat group is connected to another club.",
            advice="Disconnect it there first.",
        )
