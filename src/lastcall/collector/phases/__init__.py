"""One pass over one connection: its phases, each in a file of its own, in their order."""

from __future__ import annotations

from lastcall.collector.account import Account
from lastcall.collector.failures import tell_failure
from lastcall.collector.leases import leased
from lastcall.collector.passes import Pass
from lastcall.collector.phases import operations
from lastcall.collector.reporting import Reporter
from lastcall.protocol.constants import PASS_LIFE
from lastcall.protocol.messages import DueConnection
from lastcall.vrchat.errors import ProviderFault

WORKABLE = frozenset({"active", "degraded"})
"""The states of a connection in which operations run."""


async def run_pass(account: Account, reporter: Reporter, due: DueConnection) -> float | None:
    """Do what this connection is due for.

    Returns ``None`` when it went well; after a fault, which the server is told of, the boot time before which VRChat
    wants to hear nothing more about it. Raises ``Stopping``, ``LeaseLost``, ``Refused`` and
    ``Unreachable``; the lease is given back in any case, as far as the server can be reached.
    """
    async with leased(account, due) as lease:
        if lease.state not in WORKABLE:
            return None
        current = Pass(account, reporter, lease, account.clock.boot() + PASS_LIFE.total_seconds())
        try:
            await operations.run(current)
        except ProviderFault as fault:
            not_before = account.clock.boot() + (fault.retry_after or 0.0)
            await tell_failure(account, fault, lease.ref)
            return not_before
    return None
