"""Wait for a state, with a deadline: what tests do instead of sleeping."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

WITHIN = 20.0
"""Seconds after which a state that was waited for counts as missing."""

_POLL = 0.01


async def eventually(predicate: Callable[[], Any], *, within: float = WITHIN, message: str = "") -> Any:
    """The first true value of ``predicate``, plain or async. ``AssertionError`` after ``within`` seconds."""
    deadline = asyncio.get_running_loop().time() + within
    while True:
        value = predicate()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(message or f"not within {within} seconds; last value: {value!r}")
        await asyncio.sleep(_POLL)
