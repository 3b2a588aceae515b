"""Requests held for one piece of work: slots in this process's windows, and the same number reserved on the server.

Every request to VRChat but the identity read goes out under one of these, whatever phase it belongs to: so the
stop flag, the account's pause, the lease and both budgets bind all of them alike (COL-12).
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from lastcall.collector.account import Account, BudgetTooLow, NoAllowance, Stopping
from lastcall.collector.leases import HeldLease, LeaseLost
from lastcall.collector.windows import Slots
from lastcall.protocol.constants import RETRY_DELAY_LEAST, RETRY_DELAY_USUAL
from lastcall.vrchat.errors import ProviderFault


class Held:
    """So many requests, good until ``until`` (boot time). What is not used is given back here, and stays charged
    on the server (BUD-04)."""

    def __init__(self, account: Account, lease: HeldLease, slots: Slots, until: float) -> None:
        self._account = account
        self._lease = lease
        self.slots = slots
        self.until = until

    def charge(self) -> None:
        """One request is about to go out. Raises what forbids it: ``Stopping``, the account's fault, ``LeaseLost``,
        or ``NoAllowance`` when the reservation is over: it is no good in another minute (BUD-04)."""
        self._account.check()
        now = self._account.clock.boot()
        self._lease.check(now)
        if now > self.until:
            raise NoAllowance(RETRY_DELAY_LEAST.total_seconds())
        self.slots.charge()

    def may_send(self) -> bool:
        """The last look before a write's first byte: ``charge`` as a yes or no."""
        try:
            self.charge()
        except (Stopping, NoAllowance, LeaseLost, ProviderFault):
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.slots.release()


def need_budget(lease: HeldLease, amount: int) -> None:
    """Raise ``BudgetTooLow`` when the lowest limit is below the cost (BUD-02)."""
    if lease.requests_per_minute < amount:
        raise BudgetTooLow


async def hold(
    account: Account, lease: HeldLease, amount: int, until: float, *, is_write: bool = False
) -> Held:
    """Prove who the account is, then hold ``amount`` requests, waiting until ``until`` (boot time) at most.

    Raises ``BudgetTooLow`` before any read or wait (BUD-02), ``NoAllowance``, ``Stopping``, ``LeaseLost``, and what
    is wrong with the account.
    """
    need_budget(lease, amount)
    lease.check(account.clock.boot())
    await account.prove_identity(until)
    within = max(0.0, until - account.clock.boot())
    slots = await account.windows.hold(amount, account.windows.account, lease.window, within=within)
    account.check()
    if slots is None:
        raise NoAllowance(RETRY_DELAY_USUAL.total_seconds())
    try:
        reserved_until = await account.reserve(amount, lease.ref, until, is_write=is_write)
        await account.prove_identity(reserved_until)  # the waits above may have outlived the first proof
    except BaseException:
        slots.release()
        raise
    return Held(account, lease, slots, reserved_until)
