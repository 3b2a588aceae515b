"""What this process remembers of each connection between two passes, and when it forgets it again."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from lastcall.clock import Clock
from lastcall.collector.waiting import BACKOFF_MOST, backoff
from lastcall.collector.windows import Window
from lastcall.protocol.constants import LOCAL_WINDOW


@dataclass
class Known:
    """One connection. ``not_before``: the boot time until which it is left alone after ``failures`` in a row."""

    window: Window
    failures: int = 0
    not_before: float = 0.0

    def failed(self, now: float, not_before: float = 0.0) -> None:
        """A pass failed: the next comes after a growing wait, and not before VRChat wants it (COL-11)."""
        self.failures += 1
        self.not_before = max(now + backoff(self.failures), not_before)

    def went_well(self) -> None:
        self.failures, self.not_before = 0, 0.0


class Memory:
    """The connections of one account. What can change nothing any more is dropped, so that a process that runs
    for a year holds no more than the connections that it still serves."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, Known] = {}
        self._looked_at = clock.boot()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, connection_id: str) -> Known:
        """That connection's; begun when nothing is known of it."""
        known = self._known.get(connection_id)
        if known is None:
            known = self._known[connection_id] = Known(Window(self._clock, 0))
        return known

    def forget_idle(self, in_use: Container[str]) -> None:
        """Drop every connection but those ``in_use`` whose requests are out of the window and whose failures are
        long past. It looks once in a window."""
        now = self._clock.boot()
        if now - self._looked_at < LOCAL_WINDOW.total_seconds():
            return
        self._looked_at = now
        idle = [
            connection_id
            for connection_id, known in self._known.items()
            if connection_id not in in_use
            and known.window.is_idle()
            and now - known.not_before > BACKOFF_MOST
        ]
        for connection_id in idle:
            del self._known[connection_id]
