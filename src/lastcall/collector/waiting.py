"""Waits that end early: for a stop, for something given back, for the clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

BACKOFF_FIRST = 5.0
"""Seconds of the first wait after a failure."""

BACKOFF_MOST = 15 * 60.0
"""Seconds of the longest wait after failures."""

SERVER_BACKOFF = (1.0, 60.0)
"""Seconds of the first and the longest wait before a server that did not answer is asked again: a server that
restarts is back within seconds, and the two minutes of what it authorized are running."""


async def first_of(*waits: Coroutine[Any, Any, Any]) -> None:
    """Return when one of ``waits`` is over; the others are cancelled and have ended by then."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def jittered(seconds: float) -> float:
    """``seconds`` give or take a fifth, so that many collectors never ask in step."""
    return seconds * random.uniform(0.8, 1.2)  # noqa: S311 - spreading load, not a secret


def backoff(failures: int, first: float = BACKOFF_FIRST, most: float = BACKOFF_MOST) -> float:
    """Seconds to wait after so many failures in a row (at least one): ``first``, doubled up to ``most``."""
    return jittered(min(first * 2.0 ** min(failures - 1, 8), most))
