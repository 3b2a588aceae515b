"""The collector's own request windows: at most so many real requests in any sixty seconds.

The shared allowance is reserved on the server; these charge each request as it is sent (BUD-03), so that
neither a burst across two of the server's windows nor a wrong answer from it lets this process ask too much.
They run on the boot clock: a jump of the wall clock frees nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import timedelta

from lastcall.clock import Clock
from lastcall.collector.waiting import first_of
from lastcall.protocol.constants import LOCAL_WINDOW


class Window:
    """Requests of one account or one connection. ``limit`` may change at any time; it is obeyed from then on.

    ``total`` counts every request since the process started.
    """

    def __init__(self, clock: Clock, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self._clock = clock
        self._sent: deque[float] = deque()
        self._held = 0

    def has_room(self, amount: int) -> bool:
        """Whether ``amount`` more requests may go out now."""
        self._forget()
        return len(self._sent) + self._held + amount <= self.limit

    def until_change(self) -> float | None:
        """Seconds until the oldest counted request leaves the window; ``None`` when only held slots count."""
        self._forget()
        return None if not self._sent else self._sent[0] + LOCAL_WINDOW.total_seconds() - self._clock.boot()

    def is_idle(self) -> bool:
        """Whether nothing is held in it and nothing counts any more."""
        self._forget()
        return not self._sent and not self._held

    def hold(self, amount: int) -> None:
        self._held += amount

    def give_back(self, amount: int) -> None:
        self._held -= amount

    def charge(self) -> None:
        """One held slot becomes one real request, now."""
        self._held -= 1
        self.total += 1
        self._sent.append(self._clock.boot())

    def _forget(self) -> None:
        # A request leaves a little late rather than a little early: "in any sixty seconds" includes both
        # ends.
        before = self._clock.boot() - LOCAL_WINDOW.total_seconds()
        while self._sent and self._sent[0] < before:
            self._sent.popleft()


class Slots:
    """Slots held for one operation in several windows at once; each is charged as its request is sent."""

    def __init__(self, windows: tuple[Window, ...], amount: int, on_release: Callable[[], None]) -> None:
        self._windows = windows
        self._on_release = on_release
        self.left = amount
        for window in windows:
            window.hold(amount)

    def charge(self) -> None:
        """One request is about to be sent. More than was held is a fault of the caller."""
        if self.left < 1:
            raise RuntimeError("no slot is held for this request")
        self.left -= 1
        for window in self._windows:
            window.charge()

    def release(self) -> None:
        """Give back what was not used."""
        unused, self.left = self.left, 0
        for window in self._windows:
            window.give_back(unused)
        self._on_release()


class Windows:
    """Holds slots for one account: in its own window, and in that of the connection that is worked on."""

    def __init__(self, clock: Clock, requests_per_minute: int, stop: asyncio.Event) -> None:
        self.account = Window(clock, requests_per_minute)
        self._stop = stop
        self._clock = clock
        self._given_back = asyncio.Event()

    async def hold(self, amount: int, *windows: Window, within: float) -> Slots | None:
        """Hold ``amount`` slots in all ``windows``; ``None`` when there is no room within so many seconds,
        or the process stops first.

        Nothing is held while it waits, so two operations never wait for each other's half.
        """
        until = self._clock.boot() + within
        while True:
            given_back = self._given_back
            if all(window.has_room(amount) for window in windows):
                return Slots(windows, amount, self._wake)
            left = until - self._clock.boot()
            if left <= 0 or self._stop.is_set() or any(window.limit < amount for window in windows):
                return None
            changes = [change for window in windows if (change := window.until_change()) is not None]
            delay = max(min([left, *changes]), 0.001)
            await first_of(given_back.wait(), self._stop.wait(), self._clock.sleep(timedelta(seconds=delay)))

    def _wake(self) -> None:
        self._given_back.set()
        self._given_back = asyncio.Event()
