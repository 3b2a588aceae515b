"""The rules of time, of what ends by itself and of what follows a change."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from machine_choices import STEPS_OF_CLOCK, TICK
from machine_picks import Example, chosen
from machine_things import GRACE
from machine_world import OWNERS

PICK = st.integers(0, 11)


class Turns(Example):
    """What happens without anybody's doing, a rule each."""

    @rule(pick=PICK, before=st.sampled_from((0, 0, 1, -1)), is_heard=st.booleans())
    def clock_to_a_boundary(self, pick: int, before: int, is_heard: bool) -> None:
        model = self.play.model
        moments = {event.starts_at for event in model.events if event.starts_at}
        for op in model.ops.values():
            if op.completed_at is None:
                moments |= {
                    op.due,
                    op.due + GRACE,
                    op.due + GRACE + TICK,
                    op.ready or op.due,
                    op.expires or op.due,
                }
        leases = [lease for one in self.play.collectors for lease in one.leases]
        moments |= {lease.expires_at for lease in leases}
        ahead = sorted(moment for at in moments if (moment := at - before * TICK) > model.now)
        if ahead:
            self.run(self._time_passes(ahead[min(pick, len(ahead) - 1)], is_heard))

    @rule(step=st.sampled_from(STEPS_OF_CLOCK), is_heard=st.booleans())
    def clock_step(self, step: timedelta, is_heard: bool) -> None:
        self.run(self._time_passes(self.play.model.now + step, is_heard))

    async def _time_passes(self, moment: datetime, is_heard: bool) -> None:
        """``is_heard``: the owners come to what is due by then."""
        await self.play.set_clock(moment)
        for owner in OWNERS if is_heard else ():
            if self.play.due(owner) and (found := await self.play.look(owner)) is not None:
                await self.play.check()
                await self.play.settle(found)

    @rule(owner=st.sampled_from(OWNERS), is_at_once=st.booleans())
    def owner_looks(self, owner: str, is_at_once: bool) -> None:
        found = self.run(self.play.look(owner))
        if found is not None and is_at_once:
            self.run(self.play.settle(found))
        elif found is not None:
            self.found.append(found)

    @precondition(lambda self: bool(self.found))
    @rule(pick=PICK)
    def owner_settles(self, pick: int) -> None:
        """What an owner saw a while ago, or another process saw too."""
        self.run(self.play.settle(chosen(self.found, pick)))

    @precondition(Example.has_handles)
    @rule(pick=PICK, is_same=st.booleans())
    def recover_by_hand(self, pick: int, is_same: bool) -> None:
        handle = self.handle(pick)
        expires_at = handle.op.expires or self.play.model.now
        self.run(self.play.recover_by_hand(handle, expires_at if is_same else expires_at - TICK))

    @precondition(lambda self: bool(self.play.model.notes))
    @rule(pages=st.integers(1, 5))
    def fan_out(self, pages: int) -> None:
        for _ in range(pages):
            self.run(self.play.fan_out())

    @precondition(lambda self: bool(self.play.model.ended))
    @rule(pages=st.integers(1, 3))
    def clean_up(self, pages: int) -> None:
        for _ in range(pages):
            self.run(self.play.clean_up())

    # What may come at once after what somebody did.

    def follow_up(self, is_followed: bool) -> None:
        """Perhaps the fan-out is quick."""
        while is_followed and self.play.model.notes:
            self.run(self.play.fan_out())

    def tidy_up(self, is_prompt: bool) -> None:
        """Perhaps the clean-up is quick."""
        while is_prompt and self.play.model.ended:
            self.run(self.play.clean_up())
