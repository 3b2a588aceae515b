"""Commands on VRChat accounts and the keys their collectors sign in with. Operators only.

No ``actor`` means the host's command line, as everywhere.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import insert, select, update

from lastcall.connections.gates import lock_account, raise_gates_of_account
from lastcall.connections.leases import end_open_leases
from lastcall.connections.signals import key_drop, work
from lastcall.connections.states import AccountState, ConnectionState
from lastcall.connections.tables import Account, Connection, WorkerKey
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

SETTABLE_STATES = frozenset(
    {AccountState.READY, AccountState.QUARANTINED, AccountState.RETIRING, AccountState.RETIRED}
)
"""What an operator may say of an account; the other states follow from what happens to it."""


@dataclass(frozen=True)
class NewKey:
    """A worker key, shown this once: only its hash is stored."""

    account_id: UUID
    generation: int
    key: str


async def add_account(db: Database, actor: Actor | None, alias: str, vrchat_user_id: str) -> NewKey:
    """Add an account that was made for this purpose, and its first worker key; it is ready at once.

    Raises ``Invalid`` for a malformed alias or id, ``Conflict`` when either is taken.
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
                id=account_id, alias=alias, vrchat_user_id=vrchat_user_id, state=AccountState.READY.value
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
        await _require_known(tx, account_id)
        await tx.execute(
            update(WorkerKey)
            .where(WorkerKey.account_id == account_id, WorkerKey.revoked_at.is_(None))
            .values(revoked_at=NOW)
        )
        tx.publish(key_drop(account_id))
        await _audit(tx, actor, "account.key_revoked", account_id)


async def set_account_state(db: Database, actor: Actor | None, account_id: UUID, state: AccountState) -> None:
    """Put an account back to work (``ready``: after a new sign-in or a cooldown) or take it out of it.

    Ready also brings its connections back from ``auth_required``. Any other state ends its leases.
    """
    require_operator(actor)
    if state not in SETTABLE_STATES:
        raise Invalid(
            "account_state_not_settable",
            f"An account cannot be set to “{state.value}” by hand.",
            advice=f"Choose one of: {', '.join(sorted(SETTABLE_STATES))}.",
            field="state",
        )
    async with db.transaction() as tx:
        await lock_account(tx, account_id)
        await hold_operator(tx, actor)
        await _require_known(tx, account_id)
        await tx.execute(
            update(Account)
            .where(Account.id == account_id)
            .values(state=state.value, cooldown_until=None, updated_at=NOW)
        )
        if state is AccountState.READY:
            await tx.execute(
                update(Connection)
                .where(
                    Connection.account_id == account_id,
                    Connection.state == ConnectionState.AUTH_REQUIRED.value,
                )
                .values(
                    state=ConnectionState.ACTIVE.value,
                    consecutive_failures=0,
                    backoff_until=None,
                    updated_at=NOW,
                )
            )
        else:
            await end_open_leases(tx, await raise_gates_of_account(tx, account_id))
        tx.publish(key_drop(account_id))
        tx.publish(work(account_id))
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
        raise _unknown()
    key = KEY_PREFIX + secrets.token_urlsafe(_KEY_BYTES)
    await tx.execute(
        insert(WorkerKey).values(account_id=account_id, generation=generation, key_hash=token_hash(key))
    )
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


async def _require_known(tx: Transaction, account_id: UUID) -> None:
    if await tx.scalar(select(Account.id).where(Account.id == account_id)) is None:
        raise _unknown()


def _unknown() -> NotFound:
    return NotFound(
        "account_unknown", "There is no such account.", advice="`lastcall account list` shows them."
    )


async def _audit(
    tx: Transaction, actor: Actor | None, action: str, account_id: UUID, **details: object
) -> None:
    await audit(tx, actor.person_id if actor else None, action, str(account_id), **details)
