"""The status line: what the process did so far, in one line a minute at most, and only when something changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import structlog

from lastcall.clock import Clock
from lastcall.collector.account import Account
from lastcall.collector.waiting import first_of
from lastcall.protocol.outcomes import Outcome
from lastcall.vrchat.errors import RateLimit

_log = structlog.get_logger("lastcall.collector")

EVERY = timedelta(minutes=1)


async def show_status(accounts: Sequence[Account], stop: asyncio.Event, clock: Clock) -> None:
    """Log the line until the process stops."""
    shown: dict[str, int] = {}
    while not stop.is_set():
        await first_of(stop.wait(), clock.sleep(EVERY))
        status = status_of(accounts)
        if status != shown:
            _log.info("status", **status)
            shown = status


def status_of(accounts: Sequence[Account]) -> dict[str, int]:
    """The figures of all accounts together, since the process started."""
    faults = [account.fault for account in accounts]
    tallies = [account.tally for account in accounts]
    return {
        "accounts": len(accounts),
        "paused": sum(isinstance(fault, RateLimit) for fault in faults),
        "signed_out": sum(fault is not None and not isinstance(fault, RateLimit) for fault in faults),
        "in_hand": sum(tally.running for tally in tallies),
        "requests": sum(account.windows.account.total for account in accounts),
        "passes": sum(tally.passes for tally in tallies),
        "written": sum(tally.operations[Outcome.SUCCEEDED] for tally in tallies),
        "unknown": sum(tally.operations[Outcome.INDETERMINATE] for tally in tallies),
        "reads": sum(tally.reads["answered"] for tally in tallies),
        "samples": sum(tally.samples for tally in tallies),
        "faults": sum(tally.faults.total() for tally in tallies),
    }
