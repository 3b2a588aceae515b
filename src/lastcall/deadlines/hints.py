"""Deadlines that came with signals and that no read has yet been able to confirm."""

from __future__ import annotations

from lastcall.deadlines.signals import IN_DOUBT
from lastcall.deadlines.times import SECOND, span

WINDOW = span(IN_DOUBT)
CROWD = 256
"""Entries from which on old ones are merged, so that a year of signals without a read takes no memory."""


class Hints:
    """Young deadlines by the second they fall into; all times are whole microseconds.

    A read that began less than ``IN_DOUBT`` after a signal proves nothing about it, so these outlive the
    read. Two deadlines in one second share an entry, which keeps the earlier and the later time of arrival:
    when the earlier fires, the later was either committed before its signal or signalled long enough ago to
    be found.
    """

    __slots__ = ("_crowd", "_entries", "earliest")

    def __init__(self) -> None:
        self._entries: dict[int, tuple[int, int]] = {}
        self._crowd = CROWD
        self.earliest: int | None = None

    def add(self, deadline: int, at: int) -> int | None:
        """Take in a deadline that arrived at boot time ``at``.

        Returns the earliest of the entries that were dropped because they are old enough to be merged into
        the saved deadline, None when there were none.
        """
        slot = deadline // SECOND
        known = self._entries.get(slot)
        self._entries[slot] = (deadline if known is None else min(deadline, known[0]), at)
        if self.earliest is None or deadline < self.earliest:
            self.earliest = deadline
        if len(self._entries) <= self._crowd:
            return None
        merged = self.settle(at)
        self._crowd = max(CROWD, 2 * len(self._entries))
        return merged

    def fire(self, now: int) -> None:
        """Drop what is due by the database time ``now``: a pass that begins now looks for it."""
        if self.earliest is not None and self.earliest <= now:
            self._keep({slot: entry for slot, entry in self._entries.items() if entry[0] > now})

    def settle(self, boot: int) -> int | None:
        """Drop what arrived so long before ``boot`` that a statement sent then sees its row; the earliest of
        it.
        """
        horizon = boot - WINDOW
        old = [deadline for deadline, at in self._entries.values() if at < horizon]
        if old:
            self._keep({slot: entry for slot, entry in self._entries.items() if entry[1] >= horizon})
        return min(old, default=None)

    def _keep(self, entries: dict[int, tuple[int, int]]) -> None:
        self._entries = entries
        self.earliest = min((deadline for deadline, _ in entries.values()), default=None)
