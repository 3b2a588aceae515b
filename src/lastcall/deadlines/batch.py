"""The batch: due rows, a page of them settled in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import structlog

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.deadlines.cycle import CycleOwner, Rows
from lastcall.deadlines.owner import Stop, describe
from lastcall.deadlines.poison import Candidate

log = structlog.get_logger()


class BatchSource(Rows, Protocol):
    """What an owner supplies whose rows are cheap enough to be settled a hundred at a time."""

    async def settle(self, candidates: Sequence[Candidate]) -> None:
        """Settle all of them in one transaction, locking them in the order of their ids; raise when that
        failed.

        As in a sweep: locks first, then a new statement judges each row afresh. Wait for a locked row, up to
        the lock time limit; one that is skipped would be reported as overdue at once.
        """
        ...


class BatchOwner(CycleOwner):
    """One hundred rows a pass and a transaction. When that fails, each row is tried alone, so one bad row
    costs itself.
    """

    def __init__(self, name: str, source: BatchSource, clock: Clock = SYSTEM_CLOCK) -> None:
        super().__init__(name, source, clock)
        self._source = source

    async def _attempt(self, candidates: Sequence[Candidate], stop: Stop) -> int:
        if not candidates or stop.requested:
            return 0
        try:
            await self._source.settle(candidates)
        except Exception as error:  # noqa: BLE001 - each row is tried again at once
            log.warning("page failed, trying its rows one by one", owner=self.name, error=describe(error))
            return await self._one_by_one(candidates, stop)
        return len(candidates)

    async def _one_by_one(self, candidates: Sequence[Candidate], stop: Stop) -> int:
        done = 0
        for candidate in candidates:
            if stop.requested:
                break
            try:
                await self._source.settle([candidate])
            except Exception as error:  # noqa: BLE001 - whatever it was, it costs only this row
                self._row_failed(candidate, error)
            else:
                done += 1
        return done
