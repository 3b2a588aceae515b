"""An agent is handed what it is told until it says that it has it; while it waits, nothing is asked of the database."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from tests.decisions.conftest import Door, open_door

from lastcall.clock import SYSTEM_CLOCK
from lastcall.db.bus import Hint
from lastcall.db.database import Database
from lastcall.decisions.deliveries import dead, handing
from lastcall.decisions.deliveries.deliver import Message, ToAgent, deliver
from lastcall.decisions.deliveries.handing import NOT_TAKEN, AgentWaits, Handed, acknowledge, hand_over
from lastcall.decisions.deliveries.sending import ATTEMPTS_MOST, pause_after
from lastcall.decisions.deliveries.signals import for_agent
from lastcall.errors import Conflict, Invalid, NotSignedIn, Unavailable
from lastcall.people.actor import AgentActor
from lastcall.testing.agents import let_in_agent
from lastcall.testing.clock import TestClock
from lastcall.testing.fake_clock import FakeClock
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.quiet import assert_quiet
from lastcall.testing.waiting import eventually

MINUTE = timedelta(minutes=1)
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
async def agent(door: Door) -> AgentActor:
    return (await let_in_agent(door.db, door.club_id, door.owner.person_id))[0]


async def tell(door: Door, agent: AgentActor, dedup: str = "one") -> None:
    message = Message("approval.archived", dedup, data={"archiveVersion": 1})
    async with door.db.transaction() as tx:
        await deliver(tx, door.club_id, [ToAgent(agent.agent_id)], message)


async def handed(door: Door, agent: AgentActor) -> list[Handed]:
    return (await hand_over(door.db, agent))[0]


async def states(door: Door) -> Sequence[str]:
    rows = await door.db.pool.fetch("select state from deliveries order by created_at, id")
    return [row["state"] for row in rows]


async def test_an_agent_is_handed_what_it_was_told_in_order_and_others_are_not(
    door: Door, agent: AgentActor
) -> None:
    other, _ = await let_in_agent(door.db, door.club_id, door.owner.person_id)
    for number in range(3):
        await tell(door, agent, f"{number}")
    found = await handed(door, agent)
    assert [(one.kind, one.attempt, dict(one.data)) for one in found] == [
        ("approval.archived", 1, {"archiveVersion": 1})
    ] * 3
    assert [one.id for one in found] == sorted(one.id for one in found)
    assert await handed(door, other) == []


async def test_what_is_not_acknowledged_comes_again_after_growing_pauses_and_is_given_up(
    door: Door, agent: AgentActor, test_clock: TestClock
) -> None:
    await test_clock.freeze()
    await tell(door, agent)
    for attempt in range(1, ATTEMPTS_MOST + 1):
        (one,) = await handed(door, agent)
        assert one.attempt == attempt
        assert (await hand_over(door.db, agent)) == ([], pause_after(attempt))
        await test_clock.advance(pause_after(attempt) - MICROSECOND)
        assert await handed(door, agent) == []
        await test_clock.advance(MICROSECOND)
    assert await hand_over(door.db, agent) == ([], None)
    async with door.db.read() as tx:
        (given_up,) = await dead.dead_of_club(tx, door.owner, door.club_id)
    assert (given_up.channel, given_up.recipient, given_up.error) == ("agent", agent.name, NOT_TAKEN)
    await dead.try_again(door.db, door.owner, door.club_id, given_up.id)
    assert [one.attempt for one in await handed(door, agent)] == [1]


async def test_what_is_acknowledged_is_handed_over_no_more_and_only_by_its_agent(
    door: Door, agent: AgentActor, test_clock: TestClock
) -> None:
    other, _ = await let_in_agent(door.db, door.club_id, door.owner.person_id)
    await tell(door, agent)
    (unseen,) = await door.db.pool.fetch("select id from deliveries")
    assert await acknowledge(door.db, agent, [unseen["id"]]) == 0, "it was not handed over yet"
    (one,) = await handed(door, agent)
    assert await acknowledge(door.db, other, [one.id]) == 0
    assert await acknowledge(door.db, agent, [one.id, uuid4()]) == 1
    assert await acknowledge(door.db, agent, [one.id]) == 0
    await test_clock.advance(timedelta(days=1))
    assert (await hand_over(door.db, agent), await states(door)) == (([], None), ["delivered"])
    with pytest.raises(Invalid, match="At most 50"):
        await acknowledge(door.db, agent, [one.id] * 51)


async def test_a_blocked_agent_and_one_of_another_club_get_nothing(door: Door, agent: AgentActor) -> None:
    await tell(door, agent)
    elsewhere = await open_door(door.db, "cellar")
    stranger, _ = await let_in_agent(door.db, elsewhere.club_id, elsewhere.owner.person_id)
    assert await handed(door, stranger) == []
    await door.db.pool.execute(
        "update clubs set state = 'paused', paused_at = lastcall_now(), pause_reason = 'manual'"
    )
    with pytest.raises(Conflict, match="paused"):
        await handed(door, agent)
    await door.db.pool.execute("update agents set status = 'blocked'")
    with pytest.raises(NotSignedIn):
        await handed(door, agent)
    assert await states(door) == ["pending"]


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_two_calls_at_once_share_what_waits(
    door: Door, agent: AgentActor, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """The second steps past what the first holds; the twin, without that, stands and waits for it."""
    if not is_guarded:
        monkeypatch.setattr(handing, "_HAND_OVER", handing._HAND_OVER.replace("skip locked", ""))
    await tell(door, agent, "held")
    connection = await door.db.connect()
    other = connection.transaction()
    await other.start()
    await connection.execute("select from deliveries for no key update")
    await tell(door, agent, "free")
    second = asyncio.create_task(handed(door, agent))
    if is_guarded:
        assert len(await second) == 1
    else:
        await wait_until_blocked(door.db, "with due as", by=connection.get_server_pid())
        assert not second.done()
    await other.rollback()
    await second
    await connection.close()


class Waiting:
    """An agent that waits, on a clock of its own."""

    def __init__(self, door: Door, agent: AgentActor, life: timedelta = MINUTE) -> None:
        self.clock = FakeClock()
        self.waits = AgentWaits(door.db, self.clock)
        self.task = asyncio.create_task(self.waits.fetch(agent, life))


async def at_rest(door: Door, waiting: Waiting) -> None:
    """Until it has asked once and waits."""
    await eventually(lambda: waiting.waits.waiting)
    await waiting.clock.rest()


async def test_an_agent_that_waits_is_told_at_once(door: Door, agent: AgentActor) -> None:
    waiting = Waiting(door, agent)
    await at_rest(door, waiting)
    await tell(door, agent)
    assert [one.kind for one in await waiting.task] == ["approval.archived"]
    assert waiting.waits.waiting == 0


async def test_while_agents_wait_nothing_is_asked(door: Door, agent: AgentActor) -> None:
    waits = AgentWaits(door.db, SYSTEM_CLOCK)
    before = door.db.statements
    waiting = asyncio.create_task(waits.fetch(agent, MINUTE))
    await eventually(lambda: door.db.statements > before and waits.waiting)
    await eventually(lambda: is_idle(door))
    async with assert_quiet(door.db, 1.0):
        door.db.bus.deliver([Hint(door.club_id, "scheduled"), for_agent(door.club_id, uuid4())])
    waits.stop()
    assert await waiting == []
    with pytest.raises(Unavailable):
        await waits.fetch(agent, MINUTE)


async def is_idle(door: Door) -> bool:
    """Whether the last statement of a look is over."""
    busy: int = await door.db.pool.fetchval(
        "select count(*) from pg_stat_activity where datname = current_database() and state <> 'idle'"
        " and pid <> pg_backend_pid()"
    )
    return busy == 0


async def test_a_wait_ends_with_its_time_and_with_a_newer_one(
    door: Door, agent: AgentActor, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Waiting(door, agent)
    await at_rest(door, waiting)
    await waiting.clock.advance(MINUTE)
    assert await waiting.task == []
    older = asyncio.create_task(waiting.waits.fetch(agent, MINUTE))
    await eventually(lambda: waiting.waits.waiting)
    await waiting.clock.rest()
    asked: list[AgentActor] = []

    async def counted(db: Database, who: AgentActor) -> tuple[list[Handed], timedelta | None]:
        asked.append(who)
        return await hand_over(db, who)

    monkeypatch.setattr(handing, "hand_over", counted)
    newer = asyncio.create_task(waiting.waits.fetch(agent, MINUTE))
    assert await older == []
    await waiting.clock.rest()
    assert len(asked) == 1, "what waits is the newer one's, and the older one takes none of it"
    await tell(door, agent)
    assert len(await newer) == 1


async def test_a_wait_ends_when_something_is_to_be_handed_over_again(
    door: Door, agent: AgentActor, test_clock: TestClock
) -> None:
    await test_clock.freeze()
    await tell(door, agent)
    await handed(door, agent)
    waiting = Waiting(door, agent)
    await at_rest(door, waiting)
    await test_clock.advance(pause_after(1))
    await waiting.clock.advance(pause_after(1))
    assert [one.attempt for one in await waiting.task] == [2]


async def test_a_message_whose_commit_is_unclear_is_looked_for_again(door: Door, agent: AgentActor) -> None:
    waiting = Waiting(door, agent)
    await at_rest(door, waiting)
    door.db.bus.unclear([for_agent(door.club_id, agent.agent_id)], 1)
    await waiting.clock.rest()
    await door.db.pool.execute(
        "insert into deliveries (club_id, id, kind, channel, agent_id, dedup, data, state, next_at)"
        " values ($1, $2, 'approval.archived', 'agent', $3, 'one', '{}', 'pending', lastcall_now())",
        door.club_id,
        UUID(int=1),
        agent.agent_id,
    )
    await waiting.clock.advance(timedelta(seconds=31))
    assert [one.id for one in await waiting.task] == [UUID(int=1)]


async def test_what_the_sweep_tells_in_sql_is_what_python_tells(door: Door, agent: AgentActor) -> None:
    for _ in range(2):
        await door.db.pool.execute(
            "select deliver_to_agent($1, gen_random_uuid(), $2, 'approval.archived', null, 'one', $3)",
            door.club_id,
            agent.agent_id,
            '{"archiveVersion": 1}',
        )
    await tell(door, agent)
    (one,) = await handed(door, agent)
    assert (one.kind, dict(one.data), one.source) == ("approval.archived", {"archiveVersion": 1}, None)
