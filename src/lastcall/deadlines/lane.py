"""What the scheduler keeps for one owner, and when that makes it due. No clock, no task and no SQL in
here.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from lastcall.deadlines.hints import Hints
from lastcall.deadlines.owner import RETRY, Failed, Owner, PoisonRow, Position, Reading
from lastcall.deadlines.times import DatabaseTime, span, to_datetime, to_microseconds

READS_APART = span(RETRY)
"""Reads that signals cause are at least this far apart (SCH-03)."""


@dataclass(frozen=True, slots=True)
class OwnerStatus:
    """One owner for the operator's page. Times are aware; deadline and retry are by the database's clock."""

    name: str
    deadline: datetime | None
    retry: datetime | None
    dirty: bool
    running: bool
    last_pass: datetime | None
    passes: int
    reads: int
    rows_done: int
    failures: int
    last_error: str | None
    poison: tuple[PoisonRow, ...]
    signals: int
    coalesced: int
    unclear_commits: int


class Lane:
    """The state of one owner. Times are whole microseconds: ``saved`` the database's, all others boot
    time.
    """

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.task: asyncio.Task[None] | None = None
        self.saved: int | None = None
        self.hints = Hints()
        self.retry: int | None = None
        self.early: int | None = None
        self.dirty = False
        self.read_at_once = True
        self.last_signal_read: int | None = None
        self.unfinished = False
        self.beyond: Position | None = None
        self.unclear: set[int] = set()
        self._rows_when_overdue: int | None = None
        self._fruitless = 0
        self.last_pass: datetime | None = None
        self.passes = self.reads = self.rows_done = self.failures = self.signals = self.coalesced = 0
        self.last_error: str | None = None
        self.poison: tuple[PoisonRow, ...] = ()

    # What is due, and when something will be.

    @property
    def deadline(self) -> int | None:
        """The saved deadline as signals have lowered it, in database time."""
        return min((d for d in (self.saved, self.hints.earliest) if d is not None), default=None)

    def wake(self, time: DatabaseTime) -> int | None:
        """The boot time from which this owner has something to do; None while it has not."""
        if self.unfinished or self.read_at_once:
            return 0
        deadline = self.deadline
        moments = (
            None if deadline is None else time.boot_at(deadline),
            self.retry,
            self.early,
            self._dirty_from() if self.dirty else None,
        )
        return min((moment for moment in moments if moment is not None), default=None)

    def wants_pass(self, boot: int, time: DatabaseTime) -> bool:
        """Whether there is work to look for, and not merely a deadline to read.

        While rows are set apart, a dirty owner gets a pass: the row behind the signal may lie among them,
        where the read beyond them would not find it.
        """
        now = time.at(boot)
        deadline = self.deadline
        return (
            self.unfinished
            or (now is not None and deadline is not None and deadline <= now)
            or any(moment is not None and moment <= boot for moment in (self.retry, self.early))
            or (self.beyond is not None and self.wants_read(boot))
        )

    def wants_read(self, boot: int) -> bool:
        return self.read_at_once or (self.dirty and self._dirty_from() <= boot)

    def _dirty_from(self) -> int:
        return 0 if self.last_signal_read is None else self.last_signal_read + READS_APART

    # What changes it.

    def lower(self, deadline: int, boot: int) -> bool:
        """Take in a deadline that a signal brought; True when it is lower than what was saved."""
        known = self.deadline
        merged = self.hints.add(deadline, boot)
        if merged is not None:
            self.saved = merged if self.saved is None else min(self.saved, merged)
        return known is None or deadline < known

    def begin_passes(self, boot: int, now: int | None) -> None:
        """Passes begin: what made the owner due is used up; what comes during them counts anew."""
        if self.beyond is not None and self.wants_read(boot):
            self.last_signal_read = boot
        self.unfinished = True
        self.retry = self.early = None
        if now is not None:
            self.hints.fire(now)
            if self.saved is not None and self.saved <= now:
                self.saved = None

    def begin_read(self, boot: int, *, after_passes: bool) -> None:
        """A read begins: signals from here on may be later than what it sees.

        Those after passes, at the start and after a clock jump are not charged to the signals' budget.
        """
        if self.unclear or (self.dirty and not after_passes):
            self.last_signal_read = boot
        self.dirty = self.read_at_once = False
        self.reads += 1

    def finish_read(self, reading: Reading, began: int, settled: set[int]) -> bool:
        """Save what was read; True when it is due already.

        ``settled`` are the unclear transactions known to be over before the read began. A deadline that is
        reported as overdue though passes find nothing would spin: the second such report in a row waits for
        the retry.
        """
        self.unclear -= settled
        self.dirty = self.dirty or bool(self.unclear)
        self.hints.settle(began)
        self.saved = None if reading.deadline is None else to_microseconds(reading.deadline)
        if self.saved is None or self.saved > to_microseconds(reading.now):
            self._rows_when_overdue, self._fruitless = None, 0
            return False
        if self.rows_done == self._rows_when_overdue:
            self._fruitless += 1
        self._rows_when_overdue = self.rows_done
        if self._fruitless < 2:
            return True
        self._rows_when_overdue, self._fruitless = None, 0
        self.failed(Failed("its passes do not find the deadline that it reports"), began)
        self.saved = None
        return False

    def fail_read(self, error: str, boot: int) -> None:
        """The read came to nothing: the owner stays dirty and is read again after the retry."""
        self.dirty = True
        self.last_signal_read = boot
        self._count_failure(error)

    def succeeded(self) -> None:
        """A cycle ended with no row left that was due when it began."""
        self.unfinished = False
        self.retry = self.early = self.beyond = self.last_error = None
        self.poison = ()

    def failed(self, failure: Failed, boot: int) -> None:
        self.unfinished = False
        self.retry = boot + span(failure.retry_in)
        if failure.beyond is not None:
            self.beyond = failure.beyond
            self.poison = tuple(failure.poison)
        self._count_failure(failure.error, failure.failures)

    def come_back(self, boot: int, delay: int) -> None:
        """The pass was early (EARLY): re-arm by exactly that delay."""
        self.unfinished = False
        self.early = boot + delay

    def _count_failure(self, error: str, failures: int = 1) -> None:
        self.failures += failures
        self.last_error = error

    def status(self, time: DatabaseTime) -> OwnerStatus:
        deadline = self.deadline
        retry = None if self.retry is None else time.at(self.retry)
        return OwnerStatus(
            name=self.owner.name,
            deadline=None if deadline is None else to_datetime(deadline),
            retry=None if retry is None else to_datetime(retry),
            dirty=self.dirty,
            running=self.task is not None,
            last_pass=self.last_pass,
            passes=self.passes,
            reads=self.reads,
            rows_done=self.rows_done,
            failures=self.failures,
            last_error=self.last_error,
            poison=self.poison,
            signals=self.signals,
            coalesced=self.coalesced,
            unclear_commits=len(self.unclear),
        )
