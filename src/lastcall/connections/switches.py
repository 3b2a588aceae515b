"""Kill switches, limits and the thaw: how operators stop work and let it go on.

Each switch takes its gate alone, so that when the command returns no authorization that began before it is
still under way, and none begins after it. A result of what was already sent is not stopped by any of them
(WRK-06). Anybody who may throw a switch can stop at once; letting go on needs a person who has just shown that it
is them (or the host's command line).
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select, update

from lastcall.clubs.activity import COMMAND_LINE, log
from lastcall.clubs.gates import hold_gate
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.connections.allocation import account_unknown, hold_account
from lastcall.connections.gates import lock_account, lock_fleet, raise_gate
from lastcall.connections.signals import ACCOUNTS_CHANGED, CONNECTION_TOPIC, key_drop, work
from lastcall.connections.tables import (
    ALLOWANCE_MOST,
    CAPACITY_MOST,
    WRITES_MOST,
    Account,
    Connection,
    FleetSettings,
)
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.errors import Invalid, NotFound
from lastcall.people.actor import Actor, require_operator
from lastcall.people.audit import audit
from lastcall.people.holding import hold_operator
from lastcall.people.scopes import Scope


async def set_fleet_switch(db: Database, actor: Actor | None, *, is_on: bool) -> None:
    """Stop (or no longer stop) every account."""
    require_operator(actor)
    _require_person_to_lift(actor, is_on=is_on)
    async with db.transaction() as tx:
        await lock_fleet(tx)
        await hold_operator(tx, actor)
        await tx.execute(update(FleetSettings).values(kill_switch=is_on))
        await _wake_all(tx)
        await audit(tx, actor.person_id if actor else None, "fleet.kill_switch", "fleet", is_on=is_on)


async def set_account_switch(db: Database, actor: Actor | None, account_id: UUID, *, is_on: bool) -> None:
    """Stop (or no longer stop) one account."""
    require_operator(actor)
    _require_person_to_lift(actor, is_on=is_on)
    async with db.transaction() as tx:
        await lock_account(tx, account_id)
        await hold_operator(tx, actor)
        await _set_on_account(tx, account_id, {"kill_switch": is_on})
        await audit(
            tx, actor.person_id if actor else None, "account.kill_switch", str(account_id), is_on=is_on
        )


async def set_connection_switch(
    db: Database, actor: Actor | None, club_id: UUID, connection_id: UUID, *, is_on: bool
) -> None:
    """Stop (or no longer stop) one connection; needs ``manage_connection`` or an operator."""
    async with db.transaction() as tx:
        await require_connection_manager(tx, actor, club_id)
        _require_person_to_lift(actor, is_on=is_on)
        await _set_on_connection(tx, club_id, connection_id, {"kill_switch": is_on})
        await log(
            tx,
            club_id,
            actor or COMMAND_LINE,
            "connection.kill_switch",
            "connection",
            connection_id,
            {"is_on": is_on},
        )


async def thaw_connection(db: Database, actor: Actor | None, club_id: UUID, connection_id: UUID) -> None:
    """Let a frozen connection work again: a person has looked at what its collector knew and we did not."""
    async with db.transaction() as tx:
        await require_connection_manager(tx, actor, club_id)
        await _set_on_connection(tx, club_id, connection_id, {"frozen_at": None, "frozen_reason": None})
        await log(tx, club_id, actor or COMMAND_LINE, "connection.thawed", "connection", connection_id)


async def set_fleet_limit(db: Database, actor: Actor | None, requests_per_minute: int) -> None:
    """Set how many provider requests a minute all accounts share."""
    require_operator(actor)
    _check_range("requests_per_minute", requests_per_minute)
    async with db.transaction() as tx:
        await hold_operator(tx, actor)
        await tx.execute(update(FleetSettings).values(requests_per_minute=requests_per_minute))
        await _wake_all(tx)
        await audit(
            tx, actor.person_id if actor else None, "fleet.limit", "fleet", per_minute=requests_per_minute
        )


async def set_account_limits(
    db: Database,
    actor: Actor | None,
    account_id: UUID,
    *,
    requests_per_minute: int | None = None,
    writes_per_day: int | None = None,
    capacity: int | None = None,
    reserved_headroom: int | None = None,
) -> None:
    """Set what is given and leave the rest: the account's requests a minute, its writes a day once it is grown, how
    many connections it serves at most, and how many of those places are not given out by themselves. A capacity below
    what it serves already takes nothing away."""
    require_operator(actor)
    asked = {
        "requests_per_minute": requests_per_minute,
        "writes_per_day": writes_per_day,
        "capacity": capacity,
        "reserved_headroom": reserved_headroom,
    }
    values: dict[str, int] = {name: value for name, value in asked.items() if value is not None}
    for name, value in values.items():
        _check_range(name, value)
    async with db.transaction() as tx:
        await hold_operator(tx, actor)
        now = await hold_account(tx, account_id)
        if values.get("reserved_headroom", now.reserved_headroom) > values.get("capacity", now.capacity):
            raise Invalid(
                "headroom_above_capacity",
                "More places would be kept free than the account has.",
                advice="Lower the headroom, or raise the capacity.",
                field="reserved_headroom",
            )
        await _set_on_account(tx, account_id, dict(values))
        await audit(tx, actor.person_id if actor else None, "account.limit", str(account_id), **values)


async def set_connection_limit(
    db: Database, actor: Actor | None, club_id: UUID, connection_id: UUID, requests_per_minute: int
) -> None:
    """Set how many of the account's requests a minute this connection may use. Operators only: the account is
    shared by clubs."""
    require_operator(actor)
    _check_range("requests_per_minute", requests_per_minute)
    async with db.transaction() as tx:
        await hold_gate(tx, club_id)
        await hold_operator(tx, actor)
        await _set_on_connection(tx, club_id, connection_id, {"requests_per_minute": requests_per_minute})
        await log(
            tx,
            club_id,
            actor or COMMAND_LINE,
            "connection.limit",
            "connection",
            connection_id,
            {"per_minute": requests_per_minute},
        )


async def require_connection_manager(tx: Transaction, actor: Actor | None, club_id: UUID) -> None:
    """An operator (with a token: one made for that), or ``manage_connection`` in the club; it is not archived or
    deleted before the transaction ends."""
    if actor is None or is_operating(actor):
        await hold_gate(tx, club_id)
        await hold_operator(tx, actor)
        return
    await require(tx, actor, club_id, Permission.MANAGE_CONNECTION, scope=Scope.CONNECTION)


def is_operating(actor: Actor | None) -> bool:
    """Whether the actor stands here as an operator or as the host's command line."""
    return actor is None or (actor.is_operator and actor.has_scope(Scope.OPERATOR))


def _require_person_to_lift(actor: Actor | None, *, is_on: bool) -> None:
    """Stopping must be easy; letting go on is for somebody who has just shown that it is them."""
    if actor is not None and not is_on:
        actor.require_recent()


def connection_unknown() -> NotFound:
    return NotFound("connection_unknown", "There is no such connection.")


_RANGES = {
    "requests_per_minute": (1, ALLOWANCE_MOST, "requests a minute"),
    "writes_per_day": (1, WRITES_MOST, "writes a day"),
    "capacity": (1, CAPACITY_MOST, "clubs"),
    "reserved_headroom": (0, CAPACITY_MOST, "places kept free"),
}


def _check_range(name: str, value: int) -> None:
    least, most, what = _RANGES[name]
    if not least <= value <= most:
        raise Invalid(
            "limit_out_of_range",
            f"A limit of {value} {what} is out of range.",
            advice=f"Choose a number from {least} to {most}.",
            field=name,
        )


async def _set_on_account(tx: Transaction, account_id: UUID, values: dict[str, object]) -> None:
    changed = await tx.scalar(
        update(Account).where(Account.id == account_id).values(**values, updated_at=NOW).returning(Account.id)
    )
    if changed is None:
        raise account_unknown()
    tx.publish(key_drop(account_id))
    tx.publish(work(account_id))
    tx.publish(ACCOUNTS_CHANGED)


async def _set_on_connection(
    tx: Transaction, club_id: UUID, connection_id: UUID, values: dict[str, object]
) -> None:
    if not await raise_gate(tx, club_id, connection_id):
        raise connection_unknown()
    account_id = await tx.scalar(
        update(Connection)
        .where(Connection.club_id == club_id, Connection.id == connection_id)
        .values(**values, updated_at=NOW)
        .returning(Connection.account_id)
    )
    tx.publish(work(account_id))
    tx.publish(Hint(club_id, CONNECTION_TOPIC))


async def _wake_all(tx: Transaction) -> None:
    tx.publish(key_drop(None))
    tx.publish(ACCOUNTS_CHANGED)
    for account_id in (await tx.execute(select(Account.id))).scalars():
        tx.publish(work(account_id))
