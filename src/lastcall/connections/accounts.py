"""Commands on VRChat accounts and the keys their collectors sign in with. Operators only.

No ``actor`` means the host's command line, as everywhere.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import insert, select, update

from lastcall.connections.account_states import SETTABLE, Mover, may_move, moves_of_operator
from lastcall.connections.allocation import WORKS, AccountHeld, account_unknown, hold_account
from lastcall.connections.gates import lock_account, raise_gates_of_account
from lastcall.connections.leases import end_open_leases
from lastcall.connections.listeners import Coverage, TelemetryFailure, telemetry_failed
from lastcall.connections.looks import ANEW
from lastcall.connections.signals import ACCOUNTS_CHANGED, CONNECTION_TOPIC, key_drop, work
from lastcall.connections.states import USABLE, AccountState
from lastcall.connections.tables import Account, Connection, WorkerKey
from lastcall.connections.transitions import SIGNED_IN
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid, NotFound
from lastcall.people.actor import Actor, require_operator
from lastcall.people.audit import audit
from lastcall.people.holding import hold_operator
from lastcall.people.tokens import token_hash

KEY_PREFIX = "lck_"
"""Makes a key that leaked into a file recognizable to whoever searches for it."""
_KEY_BYTES = 32
_ALIAS = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_PROVIDER_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True)
class NewKey:
    """A worker key, shown this once: only its hash is stored."""

    account_id: UUID
    generation: int
    key: str


async def add_account(db: Database, actor: Actor | None, alias: str, vrchat_user_id: str) -> NewKey:
    """Add an account that was made for this purpose, and its first worker key.

    It is ``provisioning``: the key is good, and everything its collector asks is refused with 423 until an operator
    says that it is ready (``set_account_state``). Raises ``Invalid`` for a malformed alias or id, ``Conflict`` when
    either is taken.
    """
    require_operator(actor)
    if _ALIAS.fullmatch(alias) is None:
        raise Invalid(
            "alias_malformed",
            f"“{alias}” cannot be an account's alias.",
            advice="Use 1 to 40 lower-case letters, digits and hyphens, with no hyphen at either end.",
            field="alias",
        )
    if _PROVIDER_ID.fullmatch(vrchat_user_id) is None:
        raise Invalid(
            "vrchat_user_malformed",
            f"“{vrchat_user_id}” is not a VRChat user id.",
            advice="Copy it from the account's own profile page; it usually begins with usr_.",
            field="vrchat_user_id",
        )
    account_id = new_id()
    async with db.transaction() as tx:
        await hold_operator(tx, actor)
        await _refuse_taken(tx, alias, vrchat_user_id)
        await tx.execute(
            insert(Account).values(
                id=account_id,
                alias=alias,
                vrchat_user_id=vrchat_user_id,
                state=AccountState.PROVISIONING.value,
            )
        )
        key = await _put_new_key(tx, account_id)
        await _audit(tx, actor, "account.added", account_id, alias=alias)
    return key


async def rotate_key(db: Database, actor: Actor | None, account_id: UUID) -> NewKey:
    """Replace the account's worker key: the old one is refused from the commit on (WRK-08)."""
    require_operator(actor)
    async with db.transaction() as tx:
        await lock_account(tx, account_id)
        await hold_operator(tx, actor)
        key = await _put_new_key(tx, account_id)
        tx.publish(key_drop(account_id))
        await _audit(tx, actor, "account.key_rotated", account_id, generation=key.generation)
    return key


async def revoke_key(db: Database, actor: Actor | None, account_id: UUID) -> None:
    """Take the account's worker key away without another: its collector is refused until a rotation."""
    require_operator(actor)
    async with db.transaction() as tx:
        await lock_account(tx, account_id)
        await hold_operator(tx, actor)
        await hold_account(tx, account_id)
        await tx.execute(
            update(WorkerKey)
            .where(WorkerKey.account_id == account_id, WorkerKey.revoked_at.is_(None))
            .values(revoked_at=NOW)
        )
        tx.publish(key_drop(account_id))
        tx.publish(ACCOUNTS_CHANGED)
        await _audit(tx, actor, "account.key_revoked", account_id)


async def set_account_state(db: Database, actor: Actor | None, account_id: UUID, state: AccountState) -> None:
    """Put an account to work or back to it (``ready``: it was made, it signed in again), or take it out of it.

    Any state but ready ends its leases; what was sent is still settled (WRK-06). Ready also brings its connections
    back from ``auth_required``: a look at the group says where they stand. Raises ``Invalid`` for a state that no
    person sets, ``Conflict`` for a move that is not in ``MOVES``, and for ``retired`` as long as it has a
    connection. Letting an account work needs a person who has just shown that it is them.
    """
    require_operator(actor)
    if state not in SETTABLE:
        raise Invalid(
            "account_state_not_settable",
            f"An account cannot be set to “{state.value}” by hand.",
            advice=f"Choose one of: {', '.join(sorted(SETTABLE))}.",
            field="state",
        )
    if actor is not None and state is AccountState.READY:
        actor.require_recent()
    async with db.transaction() as tx:
        await lock_account(tx, account_id)
        gates = await raise_gates_of_account(tx, account_id)
        await hold_operator(tx, actor)
        account = await hold_account(tx, account_id)
        _refuse_move(account, state)
        await tx.execute(
            update(Account)
            .where(Account.id == account_id)
            .values(state=state.value, cooldown_until=None, updated_at=NOW)
        )
        if state is AccountState.READY:
            await _bring_back(tx, account_id)
        else:
            await end_open_leases(tx, gates)
            if account.state in WORKS:
                await _tell_that_it_stopped(tx, account_id)
        tx.publish(key_drop(account_id))
        tx.publish(work(account_id))
        tx.publish(ACCOUNTS_CHANGED)
        for club_id in {club_id for club_id, _ in gates}:
            tx.publish(Hint(club_id, CONNECTION_TOPIC))
        await _audit(tx, actor, "account.state_set", account_id, state=state.value)


async def account_named(db: Database, alias: str) -> UUID:
    """The id of the account with this alias; ``NotFound`` when there is none."""
    async with db.read() as tx:
        account_id: UUID | None = await tx.scalar(select(Account.id).where(Account.alias == alias))
    if account_id is None:
        raise NotFound(
            "account_unknown",
            f"There is no account with the alias “{alias}”.",
            advice="`lastcall account list` shows them; add one with `lastcall account add`.",
            field="account",
        )
    return account_id


async def _put_new_key(tx: Transaction, account_id: UUID) -> NewKey:
    generation = await tx.scalar(
        update(Account)
        .where(Account.id == account_id)
        .values(credential_generation=Account.credential_generation + 1, updated_at=NOW)
        .returning(Account.credential_generation)
    )
    if generation is None:
        raise account_unknown()
    key = KEY_PREFIX + secrets.token_urlsafe(_KEY_BYTES)
    await tx.execute(
        insert(WorkerKey).values(account_id=account_id, generation=generation, key_hash=token_hash(key))
    )
    tx.publish(ACCOUNTS_CHANGED)
    return NewKey(account_id, generation, key)


async def _refuse_taken(tx: Transaction, alias: str, vrchat_user_id: str) -> None:
    taken = (
        await tx.execute(
            select(Account.alias).where((Account.alias == alias) | (Account.vrchat_user_id == vrchat_user_id))
        )
    ).scalar()
    if taken is not None:
        raise Conflict(
            "account_taken",
            f"The account “{taken}” already has this alias or VRChat user.",
            advice="Choose another alias, or rotate that account's key instead.",
        )


def _refuse_move(account: AccountHeld, to: AccountState) -> None:
    if not may_move(Mover.OPERATOR, account.state, to):
        raise Conflict(
            "account_state_move",
            f"An account that is {account.state.words} cannot be set to {to.words}.",
            advice=f"Choose from: {', '.join(one.words for one in moves_of_operator(account.state))}.",
        )
    if to is AccountState.RETIRED and account.connections:
        raise Conflict(
            "account_has_connections",
            f"This account still serves {account.connections} of the clubs.",
            advice="Set it to retiring, give each of its connections to another account, and retire it then.",
        )


async def _tell_that_it_stopped(tx: Transaction, account_id: UUID) -> None:
    """What was observed in the account's groups is incomplete from now on."""
    rows = await tx.execute(
        select(Connection.club_id, Connection.id, Connection.epoch)
        .where(Connection.account_id == account_id, Connection.state.in_(USABLE))
        .order_by(Connection.club_id, Connection.id)
    )
    for row in rows.all():
        failure = TelemetryFailure(row.club_id, row.id, row.epoch, Coverage.DEGRADED, "account_state")
        await telemetry_failed(tx, failure)


async def _bring_back(tx: Transaction, account_id: UUID) -> None:
    await tx.execute(
        update(Connection)
        .where(Connection.account_id == account_id, Connection.state.in_(SIGNED_IN.leaves))
        .values(state=SIGNED_IN.to.value, **ANEW)
    )


async def _audit(
    tx: Transaction, actor: Actor | None, action: str, account_id: UUID, **details: object
) -> None:
    await audit(tx, actor.person_id if actor else None, action, str(account_id), **details)
