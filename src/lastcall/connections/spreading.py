"""Looks spread over the minute, so that many connections never beat on the same second of it."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator

GOLDEN = (5**0.5 - 1) / 2
"""Steps of this part of a circle fall into its largest gaps, wherever they began and however many there are."""

FIRST, LAST = 10 / 60, 52 / 60
"""Looks lie between these parts of a minute. Around its turn the allowance grants nothing for up to 15 seconds
(``sql/allowance.sql``), and a look that meets them would be left out until the next one."""


def phases(start: float) -> Iterator[float]:
    """Parts of a minute, each far from those before it, endlessly. ``start`` (0 to 1): how far between ``FIRST`` and
    ``LAST`` the first lies."""
    phase = start % 1.0
    while True:
        yield FIRST + (LAST - FIRST) * phase
        phase = (phase + GOLDEN) % 1.0


class Spreading:
    """One a process: the phase in the minute of whatever is looked at next, whoever asks."""

    def __init__(self, start: float) -> None:
        self._phases = phases(start)
        self._returned: deque[float] = deque()

    def take(self) -> float:
        """A phase for one look."""
        return self._returned.popleft() if self._returned else next(self._phases)

    def give_back(self, phase: float) -> None:
        """The phase was not needed: left out, it would leave a gap."""
        self._returned.append(phase)


# Two processes begin apart.
SPREADING = Spreading(random.random())  # noqa: S311 - spreads looks, guards nothing
