"""A call that waits ends when its caller is gone, whom nobody would tell."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from litestar import Request

Found = TypeVar("Found")


async def unless_departed(
    request: Request[Any, Any, Any], work: Coroutine[None, None, list[Found]]
) -> list[Found]:
    """The work's result; nothing as soon as the client is gone."""
    working = asyncio.ensure_future(work)
    departing = asyncio.ensure_future(_departure(request))
    try:
        await asyncio.wait((working, departing), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else []
    finally:
        departing.cancel()
        working.cancel()


async def _departure(request: Request[Any, Any, Any]) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
