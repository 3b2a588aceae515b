"""The lease of one connection: taken, renewed while a pass lasts, given back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import structlog

from lastcall.collector.account import Account
from lastcall.collector.server import Refused, Unreachable
from lastcall.collector.windows import Window
from lastcall.protocol.messages import (
    Done,
    DueConnection,
    Lease,
    LeaseAnswer,
    LeaseRef,
    Release,
    Renew,
    RenewAnswer,
)

_log = structlog.get_logger("lastcall.collector")


class LeaseLost(Exception):
    """Another worker may have the connection: nothing more is asked in its name."""


@dataclass
class HeldLease:
    """A lease as this process holds it; ``until`` is on the boot clock, counted from before it was asked for.

    ``features``: what the club has switched on; ``None`` is its analytics alone (COL-04).
    """

    ref: LeaseRef
    group_id: str
    state: str
    features: frozenset[str] | None
    window: Window
    requests_per_minute: int
    until: float
    is_lost: bool = False

    def check(self, now: float) -> None:
        """Raise ``LeaseLost`` unless it is held at this time (COL-12)."""
        if self.is_lost or now >= self.until:
            raise LeaseLost


@contextlib.asynccontextmanager
async def leased(account: Account, due: DueConnection) -> AsyncIterator[HeldLease]:
    """The lease of the connection, renewed while it is held and given back in any case, as far as the server can be
    reached."""
    asked_at = account.clock.boot()
    answer = await account.call(Lease, LeaseAnswer, club_id=due.club_id, connection_id=due.connection_id)
    window = account.memory.of(due.connection_id).window
    lease = HeldLease(
        ref=LeaseRef(
            club_id=due.club_id,
            connection_id=due.connection_id,
            epoch=answer.epoch,
            fencing_token=answer.fencing_token,
        ),
        group_id=answer.group_id,
        state=answer.state,
        features=None if answer.features is None else frozenset(answer.features),
        window=window,
        requests_per_minute=answer.requests_per_minute,
        until=asked_at + answer.life_ms / 1000,
    )
    window.limit = answer.requests_per_minute
    account.windows.account.limit = answer.account_requests_per_minute
    renewing = asyncio.create_task(_renew(account, lease))
    try:
        yield lease
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        with contextlib.suppress(Refused, Unreachable):  # it expires by itself
            await account.call(Release, Done, lease=lease.ref)


async def _renew(account: Account, lease: HeldLease) -> None:
    """Renew at half of what is left; a lease that is refused is lost, and only its time ends an unreachable one."""
    while not lease.is_lost:
        left = lease.until - account.clock.boot()
        await account.clock.sleep(timedelta(seconds=max(left / 2, 1.0)))
        asked_at = account.clock.boot()
        try:
            answer = await account.call(Renew, RenewAnswer, lease=lease.ref)
        except Refused as refused:
            _log.warning("lease lost", connection=lease.ref.connection_id, reason=refused.sentence)
            lease.is_lost = True
        except Unreachable:
            continue
        else:
            lease.until = asked_at + answer.life_ms / 1000
            lease.requests_per_minute = lease.window.limit = answer.requests_per_minute
            account.windows.account.limit = answer.account_requests_per_minute
