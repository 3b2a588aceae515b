"""What ends a phase, and telling the server about it."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from lastcall.collector.account import Account, BudgetTooLow
from lastcall.collector.operation import DELAY_MOST_MS
from lastcall.protocol.messages import Done, Failure, LeaseRef
from lastcall.protocol.outcomes import Code
from lastcall.vrchat.errors import Membership, ProviderFault

_log = structlog.get_logger("lastcall.collector")


@dataclass(frozen=True)
class Trouble:
    """A failure as the server hears of it. ``retry_after``: seconds, the provider's own, where one was named.

    ``is_shared``: it is more than one phase's (the session, a rate limit, the membership), and ends the pass before
    the next request (COL-03).
    """

    code: str
    why: str
    retry_after: float | None = None
    is_shared: bool = False


class Setback(Exception):
    """A phase that came to nothing, though nothing is wrong with the account."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.why)
        self.trouble = trouble


def trouble_of(error: ProviderFault | BudgetTooLow | Setback) -> Trouble:
    """What the server is told of it."""
    match error:
        case Setback():
            return error.trouble
        case BudgetTooLow():
            return Trouble(Code.BUDGET_TOO_LOW, "The limit of requests a minute is too low for this.")
        case ProviderFault():
            is_shared = error.stops_account or isinstance(error, Membership)
            return Trouble(error.code, error.sentence, error.retry_after, is_shared)


async def tell(
    account: Account, trouble: Trouble, lease: LeaseRef | None, *, telemetry_only: bool = False
) -> None:
    """Tell the server, with the provider's own delay in full (RCV-10)."""
    after = None if trouble.retry_after is None else min(trouble.retry_after * 1000, DELAY_MOST_MS)
    account.tally.faults[trouble.code] += 1
    _log.warning(
        "provider fault",
        account=account.account_id,
        connection=lease.connection_id if lease is not None else None,
        code=trouble.code,
        reason=trouble.why,
        retry_after=trouble.retry_after,
    )
    await account.call(
        Failure, Done, code=trouble.code, lease=lease, retry_after_ms=after, telemetry_only=telemetry_only
    )
