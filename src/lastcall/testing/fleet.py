"""An account that may work at once, which in life an operator says after looking at it."""

from __future__ import annotations

from lastcall.connections.accounts import NewKey, add_account, set_account_state
from lastcall.connections.states import AccountState
from lastcall.db.database import Database


async def ready_account(db: Database, alias: str, vrchat_user_id: str) -> NewKey:
    """Add an account with its key, and set it to ready."""
    key = await add_account(db, None, alias, vrchat_user_id)
    await set_account_state(db, None, key.account_id, AccountState.READY)
    return key
