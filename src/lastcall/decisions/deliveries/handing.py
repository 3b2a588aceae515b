"""How agents are handed what they are told, and say that they have it.

An agent asks; what waits is handed over, and again after a growing pause until the agent says that it has it, eight
times at most. An agent that asks and finds nothing may stay: while it does, nothing is asked of the database. A hint
wakes it, or the moment at which something is to be handed over again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from lastcall.access.agents.policy import require_agent
from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.db.bus import Hint
from lastcall.db.database import Database
from lastcall.deadlines.signals import Missed
from lastcall.decisions.deliveries.deliver import Source
from lastcall.decisions.deliveries.sending import ATTEMPTS_MOST, FIRST_PAUSE
from lastcall.decisions.deliveries.signals import DEAD, for_agent
from lastcall.errors import Invalid, Unavailable
from lastcall.people.actor import AgentActor

AT_ONCE = 50
"""Messages that one answer holds at most."""
WAIT_MOST = timedelta(minutes=5)
"""How long one call may wait: as long as a collector's."""
IN_DOUBT = timedelta(minutes=2)
UNCLEAR_AGAIN = timedelta(seconds=30)
"""After a COMMIT of unknown outcome its row may appear later: look again this often, for so long."""
NOT_TAKEN = "it was handed over eight times and never acknowledged"

# Locked rows are another call's of the same agent, which hands them over.
_HAND_OVER = """
    with due as (
        select d.club_id, d.id, d.attempts >= $4 as is_over
          from deliveries d
         where d.club_id = $1 and d.agent_id = $2 and d.channel = 'agent'
           and d.next_at is not null and d.next_at <= (select lastcall_now())
         order by d.next_at, d.id
         limit $3
           for no key update skip locked
    )
    update deliveries d
       set state = case when due.is_over then 'dead' else 'delivering' end,
           attempts = d.attempts + case when due.is_over then 0 else 1 end,
           next_at = case when not due.is_over then lastcall_now() + $5::interval * (1 << d.attempts) end,
           ended_at = case when due.is_over then lastcall_now() end,
           last_error = case when due.is_over then $6 else d.last_error end
      from due
     where d.club_id = due.club_id and d.id = due.id
    returning d.id, d.kind, d.approval_id, d.decision_id, d.data, d.created_at, d.attempts, d.state
"""
_AGAIN_IN = """
    select d.next_at - lastcall_now()
      from deliveries d
     where d.club_id = $1 and d.agent_id = $2 and d.channel = 'agent' and d.next_at is not null
     order by d.next_at, d.id
     limit 1
"""
# What was given up meanwhile did arrive, as it turns out.
_TAKEN = """
    update deliveries
       set state = 'delivered', next_at = null, ended_at = lastcall_now(), last_error = null
     where club_id = $1 and agent_id = $2 and id = any ($3::uuid[]) and state in ('delivering', 'dead')
    returning id
"""


@dataclass(frozen=True)
class Handed:
    """A message as its agent gets it. ``attempt`` counts how often it was handed over."""

    id: UUID
    kind: str
    source: Source | None
    data: Mapping[str, Any]
    told_at: datetime
    attempt: int


async def hand_over(db: Database, agent: AgentActor) -> tuple[list[Handed], timedelta | None]:
    """What waits for the agent, the oldest first; where nothing does, in how long something will be handed over again.

    Raises what ``require_agent`` raises; no grant is needed to hear what became of one's own matters.
    """
    async with db.transaction() as tx:
        await require_agent(tx, agent)
        rows = await tx.raw.fetch(
            _HAND_OVER, agent.club_id, agent.agent_id, AT_ONCE, ATTEMPTS_MOST, FIRST_PAUSE, NOT_TAKEN
        )
        if any(row["state"] == "dead" for row in rows):
            tx.publish(Hint(agent.club_id, DEAD))
        handed = sorted((_handed(row) for row in rows if row["state"] != "dead"), key=lambda one: one.told_at)
        again_in = None if handed else await tx.raw.fetchval(_AGAIN_IN, agent.club_id, agent.agent_id)
    return handed, again_in


async def acknowledge(db: Database, agent: AgentActor, ids: Collection[UUID]) -> int:
    """The agent has these messages: they are handed over no more. Saying so twice, or of what is not the agent's,
    changes nothing. Answers of how many it is news. Raises what ``require_agent`` raises, and ``Invalid`` for more
    than an answer holds.
    """
    if len(ids) > AT_ONCE:
        raise Invalid(
            "too_many_messages",
            f"At most {AT_ONCE} messages are acknowledged at once.",
            advice="Acknowledge what each answer held.",
            field="ids",
        )
    async with db.transaction() as tx:
        await require_agent(tx, agent)
        return len(await tx.raw.fetch(_TAKEN, agent.club_id, agent.agent_id, sorted(set(ids))))


def _handed(row: asyncpg.Record) -> Handed:
    source = None
    if row["approval_id"] is not None:
        source = Source("approval", row["approval_id"])
    elif row["decision_id"] is not None:
        source = Source("decision", row["decision_id"])
    return Handed(row["id"], row["kind"], source, row["data"], row["created_at"], row["attempts"])


@dataclass(eq=False)
class _Waiter:
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    is_replaced: bool = False
    doubt_until: float = 0.0


class AgentWaits:
    """Agents that wait to be told. One a process; subscribes to the bus of its database when it is made."""

    def __init__(self, db: Database, clock: Clock = SYSTEM_CLOCK) -> None:
        self._db = db
        self._clock = clock
        self._waiters: dict[Hint, _Waiter] = {}
        self._is_stopped = False
        db.bus.subscribe(Hint, self._on_hint)
        db.bus.subscribe(Missed, lambda _: self._wake_all())
        db.bus.subscribe_unclear(self._on_unclear)

    async def fetch(self, agent: AgentActor, life: timedelta) -> list[Handed]:
        """What waits for the agent, as soon as anything does; nothing after ``life``, at most ``WAIT_MOST``.

        A newer call of the same agent ends this one with nothing; so does ``stop()``. Raises ``Unavailable`` once
        stopped.
        """
        if self._is_stopped:
            raise Unavailable("stopping", "The server is stopping.", advice="Ask again in a moment.")
        key = for_agent(agent.club_id, agent.agent_id)
        waiter = self._enter(key)
        end = self._clock.boot() + min(life, WAIT_MOST).total_seconds()
        try:
            while not self._has_ended(waiter):
                waiter.woken.clear()
                handed, again_in = await hand_over(self._db, agent)
                left = end - self._clock.boot()
                if handed or left <= 0:
                    return handed
                await self._sleep(waiter, left, again_in)
            return []
        finally:
            if self._waiters.get(key) is waiter:
                del self._waiters[key]

    @property
    def waiting(self) -> int:
        """Agents that wait now."""
        return len(self._waiters)

    def stop(self) -> None:
        """End every wait at once, and refuse new ones."""
        self._is_stopped = True
        self._wake_all()

    def _has_ended(self, waiter: _Waiter) -> bool:
        return self._is_stopped or waiter.is_replaced

    def _enter(self, key: Hint) -> _Waiter:
        older = self._waiters.get(key)
        if older is not None:
            older.is_replaced = True
            older.woken.set()
        self._waiters[key] = waiter = _Waiter()
        return waiter

    async def _sleep(self, waiter: _Waiter, left: float, again_in: timedelta | None) -> None:
        moments = [left]
        if again_in is not None:
            moments.append(max(0.0, again_in.total_seconds()))
        if self._clock.boot() < waiter.doubt_until:
            moments.append(UNCLEAR_AGAIN.total_seconds())
        timer = asyncio.ensure_future(self._clock.sleep(timedelta(seconds=min(moments))))
        woken = asyncio.ensure_future(waiter.woken.wait())
        try:
            await asyncio.wait((timer, woken), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            woken.cancel()

    def _on_hint(self, hint: Hint) -> None:
        waiter = self._waiters.get(hint)
        if waiter is not None:
            waiter.woken.set()

    def _on_unclear(self, messages: Sequence[object], _xid: int) -> None:
        for message in messages:
            waiter = self._waiters.get(message) if isinstance(message, Hint) else None
            if waiter is not None:
                waiter.doubt_until = self._clock.boot() + IN_DOUBT.total_seconds()
                waiter.woken.set()

    def _wake_all(self) -> None:
        for waiter in self._waiters.values():
            waiter.woken.set()
