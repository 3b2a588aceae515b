"""Where the next page of a list begins: the last row of the page before, as text for a client to send back."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypeVar
from uuid import UUID

from litestar.params import QueryParameter

from lastcall.db.cursor import Cursor
from lastcall.errors import Invalid

Search = Annotated[
    str, QueryParameter(max_length=100, description="Found anywhere in the name, in any case.")
]
Row = TypeVar("Row")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEP = timedelta(microseconds=1)
_TIME_BYTES, _ID_BYTES, _CHECK_BYTES = 8, 16, 4
_LENGTH = 38  # characters of the base64 of those bytes, without padding

PAGE_MOST = 100
"""Rows of one page at most."""

Limit = Annotated[int, QueryParameter(ge=1, le=PAGE_MOST, description="How many to answer with at most.")]
After = Annotated[
    str | None,
    QueryParameter(
        name="cursor",
        max_length=_LENGTH,
        description="`next` of the page before; without it the first page is answered.",
    ),
]


def encode_cursor(listing: str, cursor: Cursor) -> str:
    """``cursor`` as text, for ``listing``.

    It is no secret and grants nothing; the check sum only tells a damaged one, or one of another list, from
    a right one, so that a slip does not silently skip rows.
    """
    moment = (cursor.time - _EPOCH) // _STEP
    body = moment.to_bytes(_TIME_BYTES, "big", signed=True) + cursor.id.bytes
    return base64.urlsafe_b64encode(body + _check(listing, body)).decode().rstrip("=")


def decode_cursor(listing: str, text: str | None) -> Cursor | None:
    """The row that the text names. Raises ``Invalid`` for what ``encode_cursor`` did not make for this list."""
    if text is None:
        return None
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"==")
        body, check = raw[:-_CHECK_BYTES], raw[-_CHECK_BYTES:]
        if len(raw) != _TIME_BYTES + _ID_BYTES + _CHECK_BYTES or check != _check(listing, body):
            raise ValueError
        time = _EPOCH + int.from_bytes(body[:_TIME_BYTES], "big", signed=True) * _STEP
        cursor = Cursor(time, UUID(bytes=body[_TIME_BYTES:]))
        if encode_cursor(listing, cursor) != text:
            raise ValueError
    except (ValueError, OverflowError, binascii.Error) as error:
        raise Invalid(
            "cursor_invalid",
            "This is not a cursor of this list.",
            advice="Send `next` of the page before unchanged, or none for the first page.",
            field="cursor",
        ) from error
    return cursor


def cut(
    rows: Sequence[Row], limit: int, listing: str, cursor: Callable[[Row], Cursor]
) -> tuple[Sequence[Row], str | None]:
    """The page, of rows read with one more than its ``limit``, and the cursor of the next one."""
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], encode_cursor(listing, cursor(rows[limit - 1]))


def _check(listing: str, body: bytes) -> bytes:
    return zlib.crc32(listing.encode() + b"\0" + body).to_bytes(_CHECK_BYTES, "big")
