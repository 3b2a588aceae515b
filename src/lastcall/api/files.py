"""Files that are made while they are sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from litestar.response import Stream


async def file_of(
    pieces: AsyncIterator[bytes], *, media_type: str | None = None, headers: Mapping[str, str] | None = None
) -> Stream:
    """The pieces as they come. The first one is waited for, so that a refusal is an answer of its own and not
    a broken file. Without ``media_type`` and ``headers`` those of the route.
    """
    first = await anext(pieces, b"")

    async def all_of_them() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return Stream(all_of_them(), media_type=media_type, headers=dict(headers or {}))
