"""Long work in pages: each piece of due work is many bounded steps, and every step is a transaction of its
own.

Nothing about how far a piece has come is kept here: the rows say what is left, so a process that dies in
between has lost nothing but its last step.
"""

from __future__ import annotations

from typing import Protocol

import structlog

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.deadlines.owner import Done, Failed, More, PassResult, Position, Reading, Stop, describe
from lastcall.deadlines.poison import Candidate, PoisonRows

log = structlog.get_logger()

STEPS = 20
"""Steps that one pass takes at most, so that owners share turns."""


class PagedSource(Protocol):
    """What an owner of long work supplies."""

    async def next_deadline(self, beyond: Position | None = None) -> Reading:
        """See ``Owner.next_deadline``."""
        ...

    async def first(self, beyond: Position | None) -> Candidate | None:
        """The first piece of work behind ``beyond`` that is due and not finished."""
        ...

    async def step(self, candidate: Candidate) -> None:
        """Do the next page of it, or finish it; raise when that failed.

        What is finished must not be found again. Two processes may do the same piece at once.
        """
        ...


class PagedOwner:
    """Takes steps at the first piece of work that does not fail, until nothing is left. One that fails is
    stepped past and holds up no other."""

    def __init__(self, name: str, source: PagedSource, clock: Clock = SYSTEM_CLOCK) -> None:
        self.name = name
        self._source = source
        self._poison = PoisonRows(clock)
        self._beyond: Position | None = None
        self._failures = 0
        self._is_open = False

    async def next_deadline(self, beyond: Position | None = None) -> Reading:
        return await self._source.next_deadline(beyond)

    async def run_pass(self, stop: Stop) -> PassResult:
        """Take at most ``STEPS`` steps; ``done`` counts them."""
        if not self._is_open:
            self._poison.begin_cycle()
            self._is_open, self._beyond, self._failures = True, None, 0
        done = 0
        while done < STEPS and not stop.requested:
            candidate = await self._source.first(self._beyond)
            if candidate is None:
                return self._end(done)
            if self._poison.is_set_apart(candidate) or not await self._step(candidate):
                self._beyond = candidate.position
                continue
            done += 1
        return More(done)

    async def _step(self, candidate: Candidate) -> bool:
        try:
            await self._source.step(candidate)
        except Exception as error:  # noqa: BLE001 - whatever it was, it costs only this piece of work
            self._failures += 1
            self._poison.failed(candidate, error)
            log.warning(
                "due work failed", owner=self.name, club_id=str(candidate.club_id), error=describe(error)
            )
            return False
        return True

    def _end(self, done: int) -> PassResult:
        self._is_open = False
        self._poison.end_cycle()
        retry_in = self._poison.retry_in
        if self._beyond is None or retry_in is None:
            return Done(done)
        report = self._poison.report()
        return Failed(
            error=report[0].error if report else "more work fails than is kept",
            retry_in=retry_in,
            beyond=self._beyond,
            done=done,
            failures=self._failures,
            poison=report,
        )
