"""One saved deadline for each owner, and a sleep until the earliest of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.db.database import Database, xid_status
from lastcall.deadlines.lane import Lane, OwnerStatus
from lastcall.deadlines.owner import Done, Early, Failed, More, Owner, PassResult, Reading, Stop, describe
from lastcall.deadlines.signals import Missed, Signal
from lastcall.deadlines.times import MICROSECOND, DatabaseTime, span, to_datetime, to_microseconds, whole

LONGEST_SLEEP = timedelta(hours=1)
"""Longer waits are cut into pieces of this length, re-armed without SQL."""

JUMP = timedelta(seconds=1)
"""The wall clock was set when it moved this much against the boot-time clock within one sleep."""

TURNS = 4
"""Passes and reads at a time over all owners, so that a backlog leaves connections to everything else."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Wake:
    """The earliest moment at which an owner has something to do: by the database's clock, and from now."""

    at: datetime
    delay: timedelta
    owner: str


class Scheduler:
    """Runs owners when, and only when, they are due.

    ``start`` rebuilds every deadline from the rows (SCH-01); after that the scheduler sends no SQL until a
    deadline, a retry or a signal. Subscribes to ``Signal`` and ``Missed`` on the database's bus; owners it
    does not know are somebody else's. Several processes may run one each; they only waste effort (SCH-07).
    """

    def __init__(self, db: Database, owners: Sequence[Owner], clock: Clock = SYSTEM_CLOCK) -> None:
        self._db = db
        self._clock = clock
        self._lanes = {owner.name: Lane(owner) for owner in owners}
        if len(self._lanes) != len(owners):
            raise ValueError("two deadline owners have the same name")
        self._time = DatabaseTime()
        self._stop = Stop()
        self._draining = False
        self._jumped = False
        self._distance = self._wall_distance()
        self._poked = asyncio.Event()
        self._turns = asyncio.Semaphore(TURNS)
        self._planned: int | None = None
        self._loop: asyncio.Task[None] | None = None
        db.bus.subscribe(Signal, self.signal)
        db.bus.subscribe(Missed, lambda _: self.reread())
        db.bus.subscribe_unclear(self._unclear)

    # The outside.

    async def start(self) -> None:
        """Begin: each owner's deadline is read at once, and overdue work runs. Does not wait for either."""
        if self._loop is not None:
            raise RuntimeError("the scheduler was started before")
        self._loop = asyncio.create_task(self._run(), name="scheduler")

    def signal(self, signal: Signal) -> None:
        """Take a signal in; no SQL here, ever."""
        lane = self._lanes.get(signal.owner)
        if lane is None:
            return
        lane.signals += 1
        if signal.deadline is not None:
            self._lower(lane, to_microseconds(signal.deadline))
        elif lane.dirty:
            lane.coalesced += 1
        else:
            lane.dirty = True
            self._poke()

    def lower(self, owner: str, deadline: datetime) -> None:
        """``owner`` may have this deadline soon: for a hot step, before it sends its one function call."""
        self.signal(Signal(owner, deadline))

    def reread(self) -> None:
        """Every owner may have changed unseen: all are read again, within the budget of signals."""
        for name in self._lanes:
            self.signal(Signal(name))

    def drain(self) -> None:
        """Begin no pass and no read from now on; signals and retries are kept (SCH-04)."""
        self._draining = True

    def undrain(self) -> None:
        """Go on with what has come up meanwhile."""
        self._draining = False
        self._poke()

    async def stop(self) -> None:
        """Return when the rows in hand are finished; no other is begun (SCH-05). What is left lies in the
        rows.
        """
        self._stop.request()
        self._poke()
        if self._loop is not None:
            await self._loop
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    def status(self) -> list[OwnerStatus]:
        """What the operator's page shows, in the order in which the owners were registered."""
        return [lane.status(self._time) for lane in self._lanes.values()]

    def next_wake(self) -> datetime | None:
        """The earliest moment, by the database's clock, at which some owner has something to do.

        None when nothing is to come. Before the first reading the host's own clock answers: now.
        """
        wake = self.earliest_wake()
        return None if wake is None else wake.at

    def earliest_wake(self) -> Wake | None:
        """``next_wake`` with whose it is, for a host that may sleep till then (SCH-09)."""
        boot = self._boot()
        now = self._time.at(boot)
        wakes = [
            (boot if lane.task is not None else lane.wake(self._time), name)
            for name, lane in self._lanes.items()
        ]
        earliest = min(((wake, name) for wake, name in wakes if wake is not None), default=None)
        if earliest is None:
            return None
        wake, name = max(earliest[0], boot), earliest[1]
        at = self._clock.wall() if now is None else to_datetime(now + wake - boot)
        return Wake(at, (wake - boot) * MICROSECOND, name)

    # The loop.

    async def _run(self) -> None:
        while not self._stop.requested:
            self._poked.clear()
            self._notice_jump()
            if not self._draining:
                self._dispatch()
            await self._sleep()

    def _dispatch(self) -> None:
        boot = self._boot()
        if self._jumped and self._time.known:
            self._read_one(boot)
        for lane in self._lanes.values():
            if lane.task is None and (lane.wants_pass(boot, self._time) or lane.wants_read(boot)):
                lane.task = asyncio.create_task(self._work(lane), name=f"owner {lane.owner.name}")

    def _read_one(self, boot: int) -> None:
        """After a clock was set: one read renews the distance to the database's clock for all owners."""
        idle = [
            lane
            for lane in self._lanes.values()
            if lane.task is None and not lane.wants_pass(boot, self._time)
        ]
        if idle:
            self._jumped = False
            min(idle, key=lambda lane: (lane.deadline is None, lane.deadline or 0)).read_at_once = True

    async def _sleep(self) -> None:
        """Until the earliest wake, a poke, or the longest sleep, whichever comes first."""
        boot = self._boot()
        wakes = [lane.wake(self._time) for lane in self._lanes.values() if lane.task is None]
        self._planned = min((wake for wake in wakes if wake is not None), default=None)
        delay = span(LONGEST_SLEEP)
        if self._planned is not None and not self._draining:
            delay = min(delay, max(0, self._planned - boot))
        timer = asyncio.ensure_future(self._clock.sleep(delay * MICROSECOND))
        poked = asyncio.ensure_future(self._poked.wait())
        try:
            await asyncio.wait((timer, poked), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            poked.cancel()

    def _notice_jump(self) -> None:
        distance = self._wall_distance()
        if abs(distance - self._distance) >= span(JUMP):
            self._jumped = True
        self._distance = distance

    # One owner's turn.

    async def _work(self, lane: Lane) -> None:
        """Passes until they are done, then one read; or the read alone, and passes when it says so."""
        try:
            is_due = lane.wants_pass(self._boot(), self._time)
            while not is_due or await self._passes(lane):
                if not await self._read(lane, after_passes=is_due):
                    return
                is_due = True
        except Exception:
            lane.failed(Failed("unexpected error"), self._boot())
            log.exception("deadline owner broke the scheduler", owner=lane.owner.name)
        finally:
            lane.task = None
            self._poke()

    async def _passes(self, lane: Lane) -> bool:
        """Run passes, giving up the turn after each; True when the next deadline is to be read."""
        boot = self._boot()
        lane.begin_passes(boot, self._time.at(boot))
        while True:
            async with self._turns:
                if self._is_halted:
                    return False
                result = await self._one_pass(lane)
            match result:
                case More(done):
                    lane.rows_done += done
                case Done(done):
                    lane.rows_done += done
                    lane.succeeded()
                    return True
                case Early(delay):
                    lane.come_back(self._boot(), span(delay))
                    return False
                case Failed():
                    lane.rows_done += result.done
                    lane.failed(result, self._boot())
                    if result.failures:
                        log.warning("deadline pass failed", owner=lane.owner.name, error=result.error)
                    return result.beyond is not None

    async def _one_pass(self, lane: Lane) -> PassResult:
        lane.passes += 1
        lane.last_pass = self._clock.wall()
        try:
            return await lane.owner.run_pass(self._stop)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again
            return Failed(describe(error))

    async def _read(self, lane: Lane, *, after_passes: bool) -> bool:
        """Read the next deadline once; True when it is due already."""
        async with self._turns:
            if self._is_halted:
                lane.read_at_once = True
                return False
            began = self._boot()
            lane.begin_read(began, after_passes=after_passes)
            try:
                settled = await self._settled(lane)
                before = self._clock.boot()
                reading = await lane.owner.next_deadline(lane.beyond)
            except Exception as error:  # noqa: BLE001 - whatever it was, it is read again
                lane.fail_read(describe(error), self._boot())
                log.warning("deadline read failed", owner=lane.owner.name, error=describe(error))
                return False
            return self._save(lane, reading, before, settled)

    def _save(self, lane: Lane, reading: Reading, before: float, settled: set[int]) -> bool:
        self._time.observe(reading.now, before, self._clock.boot())
        return lane.finish_read(reading, whole(before), settled)

    async def _settled(self, lane: Lane) -> set[int]:
        """Those of the owner's unclear transactions whose outcome is final, asked before the read begins."""
        return {xid for xid in tuple(lane.unclear) if await xid_status(self._db, xid) != "in progress"}

    # Small parts.

    def _unclear(self, messages: Sequence[object], xid: int) -> None:
        """Nobody knows whether these were committed: lower what they say, and reread until it is known
        (ACC-09).
        """
        for message in messages:
            if isinstance(message, Signal) and message.owner in self._lanes:
                self._lanes[message.owner].unclear.add(xid)
                self.signal(message)
                self.signal(Signal(message.owner))

    def _lower(self, lane: Lane, deadline: int) -> None:
        boot = self._boot()
        if not lane.lower(deadline, boot):
            lane.coalesced += 1
            return
        wake = self._time.boot_at(deadline)
        if wake is None or self._planned is None or wake < self._planned:
            self._poke()

    @property
    def _is_halted(self) -> bool:
        return self._draining or self._stop.requested

    def _boot(self) -> int:
        return whole(self._clock.boot())

    def _wall_distance(self) -> int:
        return to_microseconds(self._clock.wall()) - self._boot()

    def _poke(self) -> None:
        self._poked.set()
