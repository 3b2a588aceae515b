"""The sweep: due rows, each settled in a transaction of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.deadlines.cycle import CycleOwner, Rows
from lastcall.deadlines.owner import Stop
from lastcall.deadlines.poison import Candidate


class Source(Rows, Protocol):
    """What an owner of row work supplies."""

    async def settle(self, candidate: Candidate) -> None:
        """Settle one row in its own transaction; raise when that failed.

        Lock the source row within its club, then, in a new statement, read the facts, decide and write
        (RET-10). A row that is not due after all is no failure, but must not be found as due again.
        """
        ...


class SweepOwner(CycleOwner):
    """One hundred rows a pass, a transaction a row; a failed row is stepped past and holds up no other."""

    def __init__(self, name: str, source: Source, clock: Clock = SYSTEM_CLOCK) -> None:
        super().__init__(name, source, clock)
        self._source = source

    async def _attempt(self, candidates: Sequence[Candidate], stop: Stop) -> int:
        done = 0
        for candidate in candidates:
            if stop.requested:
                break
            try:
                await self._source.settle(candidate)
            except Exception as error:  # noqa: BLE001 - whatever it was, it costs only this row
                self._row_failed(candidate, error)
            else:
                done += 1
        return done
