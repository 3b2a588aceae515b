"""The allowance of provider requests, shared by every worker of an account wherever it runs (BUD-07)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from lastcall.connections.refusals import refused
from lastcall.connections.worker import LeaseHeld, Worker
from lastcall.db.database import Database

_RESERVE = "select * from worker_allowance($1, $2, $3, $4, $5, $6, $7, $8, $9)"


@dataclass(frozen=True)
class Reservation:
    """What became of a request for allowance.

    Granted: it may be used for ``window``, which ends with the calendar minute. Denied: ask again after
    ``retry``; when that is None no wait will help, because ``limit`` (the lowest of those charged) is below
    the amount. ``is_daily_cap``: the account has used up the writes of its day, and ``retry`` is when the next
    one begins for it.
    """

    is_granted: bool
    limit: int
    window: timedelta | None = None
    retry: timedelta | None = None
    is_daily_cap: bool = False


async def reserve(
    db: Database, worker: Worker, amount: int, held: LeaseHeld | None, *, is_write: bool = False
) -> Reservation:
    """Reserve ``amount`` requests to the provider, in a transaction of its own.

    With a lease they are charged to fleet, account and connection, without one (the identity read) to fleet
    and account. ``is_write``: one of them changes something at VRChat, and counts for the day even if it is never
    sent (BUD-04). Raises a refusal for a stale key or lease, a disabled account and a connection that may not
    work.
    """
    row = await db.pool.fetchrow(
        _RESERVE,
        *worker.arguments,
        *(held.arguments if held else (None,) * 4),
        amount,
        is_write,
    )
    if row is None:
        raise AssertionError("worker_allowance answers exactly one row.")
    match row["outcome"]:
        case "granted":
            return Reservation(True, row["least_limit"], window=row["window_ends_at"] - row["judged_at"])
        case "denied":
            return Reservation(False, row["least_limit"], retry=row["retry_at"] - row["judged_at"])
        case "write_cap":
            retry = row["retry_at"] - row["judged_at"]
            return Reservation(False, row["least_limit"], retry=retry, is_daily_cap=True)
        case "too_low":
            return Reservation(False, row["least_limit"])
        case outcome:
            raise refused(outcome)
