"""What every owner of due rows has in common: the cycle with its boundary, its cursor and its failures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import structlog

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.deadlines.owner import PAGE, Done, Failed, More, PassResult, Position, Reading, Stop, describe
from lastcall.deadlines.poison import Candidate, PoisonRows

log = structlog.get_logger()


class Rows(Protocol):
    """How an owner finds its due rows. It keeps its table, its eligibility and its order to itself
    (RET-15).
    """

    async def boundary(self) -> Position | None:
        """The last position that is due at the database's *now*, or None when nothing is due."""
        ...

    async def page(self, after: Position | None, upto: Position, limit: int) -> Sequence[Candidate]:
        """The first ``limit`` due rows behind ``after`` and not behind ``upto``, in order."""
        ...

    async def next_deadline(self, beyond: Position | None = None) -> Reading:
        """See ``Owner.next_deadline``."""
        ...


class CycleOwner(ABC):
    """Walks what was due when the cycle began, one page a pass, past every failure, up to the boundary
    (RET-14).

    Subclasses say how the rows of a page are settled. The cursor is this object's; two processes that sweep
    at once each have their own and only waste effort.
    """

    def __init__(self, name: str, rows: Rows, clock: Clock = SYSTEM_CLOCK) -> None:
        self.name = name
        self._rows = rows
        self._poison = PoisonRows(clock)
        self._boundary: Position | None = None
        self._cursor: Position | None = None
        self._failures = 0

    async def next_deadline(self, beyond: Position | None = None) -> Reading:
        return await self._rows.next_deadline(beyond)

    async def run_pass(self, stop: Stop) -> PassResult:
        """Attempt at most one page. An error outside of the rows ends the cycle: the next one starts from the
        rows.
        """
        try:
            return await self._run_pass(stop)
        except Exception:
            self._boundary = None
            raise

    async def _run_pass(self, stop: Stop) -> PassResult:
        if self._boundary is None and not await self._begin():
            return self._end(done=0)
        assert self._boundary is not None
        page = await self._rows.page(self._cursor, self._boundary, PAGE)
        open_rows = [candidate for candidate in page if not self._poison.is_set_apart(candidate)]
        done = await self._attempt(open_rows, stop)
        if stop.requested:
            return More(done)
        if len(page) < PAGE:
            return self._end(done)
        self._cursor = page[-1].position
        return More(done)

    @abstractmethod
    async def _attempt(self, candidates: Sequence[Candidate], stop: Stop) -> int:
        """Settle them, hand each failure to ``_row_failed``, begin no row once ``stop`` is requested; the
        count.
        """

    def _row_failed(self, candidate: Candidate, error: Exception) -> None:
        self._failures += 1
        self._poison.failed(candidate, error)
        log.warning(
            "due row failed",
            owner=self.name,
            club_id=str(candidate.club_id),
            id=str(candidate.id),
            error=describe(error),
        )

    async def _begin(self) -> bool:
        self._poison.begin_cycle()
        self._cursor, self._failures = None, 0
        self._boundary = await self._rows.boundary()
        return self._boundary is not None

    def _end(self, done: int) -> PassResult:
        boundary, self._boundary = self._boundary, None
        self._poison.end_cycle()
        retry_in = self._poison.retry_in
        if boundary is None or retry_in is None:
            return Done(done)
        report = self._poison.report()
        return Failed(
            error=report[0].error if report else "more rows fail than are kept",
            retry_in=retry_in,
            beyond=boundary,
            done=done,
            failures=self._failures,
            poison=report,
        )
