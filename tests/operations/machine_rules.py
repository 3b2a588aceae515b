"""The rules by which examples of the stateful tests are drawn: everything that can happen to an operation."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    precondition,
    rule,
)
from machine_choices import (
    BETWEEN,
    DELAYS,
    FIXED,
    HOUR,
    MINUTE,
    MOVES,
    NO_PAUSE,
    PAUSES,
    ROLES,
    SECOND,
    SINGLES,
    SOME_FEATURES,
    STARTS,
)
from machine_ends import Asked
from machine_picks import Example, chosen
from machine_stage import FEATURES, Collector
from machine_things import ALL_PERMISSIONS, Club, Event, Op, Seen
from machine_turns import PICK, Turns
from machine_world import TIMELESS

from lastcall.events.times import Timed
from lastcall.protocol.outcomes import Outcome

Slow = tuple[timedelta, timedelta]
WORK: dict[str, Any] = {
    "by": PICK,
    "pick": PICK,
    "depth": st.integers(0, 3),
    "slow": st.tuples(st.sampled_from(PAUSES), st.sampled_from(PAUSES)),
    "between": st.sampled_from(BETWEEN),
    "is_awaited": st.booleans(),
}


class Machine(Turns):
    """What people and collectors do, a rule each."""

    # Staff.

    @initialize(pick=PICK, when=PICK, depth=st.integers(0, 3))
    def open_clubs(self, pick: int, when: int, depth: int) -> None:
        self.runner.run(self.play.begin(self.play.model.now + chosen(STARTS, when)))
        self.run(self._open_clubs(pick, when))
        if depth < 3:
            self.run(self._work(self.collector(0), self.club(0), depth, NO_PAUSE, ""))

    async def _open_clubs(self, pick: int, when: int) -> None:
        """Something to happen to: work, work that follows an event, and perhaps an instance that somebody waits for."""
        play, event = self.play, self.event(0)
        club = event.club
        if pick % 3:
            await self._create_and_invite(when - when % 2, event if pick % 2 else None)
        soon = play.model.now + SECOND
        assert event.starts_at is not None
        by_event = Asked("event_relative", soon, event, soon - event.starts_at)
        await play.enqueue(club, self.actor(pick), "invite_member", by_event, 1 + pick % 3)
        await play.enqueue(club, self.actor(when), "assign_role", self.asked(when, event), 1 + when % 2)
        await play.set_clock(soon)

    async def _create_and_invite(self, when: int, event: Event | None) -> None:
        club = event.club if event else self.club(0)
        made = await self.play.enqueue(
            club, self.play.stage.owner, "create_instance", self.asked(when, event)
        )
        for creation in made:
            asked = Asked("fixed", max(creation.due, self.play.model.now) + (when % 3) * MINUTE)
            await self.play.enqueue(
                club,
                self.actor(when),
                "invite_to_created_instance",
                asked,
                1 + when % 3,
                creation=creation,
                revision=1,
            )

    @rule(pick=PICK, by=PICK, when=PICK, is_linked=st.booleans())
    def enqueue_one(self, pick: int, by: int, when: int, is_linked: bool) -> None:
        event = self.event(by) if is_linked else None
        club, kind = event.club if event else self.club(by), chosen(SINGLES, pick)
        self.run(self.play.enqueue(club, self.actor(by), kind, self.asked(when, event), at_owner=pick > 10))

    @rule(pick=PICK, by=PICK, when=PICK, count=st.integers(2, 4))
    def enqueue_batch(self, pick: int, by: int, when: int, count: int) -> None:
        event = self.event(by) if pick > 5 else None
        club = event.club if event else self.club(by)
        kind = chosen(("assign_role", "invite_member"), pick)
        self.run(self.play.enqueue(club, self.actor(by), kind, self.asked(when, event), count))

    @rule(when=PICK, by=PICK)
    def create_and_invite(self, when: int, by: int) -> None:
        self.run(self._create_and_invite(when, self.event(by) if by % 2 else None))

    @precondition(Example.has_ops)
    @rule(pick=PICK, when=PICK, by=PICK)
    def invite_to_what_is_there(self, pick: int, when: int, by: int) -> None:
        creation = self.op(pick)
        asked = self.asked(when, self.event(by) if by % 2 else None)
        club = creation.connection.club
        if asked.event is not None and asked.event.club is not club:
            asked = Asked("fixed", creation.due)
        kind, revision = "invite_to_created_instance", creation.revision - (by > 9)
        self.run(
            self.play.enqueue(club, self.actor(by), kind, asked, creation=creation, revision=max(revision, 1))
        )

    @precondition(Example.has_requests)
    @rule(pick=PICK, is_same=st.booleans())
    def ask_again(self, pick: int, is_same: bool) -> None:
        self.run(self.play.ask_again(chosen(self.play.requests, pick), is_same=is_same))

    @precondition(Example.has_ops)
    @rule(pick=PICK, by=PICK, when=PICK, is_old=st.booleans(), is_followed=st.booleans())
    def edit(self, pick: int, by: int, when: int, is_old: bool, is_followed: bool) -> None:
        op = self.awaited(pick) or self.op(pick)
        event = op.event if when % 2 else None
        seen = op.revision - is_old if by > 9 else op.revision
        actor = self.actor(by) if by < 4 else self.play.stage.owner
        asked = self.asked(when, event) if when < 8 else Asked("fixed", op.due + chosen(FIXED, pick), event)
        self.run(self.play.edit(op, actor, seen, asked))
        self.follow_up(is_followed)

    @precondition(Example.has_requests)
    @rule(pick=PICK, by=PICK, is_all=st.booleans())
    def cancel(self, pick: int, by: int, is_all: bool) -> None:
        if is_all:
            self.run(self.play.cancel_request(chosen(self.play.requests[::-1], pick), self.actor(by)))
        else:
            op = self.op(pick)
            self.run(self.play.cancel(op, self.actor(by), op.revision - (by > 8)))

    # Collectors.

    @rule(**WORK)
    def work(self, by: int, pick: int, depth: int, slow: Slow, between: str, is_awaited: bool) -> None:
        club = self.club(pick)
        if is_awaited:
            self.run(self._wait_for_work(club))
        self.run(self._work(self.collector(by), club, depth, slow, between))

    @rule(**WORK)
    def work_on(self, **how: Any) -> None:
        """A second rule, because it is what most of an evening consists of."""
        self.work(**how)

    @rule(**WORK)
    def work_still(self, **how: Any) -> None:
        """And a third."""
        self.work(**how)

    async def _wait_for_work(self, club: Club) -> None:
        model = self.play.model
        ready = [
            op.ready
            for op in model.ops.values()
            if op.state == "pending" and op.connection is club.connection
        ]
        ahead = [moment for moment in ready if moment is not None and moment > model.now]
        if ahead:
            await self.play.set_clock(min(ahead))

    async def _work(self, collector: Collector, club: Club, depth: int, slow: Slow, between: str) -> None:
        """As far as this collector comes: a claim, its authorization, its outcome; it may be slow at each, and
        something may happen meanwhile."""
        lease = await self.lease(collector, club)
        handle = None if lease is None else await self.play.claim(collector, lease)
        if handle is None:
            return
        now = self.play.model.now
        await self._pause(slow[0])
        await self._meanwhile(between, handle.op)
        await self.play.check()
        if depth == 3:
            await self.play.defer(handle, slow[1])
        elif depth > 0 and await self.play.authorize(handle, Seen(now), now) and depth > 1:
            await self._pause(slow[1])
            await self.play.complete(handle, Outcome.SUCCEEDED)

    async def _meanwhile(self, what: str, op: Op) -> None:
        """Somebody does something about an operation that a collector has in hand."""
        play, event, club = self.play, op.event, op.connection.club
        if event is not None and event.starts_at is not None and what in MOVES:
            await play.retime(event, Timed(event.starts_at + MOVES[what]))
        elif event is not None and what in ("stop", "stop and back"):
            await play.cancel_event(event)
            if what == "stop and back":
                await play.reinstate_event(event)
        elif event is not None and what == "forget the time":
            await play.retime(event, TIMELESS[0])
        elif what == "cancel":
            await play.cancel(op, play.stage.owner, op.revision)
        elif what == "role":
            await play.set_role(club, frozenset(), may_assign=True)
        elif what == "hello":
            await play.hello(play.collectors[0], frozenset(), is_intact=True)

    async def _pause(self, pause: timedelta) -> None:
        await self.play.check()
        if pause:
            await self.play.set_clock(self.play.model.now + pause)

    @precondition(lambda self: any(collector.leases for collector in self.play.collectors))
    @rule(by=PICK, pick=PICK)
    def claim_by_any_lease(self, by: int, pick: int) -> None:
        leases = [(one, lease) for one in self.play.collectors for lease in one.leases]
        collector, lease = chosen(leases[::-1], pick)
        self.run(self.play.claim(self.collector(by) if by > 9 else collector, lease))

    @precondition(Example.has_handles)
    @rule(pick=PICK, flaw=PICK, age=st.sampled_from((0, 0, 0, 60_000, 60_001, 30_000)), is_friend=PICK)
    def authorize(self, pick: int, flaw: int, age: int, is_friend: int) -> None:
        at = self.play.model.now - timedelta(milliseconds=age)
        seen = Seen(at, is_member=flaw != 9, is_granted=flaw != 10, has_role=flaw != 11)
        self.run(self.play.authorize(self.handle(pick), seen, None if is_friend == 11 else at))

    @precondition(Example.has_handles)
    @rule(pick=PICK, outcome=st.sampled_from(Outcome), is_place=st.booleans())
    def complete(self, pick: int, outcome: Outcome, is_place: bool) -> None:
        self.run(self.play.complete(self.handle(pick), outcome, is_place=is_place))

    @precondition(Example.has_handles)
    @rule(pick=PICK, delay=st.sampled_from(DELAYS), is_for_good=st.booleans())
    def fail_before_it_is_sent(self, pick: int, delay: timedelta | None, is_for_good: bool) -> None:
        handle = self.handle(pick)
        self.run(self.play.reject(handle) if is_for_good else self.play.defer(handle, delay))

    @precondition(Example.has_handles)
    @rule(pick=PICK, delays=st.lists(st.sampled_from(DELAYS[:4]), min_size=1, max_size=3))
    def fail_again_and_again(self, pick: int, delays: list[timedelta | None]) -> None:
        for delay in delays:
            self.run(self.play.defer(self.handle(pick), delay))
            self.run(self.play.set_clock(self.play.model.now + MINUTE))
            self.run(self._work(self.collector(0), self.club(0), 0, NO_PAUSE, ""))

    @rule(by=PICK, pick=PICK, what=st.sampled_from(("take", "take", "renew", "release")))
    def lease_changes(self, by: int, pick: int, what: str) -> None:
        collector, club = self.collector(by), self.club(pick)
        if what == "take":
            if club.connection is not None:
                self.run(self.play.take_lease(collector, club.connection))
        elif collector.leases:
            lease = chosen(collector.leases[::-1], pick)
            change = self.play.renew_lease if what == "renew" else self.play.release_lease
            self.run(change(collector, lease))

    @rule(by=PICK, journal=PICK, is_intact=st.booleans())
    def hello(self, by: int, journal: int, is_intact: bool) -> None:
        nonces = [handle.claim.nonce for handle in self.play.handles]
        known = frozenset(nonces[: journal % (len(nonces) + 1)])
        strange = self.op(by) if journal == 11 and self.has_ops() else None
        self.run(self.play.hello(self.collector(by), known, is_intact=is_intact, strange=strange))

    # Events.

    @rule(pick=PICK, when=PICK, is_followed=st.booleans())
    def move_event(self, pick: int, when: int, is_followed: bool) -> None:
        event = self.event(pick)
        start = event.starts_at if event.starts_at is not None and when % 2 else self.play.model.now
        by = chosen((HOUR, -HOUR, 10 * MINUTE, -10 * MINUTE, 30 * MINUTE), when)
        self.run(self.play.retime(event, chosen(TIMELESS, pick) if when > 8 else Timed(start + by)))
        self.follow_up(is_followed)

    @rule(pick=PICK, what=PICK, is_followed=st.booleans())
    def stop_event(self, pick: int, what: int, is_followed: bool) -> None:
        event = self.event(pick)
        if what > 10:
            self.run(self.play.remove_event(event))
        elif what > 8:
            starts_at = None if pick > 9 else self.play.model.now + chosen(STARTS, pick)
            self.run(self.play.new_event(self.club(pick), starts_at))
        elif event.is_cancelled:
            self.run(self.play.reinstate_event(event))
        else:
            self.run(self.play.cancel_event(event))
            if what % 2:
                self.run(self.play.reinstate_event(event))
        self.follow_up(is_followed)

    # Authority.

    @rule(pick=PICK, what=st.sampled_from(("role", "features", "switch", "connection")), how=PICK)
    def change_authority(self, pick: int, what: str, how: int) -> None:
        club = self.club(pick)
        if what == "role":
            permissions = chosen(ROLES, how) if club.permissions == ALL_PERMISSIONS else ALL_PERMISSIONS
            self.run(self.play.set_role(club, permissions, may_assign=how < 6))
        elif what == "switch":
            self.run(self._throw_switch(club, how))
        elif club.connection is None:
            self.run(self.play.connect(club))
        elif what == "features":
            self.run(
                self.play.set_features(
                    club, chosen(SOME_FEATURES, how) if club.connection.features == FEATURES else FEATURES
                )
            )
        else:
            self.run(self.play.disconnect(club))
            if how < 6:
                self.run(self.play.connect(club))
            self.tidy_up(how % 2 == 0)

    async def _throw_switch(self, club: Club, how: int) -> None:
        """One that stops something, or the way back from what stops everything here."""
        play, model, connection = self.play, self.play.model, club.connection
        if model.is_fleet_off:
            await play.switch_fleet(is_on=False)
        elif model.is_account_off:
            await play.switch_account(is_on=False)
        elif connection is not None and connection.is_frozen:
            await play.thaw(club)
        elif connection is not None and how % 3 == 0:
            await play.switch_connection(club, is_on=not connection.is_switched_off)
        elif how % 3 == 1:
            await play.switch_account(is_on=True)
        else:
            await play.switch_fleet(is_on=True)
