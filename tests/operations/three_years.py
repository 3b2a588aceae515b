"""A club's Fridays, one after the other, with everything that goes wrong in three years of them.

What people do and what fails is drawn from a seed; time goes from one moment at which something is due to the
next. What a collector wrote stands in a ledger that knows nothing of operations' states. It is not the simulator's:
time stands still while anything happens here, so no collector could run and no request be timed; what reaches
VRChat from real collectors is judged by the simulator's ledger in ``tests/kill`` and ``tests/collector``.
"""

from __future__ import annotations

import heapq
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import count
from random import Random
from uuid import UUID
from zoneinfo import ZoneInfo

from machine_ends import Asked
from machine_stage import Collector, Handle
from machine_things import ALL_PERMISSIONS, GRACE, Club, Event, Op, Seen
from machine_world import OWNERS, TIMELESS, Play

from lastcall.events.times import Timed
from lastcall.protocol.outcomes import Outcome

SECOND, MINUTE, HOUR, DAY = (
    timedelta(seconds=1),
    timedelta(minutes=1),
    timedelta(hours=1),
    timedelta(days=1),
)
TICK = timedelta(microseconds=1)
BERLIN = ZoneInfo("Europe/Berlin")
PATCHES = (20 * SECOND, 3 * MINUTE, 12 * MINUTE)
Action = Callable[[], Awaitable[object]]


@dataclass(frozen=True)
class Write:
    """What VRChat was asked to do, and when it did it."""

    operation_id: UUID
    kind: str
    number: int
    at: datetime


@dataclass
class Ledger:
    """What VRChat did, and for whom the collectors got leave to ask it."""

    writes: list[Write] = field(default_factory=list)
    authorized: list[UUID] = field(default_factory=list)


class Years:
    """The club, its collectors and its luck."""

    def __init__(self, play: Play, seed: int) -> None:
        self.play, self.model = play, play.model
        self.random = Random(seed)
        self.ledger = Ledger()
        self.history: dict[UUID, Op] = {}
        self.undisturbed: list[Op] = []
        self._agenda: list[tuple[datetime, int, Action]] = []
        self._order = count()
        self._down_until: datetime | None = None
        self._has_trouble = False
        self.collector: Collector = play.collectors[0]

    @property
    def club(self) -> Club:
        return self.model.clubs[0]

    def chance(self, percent: int) -> bool:
        """Something rare, which makes the evening one of which nothing is promised."""
        happens = self.random.random() * 100 < percent
        self._has_trouble |= happens
        return happens

    def at(self, moment: datetime, action: Action) -> None:
        """Let somebody do that then."""
        heapq.heappush(self._agenda, (moment, next(self._order), action))

    async def evening(self, friday: date) -> None:
        """One evening, from Monday on until all of it is over."""
        start = datetime.combine(friday, time(21), BERLIN).astimezone(self.model.now.tzinfo)
        await self.play.set_clock(max(self.model.now, start - 4 * DAY))
        self._has_trouble = False
        event = await self.play.new_event(self.club, start)
        await self._plan(event)
        self._trouble(event, start)
        ops = list(self.model.ops.values())
        await self._run_until(start + DAY)
        await self._run_until(self.model.now + 15 * DAY)
        await self.play.check()
        assert all(op.completed_at is not None for op in self.model.ops.values())
        if not self._has_trouble:
            self.undisturbed += ops
        self._file_away()

    def _file_away(self) -> None:
        self.history.update(self.model.ops)
        self.model.ops.clear()
        self.play.handles.clear()

    # What people do.

    async def _plan(self, event: Event) -> None:
        """An instance and invitations to it, roles for the staff of the evening, and what has nothing to do with it."""
        play, club = self.play, self.club
        staff, owner = play.stage.moderator, play.stage.owner
        made = await play.enqueue(club, owner, "create_instance", self._relative(event, -HOUR))
        for creation in made:
            await play.enqueue(
                club,
                owner,
                "invite_to_created_instance",
                self._relative(event, -30 * MINUTE),
                3,
                creation=creation,
                revision=1,
            )
        await play.enqueue(club, staff, "assign_role", self._relative(event, timedelta(0)), 2)
        assert event.starts_at is not None
        await play.enqueue(club, staff, "invite_member", Asked("fixed", event.starts_at - 2 * HOUR, event), 2)
        await play.enqueue(club, staff, "ban_member", Asked("immediate"))

    def _relative(self, event: Event, offset: timedelta) -> Asked:
        assert event.starts_at is not None
        return Asked("event_relative", event.starts_at + offset, event, offset)

    def _some_time_before(self, start: datetime) -> datetime:
        return start - 3 * DAY + self.random.random() * (3 * DAY + HOUR)

    def _trouble(self, event: Event, start: datetime) -> None:
        """What will come in between; most evenings know little of it."""
        play = self.play
        if self.chance(20):
            by = self.random.choice((HOUR, -HOUR, DAY, 10 * MINUTE, -5 * MINUTE))
            self.at(self._some_time_before(start), lambda: play.retime(event, Timed(start + by)))
        if self.chance(12):
            moment = self._some_time_before(start)
            self.at(moment, lambda: play.cancel_event(event))
            if self.random.random() < 0.7:
                self.at(moment + self.random.random() * HOUR, lambda: play.reinstate_event(event))
        if self.chance(5):
            moment = self._some_time_before(start)
            self.at(moment, lambda: play.retime(event, self.random.choice(TIMELESS)))
            self.at(moment + HOUR, lambda: play.retime(event, Timed(start)))
        if self.chance(3):
            self.at(self._some_time_before(start), lambda: play.remove_event(event))
        for _ in range(3):
            if self.chance(15):
                self.at(self._some_time_before(start), self._edit_some)
            if self.chance(8):
                self.at(self._some_time_before(start), self._cancel_some)
        if self.chance(5):
            moment = start - self.random.random() * 2 * HOUR
            self.at(moment, lambda: play.set_role(self.club, frozenset(), may_assign=False))
            self.at(moment + HOUR, lambda: play.set_role(self.club, ALL_PERMISSIONS, may_assign=True))
        if self.chance(10):
            moment = start - self.random.random() * 3 * HOUR
            self.at(
                moment, lambda: self._stop_working(self.random.choice((3 * MINUTE, 10 * MINUTE, 2 * HOUR)))
            )
        if self.chance(4):
            self.at(
                self._some_time_before(start), lambda: self._switch(self.random.choice((MINUTE, HOUR, DAY)))
            )
        if self.chance(2):
            self.at(self._some_time_before(start), self._connect_anew)

    async def _edit_some(self) -> None:
        pending = [op for op in self.model.ops.values() if op.state == "pending"]
        if not pending:
            return
        op = self.random.choice(pending)
        asked = Asked("fixed", self.model.now + self.random.random() * DAY, op.event)
        if op.event is not None and op.event.starts_at is not None and self.random.random() < 0.6:
            asked = self._relative(op.event, self.random.choice((-2 * HOUR, -30 * MINUTE, 5 * MINUTE)))
        await self.play.edit(op, self.play.stage.owner, op.revision, asked)

    async def _cancel_some(self) -> None:
        if self.random.random() < 0.3:
            await self.play.cancel_request(self.random.choice(self.play.requests[-5:]), self.play.stage.owner)
            return
        op = self.random.choice(list(self.model.ops.values()))
        await self.play.cancel(op, self.play.stage.owner, op.revision)

    async def _switch(self, long: timedelta) -> None:
        if self.club.connection is not None and not self.club.connection.is_switched_off:
            await self.play.switch_connection(self.club, is_on=True)
            self.at(self.model.now + long, lambda: self.play.switch_connection(self.club, is_on=False))

    async def _connect_anew(self) -> None:
        assert self.club.connection is not None
        is_off = self.club.connection.is_switched_off
        await self.play.disconnect(self.club)
        await self.play.connect(self.club)
        if is_off:
            await self.play.switch_connection(self.club, is_on=True)

    async def _stop_working(self, long: timedelta) -> None:
        self._down_until = self.model.now + long

    # Time.

    async def _run_until(self, end: datetime) -> None:
        """From one moment at which something is due to the next."""
        await self._all_that_is_due()
        while (moment := min(self._moments(), default=None)) is not None and moment <= end:
            await self.play.set_clock(moment)
            await self._all_that_is_due()

    def _moments(self) -> Iterator[datetime]:
        now = self.model.now
        moments = [moment for moment, _, _ in self._agenda[:1]]
        lease = self.club.connection.lease if self.club.connection else None
        has_work = False
        for op in self.model.ops.values():
            if op.is_unsent:
                has_work = True
                moments += [op.due + GRACE + TICK, op.ready or op.due]
            if op.expires is not None and op.completed_at is None:
                moments.append(op.expires)
        if self._down_until is not None:
            moments.append(self._down_until)
        if lease is not None and has_work and not lease.is_released and lease.worker_id != self.collector.id:
            moments.append(lease.expires_at)
        return (moment for moment in moments if moment > now)

    async def _all_that_is_due(self) -> None:
        while self._agenda and self._agenda[0][0] <= self.model.now:
            await heapq.heappop(self._agenda)[2]()
        while await self._follow_up() or await self._work():
            pass

    async def _follow_up(self) -> bool:
        """What the owners of deadlines do; whether there was anything."""
        has_done = False
        while self.model.ended:
            has_done |= await self.play.clean_up()
        while self.model.notes:
            has_done |= await self.play.fan_out()
        for owner in OWNERS:
            if self.play.due(owner) and (found := await self.play.look(owner)) is not None:
                await self.play.settle(found)
                has_done = True
        return has_done

    # Collectors.

    async def _work(self) -> bool:
        """One operation, as far as it comes."""
        if self._down_until is not None and self._down_until > self.model.now:
            return False
        self._down_until = None
        connection = self.club.connection
        if connection is None or not self._is_anything_ready():
            return False
        lease = next((one for one in self.collector.leases[::-1] if self.model.is_current(one)), None)
        if lease is None or lease.connection is not connection:
            lease = await self.play.take_lease(self.collector, connection)
        handle = None if lease is None else await self.play.claim(self.collector, lease)
        if handle is not None:
            await self._carry_out(handle)
        return handle is not None

    def _is_anything_ready(self) -> bool:
        return any(
            op.state == "pending" and op.ready is not None and op.ready <= self.model.now
            for op in self.model.ops.values()
        )

    async def _carry_out(self, handle: Handle) -> None:
        now = self.model.now
        if self.chance(3):
            await self.play.defer(
                handle, self.random.choice((None, 20 * SECOND, 5 * MINUTE, 82_721 * SECOND))
            )
        elif self.chance(1):
            await self.play.reject(handle)
        elif await self.play.authorize(handle, Seen(now), now):
            self.ledger.authorized.append(handle.op.id)
            self._judge(handle.op)
            if self.chance(2):
                self._crash(handle, has_written=self.random.random() < 0.5)
            elif self.chance(2):
                await self.play.complete(handle, Outcome.REJECTED)
            elif self.chance(1):
                await self.play.complete(handle, Outcome.INDETERMINATE)
            else:
                self._write(handle.op)
                await self.play.complete(handle, Outcome.SUCCEEDED)

    def _judge(self, op: Op) -> None:
        """What a look at the calendar says of a write that begins now."""
        now, event = self.model.now, op.event
        assert op.due <= now <= op.due + GRACE
        if event is not None:
            assert not event.is_cancelled
            assert not event.is_removed
            if op.offset is not None:
                assert event.starts_at is not None
                assert event.starts_at + op.offset == op.due

    def _write(self, op: Op) -> None:
        self.ledger.writes.append(Write(op.id, op.kind, op.number, self.model.now))

    def _crash(self, handle: Handle, *, has_written: bool) -> None:
        """The collector is gone before it sent anything, or before it heard the answer; the other one takes over."""
        if has_written:
            self._write(handle.op)
        nonces = frozenset({handle.claim.nonce} if has_written else ())
        collector = self.collector
        collector.leases.clear()
        is_intact = self.random.random() < 0.9
        if self.random.random() < 0.5:
            self.collector = next(one for one in self.play.collectors if one is not collector)
        else:
            self._down_until = self.model.now + self.random.choice(PATCHES)

        async def begin_anew() -> None:
            await self.play.hello(collector, nonces, is_intact=is_intact)
            if has_written:
                await self.play.complete(handle, Outcome.SUCCEEDED)

        self.at(self._down_until or self.model.now + self.random.choice(PATCHES), begin_anew)
