"""Operations first: one after the other until none is due, or the pass's four minutes are over (WRK-16).

A batch may take all of those, in pass after pass. Whoever waits at a screen for a read has a minute, so reads have
their turn in between (COL-01).
"""

from __future__ import annotations

from lastcall.collector.operation import Operation
from lastcall.collector.passes import Pass
from lastcall.collector.phases import reads
from lastcall.protocol.messages import Claim, ClaimAnswer

READS_TURN = 20.0
"""Seconds of operations after which reads have a turn: a third of what a read may wait."""


async def run(current: Pass) -> None:
    """Raises the fault that has to end the pass; what it means for its operation is recorded by then (COL-06)."""
    account, lease = current.account, current.lease
    turn_ends = account.clock.boot() + READS_TURN
    while current.goes_on() and await account.journal.takes_intents():
        if account.clock.boot() >= turn_ends:
            await reads.run(current)
            turn_ends = account.clock.boot() + READS_TURN
            if not current.goes_on():
                return
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
