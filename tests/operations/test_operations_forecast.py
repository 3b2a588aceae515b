"""The forecast: from cost, allowance and what is queued already; and what helps when not all is in time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from event_kit import HOUR
from operations_world import World, assignment, ban, invitation

from lastcall.clubs.policy import standing
from lastcall.errors import NotAllowed
from lastcall.operations.forecast import Forecast, Job, Part, Writes, forecast, times_beside, told
from lastcall.operations.kinds import KINDS

ROLE, BAN, INVITE = KINDS["assign_role"], KINDS["ban_member"], KINDS["invite_member"]
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def alone(count: int, per_minute: int = 4, *queued: Job, due_at: datetime = NOON) -> Forecast:
    return told(per_minute, due_at, times_beside(queued, ROLE, count, due_at, per_minute, due_at))


def waiting(count: int, lane: int = 3, ready_at: datetime = NOON, cost: int = 2) -> list[Job]:
    return [Job(ready_at, lane, -1, ready_at, cost)] * count


def test_a_minute_fits_whole_actions_and_the_grace_fifteen_minutes() -> None:
    whole = alone(100)
    assert (whole.in_time, whole.missed) == (30, 70)
    assert whole.times[:5] == (NOON, NOON, NOON + MINUTE, NOON + MINUTE, NOON + 2 * MINUTE)
    assert whole.takes == 49 * MINUTE
    assert alone(30).missed == 0
    assert (alone(30).earlier_start, alone(30).spread) == (None, ())
    # Five a minute fit two of two, not two and a half.
    assert alone(40, 5).in_time == 30
    assert alone(1).takes == timedelta(0)


def test_what_is_queued_before_is_sent_before() -> None:
    assert alone(10, 4, *waiting(10)).times[0] == NOON + 5 * MINUTE
    assert alone(10, 4, *waiting(24)).in_time == 6
    # What is late by the time its turn comes is missed and holds nobody up.
    late = waiting(50, ready_at=NOON - 14 * MINUTE)
    assert alone(10, 4, *late).times[0] == NOON + 2 * MINUTE
    # Dearer work ahead takes more of each minute.
    assert alone(2, 4, *waiting(3, cost=4)).times[0] == NOON + 3 * MINUTE
    # What can never be sent at this allowance takes nothing.
    assert alone(2, 4, *waiting(3, cost=6)).times[0] == NOON


def test_lanes_go_before_each_other_and_every_third_claim_to_the_longest_wait() -> None:
    batch = waiting(100)
    assert times_beside(batch, BAN, 1, NOON, 4, NOON) == (NOON,)
    # Later singles do not hold up a batch for good.
    singles = waiting(100, lane=2, ready_at=NOON)
    own = times_beside(singles, ROLE, 5, NOON - MINUTE, 2, NOON)
    assert own[0] == NOON + 2 * MINUTE
    assert own[1] == NOON + 5 * MINUTE


async def test_an_earlier_start_is_offered_when_the_line_is_shorter_then(world: World) -> None:
    now = await world.clock.freeze()
    due_at = now + 2 * HOUR
    async with world.db.read() as tx:
        reader = await standing(tx, world.club_id, world.moderator.person_id)
    await world.enqueue(*[invitation(n) for n in range(40)], due_at=due_at)

    async def said(count: int, at: datetime) -> Forecast:
        async with world.db.read() as tx:
            found = await forecast(tx, reader, world.club_id, ROLE, count, at)
        assert found is not None
        return found

    found = await said(20, due_at)
    assert (found.missed, found.earlier_start) == (20, due_at - 5 * MINUTE)
    assert (await said(20, due_at - 5 * MINUTE)).missed == 0
    # What does not fit into any grace by itself is not helped by that, nor is what is due now.
    assert (await said(40, due_at)).earlier_start is None
    await world.clock.advance(2 * HOUR)
    assert (await said(20, due_at)).earlier_start is None


def test_a_spread_is_of_the_same_targets_and_misses_none() -> None:
    whole = alone(100)
    assert sum(part.count for part in whole.spread) == 100
    assert whole.spread[:2] == (Part(NOON, 22), Part(NOON + 11 * MINUTE, 22))
    before: list[Job] = []
    for part in whole.spread:
        times = times_beside(before, ROLE, part.count, part.due_at, 4, NOON)
        assert told(4, part.due_at, times).missed == 0
        before += waiting(part.count, ready_at=part.due_at)


def test_a_day_without_writes_left_waits_for_the_next_one() -> None:
    late = NOON + timedelta(hours=11, minutes=55)
    writes = Writes(NOON.date(), 3, 5)
    times = times_beside(waiting(1, ready_at=late), ROLE, 9, late, 4, late, writes)
    midnight = datetime(2030, 1, 2, tzinfo=UTC)
    assert times[:2] == (late, late + MINUTE)
    assert times[2:7] == (midnight, midnight, midnight + MINUTE, midnight + MINUTE, midnight + 2 * MINUTE)
    assert times[7] == midnight + timedelta(days=1)
    assert told(4, late, times).in_time == 7


async def test_the_accounts_writes_of_the_day_count(world: World) -> None:
    now = await world.clock.freeze()
    await world.run("update connections set requests_per_minute = 30")
    await world.run("update accounts set writes_per_day = 6")
    await world.run(
        "insert into allowances (scope, window_start, granted, writes_day, writes)"
        " select 'account:' || id, '-infinity', 0, (lastcall_now() at time zone 'UTC')::date, 4 from accounts"
    )
    async with world.db.read() as tx:
        reader = await standing(tx, world.club_id, world.moderator.person_id)
        today = await forecast(tx, reader, world.club_id, ROLE, 3, None)
        in_two_days = await forecast(tx, reader, world.club_id, ROLE, 3, now + 48 * HOUR)
    assert today is not None
    assert in_two_days is not None
    assert (today.writes_left, in_two_days.writes_left) == (2, 6)
    assert today.times[:2] == (now, now)
    assert today.times[2] >= (now + 24 * HOUR).replace(hour=0, minute=0, second=0, microsecond=0)
    assert in_two_days.missed == 0


def test_below_the_cost_nothing_is_ever_sent() -> None:
    nothing = Forecast(1, NOON, (), 0, 3)
    assert (nothing.in_time, nothing.missed, nothing.spread) == (0, 3, ())
    assert nothing.takes == 15 * MINUTE


async def test_the_clubs_own_queue_and_lowest_limit_count(world: World) -> None:
    now = await world.clock.freeze()
    await world.run("update accounts set requests_per_minute = 20")
    await world.run("update connections set requests_per_minute = 10")
    await world.run("update fleet_settings set requests_per_minute = 4")
    async with world.db.read() as tx:
        reader = await standing(tx, world.club_id, world.moderator.person_id)
    for _ in range(3):
        await world.enqueue(*[invitation(n) for n in range(4)])
    await world.enqueue(*[assignment(n) for n in range(4)], due_at=now + HOUR)
    await world.claim()
    # Another epoch's and what waits for something else is no work to come.
    await world.run("update operations set epoch = epoch - interval '1 day' where due_at > $1", now)
    async with world.db.read() as tx:
        found = await forecast(tx, reader, world.club_id, ROLE, 2, None)
        assert found is not None
        assert (found.per_minute, found.due_at) == (4, now)
        assert found.times == (now + 6 * MINUTE, now + 6 * MINUTE)
        later = await forecast(tx, reader, world.club_id, ROLE, 2, now + 3 * HOUR)
        assert later is not None
        assert later.times[0] == now + 3 * HOUR
        await_urgent = await forecast(tx, reader, world.club_id, BAN, 1, None)
        assert await_urgent is not None
        assert await_urgent.times == (now,)
    await world.run("update fleet_settings set requests_per_minute = 1")
    async with world.db.read() as tx:
        assert await forecast(tx, reader, world.club_id, ROLE, 2, None) == Forecast(1, now, (), 0, 2)
    await world.run("update connections set state = 'disconnected'")
    async with world.db.read() as tx:
        assert await forecast(tx, reader, world.club_id, ROLE, 2, None) is None


async def test_a_forecast_is_for_those_who_may_queue(world: World) -> None:
    await world.run("update staff_roles set permissions = '{invite_group_members}'")
    async with world.db.read() as tx:
        reader = await standing(tx, world.club_id, world.moderator.person_id)
        assert await forecast(tx, reader, world.club_id, INVITE, 1, None) is not None
        with pytest.raises(NotAllowed):
            await forecast(tx, reader, world.club_id, ROLE, 1, None)


async def test_it_is_what_the_worker_then_does(world: World) -> None:
    """Claim by claim, as fast as the allowance allows, in the very order."""
    await world.clock.freeze()
    await world.renew(timedelta(hours=1))
    await world.enqueue(*[invitation(n) for n in range(6)])
    await world.one(ban(50))
    async with world.db.read() as tx:
        reader = await standing(tx, world.club_id, world.moderator.person_id)
        found = await forecast(tx, reader, world.club_id, ROLE, 4, None)
    assert found is not None
    await world.clock.advance(timedelta(microseconds=1))
    own = (await world.enqueue(*[assignment(n) for n in range(4)])).operation_ids
    order = [(await world.claim()).operation_id for _ in range(11)]
    minutes = [order.index(one) // 2 for one in own]
    assert [(at - found.due_at) // MINUTE for at in found.times] == sorted(minutes)
