"""The due rows that failed, remembered by this process alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from lastcall.clock import Clock
from lastcall.deadlines.owner import RETRY, PoisonRow, Position, describe
from lastcall.deadlines.times import MICROSECOND, span, whole

LONGEST_RETRY = timedelta(hours=1)
"""Where the doubling of a failing row's retry ends."""

KEPT = 1000
"""Rows remembered at most. One that does not fit is simply tried in each cycle and retried after 30
seconds.
"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that was due when its page was read. Whether it still is, the locked re-read decides."""

    club_id: UUID
    id: UUID
    position: Position


@dataclass(slots=True)
class _Failing:
    candidate: Candidate
    failures: int
    error: str
    retry_at: int
    cycle: int


class PoisonRows:
    """Counts a row's failures and says when it is tried again: 30 seconds after the first, doubling up to an
    hour.

    A row that failed once is tried by the next cycle, whatever starts that (RET-14). One that failed again is
    set apart until its own retry. Nothing here outlives the process: the rows themselves say what is due
    (RET-22).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: dict[tuple[UUID, UUID], _Failing] = {}
        self._cycle = 0
        self._unkept = False

    def begin_cycle(self) -> None:
        self._cycle += 1
        self._unkept = False

    def is_set_apart(self, candidate: Candidate) -> bool:
        """Whether this cycle steps past the row without trying it."""
        row = self._rows.get((candidate.club_id, candidate.id))
        if row is None or row.failures < 2 or row.retry_at <= self._boot():
            return False
        row.cycle = self._cycle
        return True

    def failed(self, candidate: Candidate, error: Exception) -> None:
        key = (candidate.club_id, candidate.id)
        known = self._rows.get(key)
        if known is None and len(self._rows) >= KEPT:
            self._unkept = True
            return
        failures = 1 if known is None else known.failures + 1
        delay = min(RETRY * 2 ** min(failures - 1, 10), LONGEST_RETRY)
        retry_at = self._boot() + span(delay)
        self._rows[key] = _Failing(candidate, failures, describe(error), retry_at, self._cycle)

    def end_cycle(self) -> None:
        """Forget the rows that this cycle met no more, or that succeeded."""
        self._rows = {key: row for key, row in self._rows.items() if row.cycle == self._cycle}

    @property
    def retry_in(self) -> timedelta | None:
        """How long until the first of them is tried again; None when there are none."""
        delays = [self._remaining(row) for row in self._rows.values()]
        if self._unkept:
            delays.append(RETRY)
        return min(delays, default=None)

    def report(self) -> tuple[PoisonRow, ...]:
        """The rows for the operator's page, the longest failing first."""
        rows = sorted(self._rows.values(), key=lambda row: (-row.failures, row.candidate.position))
        return tuple(
            PoisonRow(
                club_id=row.candidate.club_id,
                id=row.candidate.id,
                due=row.candidate.position.time,
                failures=row.failures,
                error=row.error,
                retry_in=self._remaining(row),
            )
            for row in rows
        )

    def _remaining(self, row: _Failing) -> timedelta:
        return max(0, row.retry_at - self._boot()) * MICROSECOND

    def _boot(self) -> int:
        return whole(self._clock.boot())
