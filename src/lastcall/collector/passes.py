"""One pass over one connection: take its lease, carry out what is due, give the lease back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

import structlog

from lastcall.collector.account import Account, HeldLease
from lastcall.collector.operation import DELAY_MOST_MS, Operation
from lastcall.collector.reporting import Reporter
from lastcall.collector.server import Refused, Unreachable
from lastcall.protocol.constants import PASS_LIFE
from lastcall.protocol.messages import (
    Claim,
    ClaimAnswer,
    Done,
    DueConnection,
    Failure,
    Lease,
    LeaseAnswer,
    LeaseRef,
    Release,
    Renew,
    RenewAnswer,
)
from lastcall.vrchat.errors import ProviderFault

_log = structlog.get_logger("lastcall.collector")

WORKABLE = frozenset({"active", "degraded"})
"""The states of a connection in which operations run."""


async def run_pass(account: Account, reporter: Reporter, due: DueConnection) -> ProviderFault | None:
    """Drain what is due on this connection within the pass's four minutes (WRK-16).

    Returns the fault that ended it, already told to the server. Raises ``Stopping``, ``Refused`` and
    ``Unreachable``; the lease is given back in any case, as far as the server can be reached.
    """
    async with _leased(account, due) as lease:
        if lease is None:
            return None
        fault = await _drain(account, reporter, lease)
        if fault is not None:
            await tell_failure(account, fault, lease.ref)
        return fault


async def _drain(account: Account, reporter: Reporter, lease: HeldLease) -> ProviderFault | None:
    until = account.clock.boot() + PASS_LIFE.total_seconds()
    while _goes_on(account, lease):
        asked_at = account.clock.boot()
        if asked_at >= min(until, lease.until) or not await account.journal.takes_intents():
            break
        answer = await account.call(Claim, ClaimAnswer, lease=lease.ref, journal_id=account.journal.id)
        if answer.operation is None:
            break
        fault = await Operation(account, reporter, lease, answer.operation, asked_at).run()
        if fault is not None:
            return fault
    return None


def _goes_on(account: Account, lease: HeldLease) -> bool:
    return not (account.stop.is_set() or account.must_say_hello or lease.is_lost) and account.may_ask()


async def tell_failure(account: Account, fault: ProviderFault, lease: LeaseRef | None) -> None:
    """Tell the server what went wrong, with the provider's own delay in full (RCV-10)."""
    after = None if fault.retry_after is None else min(fault.retry_after * 1000, DELAY_MOST_MS)
    _log.warning("provider fault", code=fault.code, reason=fault.sentence, retry_after=fault.retry_after)
    await account.call(Failure, Done, code=fault.code, lease=lease, retry_after_ms=after)


@contextlib.asynccontextmanager
async def _leased(account: Account, due: DueConnection) -> AsyncIterator[HeldLease | None]:
    """The lease of the connection, renewed while it is held; ``None`` when there is nothing to do with it."""
    asked_at = account.clock.boot()
    answer = await account.call(Lease, LeaseAnswer, club_id=due.club_id, connection_id=due.connection_id)
    lease = HeldLease(
        ref=LeaseRef(
            club_id=due.club_id,
            connection_id=due.connection_id,
            epoch=answer.epoch,
            fencing_token=answer.fencing_token,
        ),
        group_id=answer.group_id,
        window=account.windows.connection(due.connection_id, answer.requests_per_minute),
        requests_per_minute=answer.requests_per_minute,
        until=asked_at + answer.life_ms / 1000,
    )
    account.windows.account.limit = answer.account_requests_per_minute
    renewing = asyncio.create_task(_renew(account, lease))
    try:
        yield lease if answer.state in WORKABLE else None
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
