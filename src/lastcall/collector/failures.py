"""Telling the server what went wrong."""

from __future__ import annotations

import structlog

from lastcall.collector.account import Account
from lastcall.collector.operation import DELAY_MOST_MS
from lastcall.protocol.messages import Done, Failure, LeaseRef
from lastcall.vrchat.errors import Membership, ProviderFault

_log = structlog.get_logger("lastcall.collector")


def is_shared(fault: ProviderFault) -> bool:
    """Whether it is more than one phase's: the session, a rate limit, the membership. Such a fault ends the pass
    before the next request (COL-03)."""
    return fault.stops_account or isinstance(fault, Membership)


async def tell_failure(
    account: Account, fault: ProviderFault, lease: LeaseRef | None, *, telemetry_only: bool = False
) -> None:
    """Tell the server what VRChat did, with its own delay in full (RCV-10)."""
    await tell_code(
        account, fault.code, fault.sentence, fault.retry_after, lease, telemetry_only=telemetry_only
    )


async def tell_code(
    account: Account,
    code: str,
    why: str,
    retry_after: float | None,
    lease: LeaseRef | None,
    *,
    telemetry_only: bool = False,
) -> None:
    """The same for what is no fault of VRChat's. ``retry_after`` is in seconds."""
    after = None if retry_after is None else min(retry_after * 1000, DELAY_MOST_MS)
    _log.warning("provider fault", code=code, reason=why, retry_after=retry_after)
    await account.call(
        Failure, Done, code=code, lease=lease, retry_after_ms=after, telemetry_only=telemetry_only
    )
