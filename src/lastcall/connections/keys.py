"""Who a worker call comes from: its key is compared with the account's current one.

A key that was let in is remembered, so that a collector that waits costs no statement; a signal drops it.
Such a signal may be late in another process, and a command of the host sends none to the server. So nobody is
refused from memory, and every transaction that matters asks ``key_is_current`` again.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.connections.refusals import key_refused, refused
from lastcall.connections.signals import ALL_ACCOUNTS, KEY_CACHE, key_drop
from lastcall.connections.worker import Worker
from lastcall.db.bus import CacheDrop
from lastcall.db.database import Database
from lastcall.deadlines.signals import IN_DOUBT, Missed
from lastcall.errors import Disabled
from lastcall.people.tokens import token_hash

_READ = """
    select a.vrchat_user_id, k.generation, k.key_hash, account_obstacle(a.id, n.now) as obstacle,
           case when a.state = 'cooldown' then a.cooldown_until - n.now end as cools_for
    from (select lastcall_now() as now) n
    join accounts a on a.id = $1
    left join worker_keys k
      on k.account_id = a.id and k.generation = a.credential_generation and k.revoked_at is null
"""
_NO_HASH = bytes(32)


@dataclass(frozen=True)
class _Known:
    vrchat_user_id: str
    generation: int | None
    key_hash: bytes
    obstacle: str
    until: float | None
    """Boot time at which a cooldown ends, to tell the collector how long to wait."""

    def fits(self, hashed: bytes) -> bool:
        return self.generation is not None and hmac.compare_digest(hashed, self.key_hash)


@dataclass(frozen=True)
class Verified:
    """What a worker key proves. The call must also name the account's own VRChat user."""

    account_id: UUID
    generation: int
    vrchat_user_id: str

    def worker(self, worker_id: UUID, vrchat_user_id: str) -> Worker:
        """The worker behind the call; raises ``NotSignedIn`` when it is signed in at VRChat as somebody
        else."""
        if vrchat_user_id != self.vrchat_user_id:
            raise key_refused()
        return Worker(self.account_id, self.generation, worker_id, vrchat_user_id)


class KeyRing:
    """One a process. Subscribes to the bus of its database when it is made."""

    def __init__(self, db: Database, clock: Clock = SYSTEM_CLOCK) -> None:
        self._db = db
        self._clock = clock
        self._known: dict[UUID, _Known] = {}
        self._drops = 0
        self._doubted_until = 0.0
        db.bus.subscribe(CacheDrop, self._on_drop)
        db.bus.subscribe(Missed, lambda _: self._on_drop(key_drop(None)))
        db.bus.subscribe_unclear(self._on_unclear)

    async def verify(self, account_id: UUID, key: str) -> Verified:
        """The account and generation a key proves; raises ``NotSignedIn`` when it is not the account's."""
        hashed = token_hash(key)
        known = self._known.get(account_id)
        if known is None or not known.fits(hashed):
            known = await self._read(account_id)
        # Compared for an account that does not exist too, so that the answer's time tells nothing.
        fits = hmac.compare_digest(hashed, known.key_hash if known else _NO_HASH)
        if known is None or known.generation is None or not fits:
            raise key_refused()
        return Verified(account_id, known.generation, known.vrchat_user_id)

    async def require_enabled(self, account_id: UUID) -> None:
        """Raise ``Disabled`` when the account may not work at present; with the time when it is only
        cooling."""
        known = self._known.get(account_id)
        if known is None or known.obstacle != "none":
            known = await self._read(account_id)
        if known is None:
            raise key_refused()
        if known.obstacle == "none":
            return
        error = refused(known.obstacle)
        if isinstance(error, Disabled) and known.until is not None:
            error.retry_after = max(0.0, known.until - self._clock.boot())
        raise error

    async def _read(self, account_id: UUID) -> _Known | None:
        drops = self._drops
        row = await self._db.pool.fetchrow(_READ, account_id)
        if row is None:
            self._known.pop(account_id, None)
            return None
        cools_for: timedelta | None = row["cools_for"]
        is_cooling = row["obstacle"] == "account_state" and cools_for is not None
        known = _Known(
            vrchat_user_id=row["vrchat_user_id"],
            generation=row["generation"],
            key_hash=row["key_hash"] or _NO_HASH,
            obstacle=row["obstacle"],
            until=self._clock.boot() + cools_for.total_seconds() if is_cooling and cools_for else None,
        )
        if drops == self._drops and self._clock.boot() >= self._doubted_until:
            self._known[account_id] = known
        return known

    def _on_unclear(self, messages: Sequence[object], _xid: int) -> None:
        """The change may be there, and may come yet: nothing is remembered until it would have come."""
        for message in messages:
            if isinstance(message, CacheDrop) and message.cache == KEY_CACHE:
                self._doubted_until = self._clock.boot() + IN_DOUBT.total_seconds()
                self._on_drop(message)

    def _on_drop(self, drop: CacheDrop) -> None:
        if drop.cache != KEY_CACHE:
            return
        # A read that is under way may have seen the state before this: it must not be kept.
        self._drops += 1
        if drop.key == ALL_ACCOUNTS:
            self._known.clear()
        else:
            self._known.pop(UUID(drop.key), None)
