"""Operations first: one after the other until none is due, or the pass's four minutes are over (WRK-16)."""

from __future__ import annotations

from lastcall.collector.operation import Operation
from lastcall.collector.passes import Pass
from lastcall.protocol.messages import Claim, ClaimAnswer


async def run(current: Pass) -> None:
    """Raises the fault that has to end the pass; what it means for its operation is recorded by then (COL-06)."""
    account, lease = current.account, current.lease
    while current.goes_on() and await account.journal.takes_intents():
        asked_at = account.clock.boot()
        answer = await account.call(Claim, ClaimAnswer, lease=lease.ref, journal_id=account.journal.id)
        if answer.operation is None:
            return
        current.has_worked = True
        operation = Operation(account, current.reporter, lease, answer.operation, asked_at)
        fault = await operation.run()
        current.own = operation.own or current.own
        if fault is not None:
            raise fault
