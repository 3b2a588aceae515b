"""The signals and hints this room's changes send, by name."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from lastcall.db.bus import CacheDrop, Hint
from lastcall.deadlines.signals import Signal

LEASE_EXPIRY = "lease_expiry"
WORK_PREFIX = "work:"
KEY_CACHE = "worker_key"
ALL_ACCOUNTS = "*"
CONNECTION_TOPIC = "connection"
"""Topic of the ``Hint`` for pages that show a connection."""
ACCOUNTS_CHANGED = Hint(None, "accounts")
"""The fleet, an account, its key or its collectors changed, whether or not the account serves a club."""


def work(account_id: UUID, ready_at: datetime | None = None) -> Signal:
    """Something of this account becomes ready at that time; without one: look again.

    It wakes collectors that wait, not the scheduler. Send it when the row is committed (``tx.publish``, or
    after the hot step has returned), because the waiter looks at once.
    """
    return Signal(f"{WORK_PREFIX}{account_id}", ready_at)


def key_drop(account_id: UUID | None) -> CacheDrop:
    """What is remembered about the account's key and standing is stale (None: of all accounts)."""
    return CacheDrop(KEY_CACHE, ALL_ACCOUNTS if account_id is None else str(account_id))
