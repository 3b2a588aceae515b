"""Looks spread over the minute, so that many connections never beat on the same second of it."""

from __future__ import annotations

import random
from collections.abc import Iterator

GOLDEN = (5**0.5 - 1) / 2
"""Steps of this part of a circle fall into its largest gaps, wherever they began and however many there are."""


def phases(start: float) -> Iterator[float]:
    """Parts of a minute from 0 to 1, each far from those before it, endlessly. ``start``: where the first lies."""
    phase = start % 1.0
    while True:
        yield phase
        phase = (phase + GOLDEN) % 1.0


class Spreading:
    """One a process: the phase of its next look, whoever asks."""

    def __init__(self) -> None:
        # Two processes begin apart.
        self._phases = phases(random.random())  # noqa: S311 - spreads looks, guards nothing

    def next(self) -> float:
        return next(self._phases)


SPREADING = Spreading()
