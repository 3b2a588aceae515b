"""When each target of a request would be sent, from cost, allowance and what is queued already.

An estimate: other clubs' work of the same account, VRChat's own delays and whatever is queued later can slow it
further, and nothing here reserves anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from heapq import heapify, heappop, heappush
from typing import Any
from uuid import UUID

from lastcall.clubs.policy import Standing
from lastcall.db.transaction import Reader
from lastcall.operations.kinds import KINDS
from lastcall.operations.kinds.kind import Kind
from lastcall.operations.schedules import FURTHEST
from lastcall.operations.services.asked import permission_missing
from lastcall.operations.services.worker import ANY_LANE_EVERY
from lastcall.protocol.constants import GRACE

MINUTE = timedelta(minutes=1)
PART = 10 * MINUTE
"""How long one part of a spread takes: two thirds of the grace, so that something may come between."""
EARLIER_BY = tuple(timedelta(minutes=n) for n in (5, 10, 15, 20, 30, 45, 60))
"""How much earlier a start is tried."""
LOOK_BACK = 2 * GRACE
"""From how long before the due time the queue is followed: what is older is over by then."""
QUEUED_MOST = 2000
"""Rows of one lane that are looked at; at the usual allowance that is more than sixteen hours of work."""


@dataclass(frozen=True)
class Part:
    """So many of the targets, in a request of their own at that time."""

    due_at: datetime
    count: int


@dataclass(frozen=True)
class Forecast:
    """``times``: when each target would go out if its grace did not end before; empty when the allowance is below the
    cost, so that nothing ever is (BUD-02). ``in_time`` go out within the grace, the rest is ``missed``.

    ``writes_left``: what the account may still write on that day of UTC, over all its clubs (none: not asked).

    ``earlier_start``: the latest earlier time at which all would be in time, if there is one. ``spread``: the same
    targets as several requests that are; empty when nothing is missed, or nothing helps.
    """

    per_minute: int
    due_at: datetime
    times: tuple[datetime, ...]
    in_time: int
    missed: int
    earlier_start: datetime | None = None
    spread: tuple[Part, ...] = ()
    writes_left: int | None = None

    @property
    def takes(self) -> timedelta:
        """From the due time to the last target."""
        return self.times[-1] - self.due_at if self.times else GRACE


@dataclass(frozen=True)
class Writes:
    """How often an account may write: ``left`` on ``today`` (a day of UTC), and ``a_day`` on each later one."""

    today: date
    left: int
    a_day: int

    def on(self, day: date) -> int:
        return self.left if day <= self.today else self.a_day


@dataclass(frozen=True, order=True)
class Job:
    """Something that waits to be sent; ``number`` is set for the targets that are forecast."""

    ready_at: datetime
    lane: int
    number: int
    due_at: datetime
    cost: int


_CONNECTION = """
    select c.id, c.epoch, least(c.requests_per_minute, a.requests_per_minute, f.requests_per_minute) as per_minute,
           n.now, n.today,
           writes_allowed(a.joined_on, a.writes_per_day, n.today) - writes_reserved(a.id, n.today) as writes_left,
           writes_allowed(a.joined_on, a.writes_per_day, (greatest($2, n.now) at time zone 'UTC')::date) as writes_a_day
      from (select s.now, (s.now at time zone 'UTC')::date as today from (select lastcall_now() as now) s) n
      join fleet_settings f on f.id = 1
      join connections c on c.club_id = $1 and c.state <> 'disconnected'
      join accounts a on a.id = c.account_id
"""
# Lane by lane, as claims walk them; and what is being prepared just now.
_QUEUED = """
    select r.ready_at, r.due_at, r.lane, r.kind
      from (values (1), (2), (3)) as l (lane)
     cross join lateral (
           select o.ready_at, o.due_at, o.lane, o.kind
             from operations o
            where o.club_id = $1 and o.connection_id = $2 and o.epoch = $3 and o.lane = l.lane
              and o.state = 'pending' and o.ready_at between $4 and $5
            order by o.ready_at, o.id
            limit $6) as r
     union all
    select o.due_at, o.due_at, o.lane, o.kind
      from operations o
     where o.club_id = $1 and o.kind = any ($7::text[]) and o.state = 'claimed' and o.completed_at is null
       and o.connection_id = $2 and o.epoch = $3
"""


async def forecast(
    tx: Reader, standing: Standing, club_id: UUID, kind: Kind[Any], count: int, due_at: datetime | None
) -> Forecast | None:
    """For ``count`` actions of ``kind`` due at that time, or now: at most as far ahead as something can be queued for.
    None without a connection. Raises ``NotAllowed`` for whoever could not queue them."""
    if not standing.holds(kind.permission):
        raise permission_missing(kind.permission)
    row = await tx.raw.fetchrow(_CONNECTION, club_id, due_at)
    if row is None:
        return None
    now, per_minute = row["now"], row["per_minute"]
    writes = Writes(row["today"], max(0, row["writes_left"]), row["writes_a_day"])
    due_at = now if due_at is None else min(max(due_at, now), now + FURTHEST)
    if kind.cost > per_minute:
        return Forecast(per_minute, due_at, (), 0, count)

    async def times(at: datetime) -> tuple[datetime, ...]:
        start = max(now, at - LOOK_BACK)
        until = at + GRACE + MINUTE * count
        found = await tx.raw.fetch(
            _QUEUED,
            *(club_id, row["id"], row["epoch"], start - GRACE, until, QUEUED_MOST, list(KINDS)),
        )
        queued = [
            Job(one["ready_at"], one["lane"], -1, one["due_at"], KINDS[one["kind"]].cost)
            for one in found
            if one["kind"] in KINDS
        ]
        return times_beside(queued, kind, count, at, per_minute, start, writes)

    planned = await times(due_at)
    earlier = None
    if _in_time(planned, due_at) < count:
        for at in (due_at - by for by in EARLIER_BY if due_at - by >= now):
            if _in_time(await times(at), at) == count:
                earlier = at
                break
    return told(per_minute, due_at, planned, earlier, writes.on(_day(due_at)))


def times_beside(
    queued: Sequence[Job],
    kind: Kind[Any],
    count: int,
    due_at: datetime,
    per_minute: int,
    start: datetime,
    writes: Writes | None = None,
) -> tuple[datetime, ...]:
    """When each of ``count`` goes out beside what is ``queued``, which is followed from ``start`` on. Without
    ``writes`` a day has no end of them."""
    lane = kind.lane(count)
    own = (Job(due_at, lane, number, due_at, kind.cost) for number in range(count))
    return tuple(_sent(queued, own, per_minute, start, writes))


def told(
    per_minute: int,
    due_at: datetime,
    times: tuple[datetime, ...],
    earlier: datetime | None = None,
    writes_left: int | None = None,
) -> Forecast:
    """What these times mean."""
    in_time = _in_time(times, due_at)
    missed = len(times) - in_time
    spread = tuple(_parts(times, due_at)) if missed else ()
    return Forecast(per_minute, due_at, times, in_time, missed, earlier, spread, writes_left)


def _in_time(times: Sequence[datetime], due_at: datetime) -> int:
    """Whoever would begin at the very end of the grace is not promised that it is enough."""
    return sum(1 for at in times if at < due_at + GRACE)


def _parts(times: Sequence[datetime], due_at: datetime) -> Iterator[Part]:
    """Consecutive targets, each part due when its first would go out."""
    due, count = due_at, 0
    for at in times:
        if at > due + PART:
            if count:
                yield Part(due, count)
            due, count = max(due, due_at + (at - due_at) // MINUTE * MINUTE), 0
        count += 1
    yield Part(due, count)


def _sent(
    queued: Sequence[Job], own: Iterable[Job], per_minute: int, start: datetime, writes: Writes | None
) -> Iterator[datetime]:
    """When each of ``own`` goes out, in order: minute by minute as many whole actions as fit (BUD-01) and day by day as
    many writes, lane before lane, and every third claim the one that has waited longest (WRK-16)."""
    waiting = [*queued, *own]
    left = sum(1 for job in waiting if job.number >= 0)
    heapify(waiting)
    lanes: dict[int, list[Job]] = {1: [], 2: [], 3: []}
    moment = window = start
    used = claims = 0
    written: Counter[date] = Counter()
    while left:
        while waiting and waiting[0].ready_at <= moment:
            job = heappop(waiting)
            heappush(lanes[job.lane], job)
        job_or_none = _next(lanes, moment, oldest=claims % ANY_LANE_EVERY == ANY_LANE_EVERY - 1)
        if job_or_none is None:
            moment = max(moment, waiting[0].ready_at)
        elif job_or_none.cost > per_minute:
            heappop(lanes[job_or_none.lane])
        elif writes is not None and written[_day(moment)] >= writes.on(_day(moment)):
            moment = datetime.combine(_day(moment) + timedelta(days=1), time(), UTC)
        elif moment < window + MINUTE and used + job_or_none.cost > per_minute:
            moment = window + MINUTE
        else:
            if moment >= window + MINUTE:
                window, used = moment, 0
            heappop(lanes[job_or_none.lane])
            used += job_or_none.cost
            written[_day(moment)] += 1
            claims += 1
            if job_or_none.number >= 0:
                left -= 1
                yield moment


def _day(moment: datetime) -> date:
    return moment.astimezone(UTC).date()


def _next(lanes: dict[int, list[Job]], moment: datetime, *, oldest: bool) -> Job | None:
    """What a claim would take at that moment. What is late by then is missed, but for the targets themselves: they
    are at the end of the line, and their times say so."""
    for lane in lanes.values():
        while lane and lane[0].number < 0 and lane[0].due_at + GRACE < moment:
            heappop(lane)
    first = [lane[0] for lane in lanes.values() if lane]
    if not first:
        return None
    return min(first) if oldest else first[0]
