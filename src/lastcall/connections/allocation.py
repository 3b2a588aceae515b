"""Which account serves a club: chosen, or named by an operator, and held until the transaction ends.

Whoever gives an account a connection holds its row and judges in a new statement, so that neither two clubs take its
last place nor a club an account that is retired meanwhile. It comes after the gates in the lock order.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text

from lastcall.connections.states import AccountState
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, NotFound

HOLD = "select id from accounts where id = :account_id for no key update"
_SEEN = text("""
    select a.alias, a.state, a.capacity, a.reserved_headroom,
           (select count(*) from connections c where c.account_id = a.id and c.state <> 'disconnected')
               as connections
    from accounts a
    where a.id = :account_id
""")
_FREE = text("""
    select a.id
    from (select lastcall_now() as now) n
    cross join accounts a
    cross join lateral (
        select count(*) as connections from connections c
        where c.account_id = a.id and c.state <> 'disconnected'
    ) s
    where account_obstacle_of(false, a.kill_switch, a.state, a.cooldown_until, n.now) = 'none'
      and exists (select from current_key(a.id, a.credential_generation, n.now))
      and s.connections < a.capacity - a.reserved_headroom
      and (cast(:only as uuid) is null or a.id = :only)
    order by s.connections, a.alias
    limit 1
""")
WORKS = frozenset({AccountState.READY, AccountState.COOLDOWN})
"""In these an account can be given a club by name."""


@dataclass(frozen=True)
class AccountHeld:
    """An account as it stands while its row is held. ``connections``: how many of them are not over."""

    account_id: UUID
    alias: str
    state: AccountState
    capacity: int
    reserved_headroom: int
    connections: int


async def allocate_account(tx: Transaction) -> UUID:
    """Choose and hold the account that serves the fewest connections of those that work, have a key and have room
    beside their reserved headroom; of equals the first by alias. Raises ``Conflict`` when there is none.
    """
    while True:
        account_id: UUID | None = await tx.scalar(_FREE, {"only": None})
        if account_id is None:
            raise Conflict(
                "no_account_free",
                "No VRChat account of this server has room for another club.",
                advice="Ask an operator to add an account, to set one to ready, or to raise a capacity.",
            )
        await tx.execute(text(HOLD), {"account_id": account_id})
        if await tx.scalar(_FREE, {"only": account_id}) is not None:
            return account_id


async def hold_place(tx: Transaction, account_id: UUID) -> AccountHeld:
    """Hold an account that somebody named. It may be cooling down, and its reserved headroom is for this. Raises
    ``NotFound``, and ``Conflict`` when it does not work or is full.
    """
    account = await hold_account(tx, account_id)
    if account.state not in WORKS:
        raise Conflict(
            "account_not_ready",
            f"The account {account.alias} does not work at present ({account.state.words}).",
            advice="Choose another account, or bring this one back first.",
            field="account",
        )
    if account.connections >= account.capacity:
        raise Conflict(
            "account_full",
            f"The account {account.alias} serves {account.connections} clubs and takes no more.",
            advice="Choose another account, or raise its capacity.",
            field="account",
        )
    return account


async def hold_account(tx: Transaction, account_id: UUID) -> AccountHeld:
    """Hold the account's row: its state and what it serves change no more until the transaction ends."""
    await tx.execute(text(HOLD), {"account_id": account_id})
    row = (await tx.execute(_SEEN, {"account_id": account_id})).one_or_none()
    if row is None:
        raise account_unknown()
    return AccountHeld(
        account_id,
        row.alias,
        AccountState(row.state),
        row.capacity,
        row.reserved_headroom,
        row.connections,
    )


def account_unknown() -> NotFound:
    return NotFound(
        "account_unknown", "There is no such account.", advice="`lastcall account list` shows them."
    )
