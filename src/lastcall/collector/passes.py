"""What the phases of one pass share: the account, the lease, the time that is left."""

from __future__ import annotations

from dataclasses import dataclass

from lastcall.collector.account import Account
from lastcall.collector.holding import Held, hold
from lastcall.collector.leases import HeldLease
from lastcall.collector.reporting import Reporter


@dataclass
class Pass:
    """One pass over one connection. ``until`` is the boot time from which on it takes nothing new.

    ``has_worked``: somebody waited for something that it did.
    """

    account: Account
    reporter: Reporter
    lease: HeldLease
    until: float
    has_worked: bool = False

    def goes_on(self) -> bool:
        """Whether it may take something new."""
        account = self.account
        return (
            not (account.stop.is_set() or account.must_say_hello or self.lease.is_lost)
            and account.clock.boot() < min(self.until, self.lease.until)
            and account.may_ask()
        )

    async def hold(self, amount: int, until: float, *, is_write: bool = False) -> Held:
        """Requests for a phase, waited for until ``until`` at most; see ``holding.hold``."""
        return await hold(self.account, self.lease, amount, until, is_write=is_write)
