"""An example of the stateful tests, and how its rules pick from what is there by numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine
from machine_choices import FIXED, HOUR, OFFSETS, TICK
from machine_ends import Asked
from machine_stage import Collector, Handle, Stage
from machine_things import Club, Event, Lease, Op
from machine_world import Found, Play

from lastcall.people.actor import Actor

Answer = TypeVar("Answer")


def chosen(things: Sequence[Answer], pick: int) -> Answer:
    return things[pick % len(things)]


class Example(RuleBasedStateMachine):
    """Rules take numbers and pick from what is there by them, so that an example shrinks to a few small numbers."""

    stage: Stage
    runner: asyncio.Runner

    def __init__(self) -> None:
        super().__init__()
        self.play = Play(self.stage)
        self.found: list[Found] = []

    def run(self, step: Coroutine[Any, Any, Answer]) -> Answer:
        return self.runner.run(self._checked(step))

    async def _checked(self, step: Coroutine[Any, Any, Answer]) -> Answer:
        answer = await step
        await self.play.check()
        return answer

    def teardown(self) -> None:
        # Also of an example that failed, so that the next one starts without its rows.
        self.runner.run(self.play.remove())

    # What the rules pick from.

    def club(self, pick: int) -> Club:
        """More happens in the first."""
        return self.play.model.clubs[pick % 4 == 3]

    def actor(self, pick: int) -> Actor:
        return self.play.stage.owner if pick % 3 == 2 else self.play.stage.moderator

    def op(self, pick: int) -> Op:
        """The newest for the smallest number."""
        return chosen(list(self.play.model.ops.values())[::-1], pick)

    def awaited(self, pick: int) -> Op | None:
        """Now and then a creation that something waits for."""
        creations = [op.creation for op in self.play.model.ops.values() if op.creation and op.is_unsent]
        return chosen(creations, pick) if creations and pick % 3 == 2 else None

    def handle(self, pick: int) -> Handle:
        return chosen(self.play.handles[::-1], pick)

    def event(self, pick: int) -> Event:
        return chosen(self.play.model.events, pick)

    def collector(self, pick: int) -> Collector:
        """The first does more."""
        return self.play.collectors[pick % 4 == 3]

    def asked(self, pick: int, event: Event | None) -> Asked:
        now = self.play.model.now
        if event is not None and event.starts_at is not None and pick % 4:
            offset = chosen(OFFSETS, pick)
            return Asked(
                "event_relative", event.starts_at + offset - (TICK if pick == 11 else 0 * TICK), event, offset
            )
        if event is not None and event.starts_at is None and pick % 4 == 1:
            return Asked("event_relative", now + HOUR, event, timedelta(0))
        if pick % 2 == 0:
            return Asked("immediate", None, event)
        return Asked("fixed", now + chosen(FIXED, pick // 2), event)

    async def lease(self, collector: Collector, club: Club) -> Lease | None:
        """The newest that the collector remembers of the club's connection, or one that it takes now."""
        for lease in reversed(collector.leases):
            if lease.connection is club.connection and self.play.model.is_current(lease):
                return lease
        return None if club.connection is None else await self.play.take_lease(collector, club.connection)

    def has_ops(self) -> bool:
        return bool(self.play.model.ops)

    def has_handles(self) -> bool:
        return bool(self.play.handles)

    def has_requests(self) -> bool:
        return bool(self.play.requests)
