"""Where a page of a list ended, so that the next one begins there: as a value, and as the one text that addresses of
pages and the API hold.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from uuid import UUID

from lastcall.errors import Invalid

Row = TypeVar("Row")

CURSOR_LENGTH = 38
"""Characters of a cursor's text: the base64 of the bytes below, without padding."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TIME_BYTES, _ID_BYTES, _CHECK_BYTES = 8, 16, 4


@dataclass(frozen=True)
class Cursor:
    """The last row of a page, at the database's full precision. Which time of the row it is, the list says."""

    time: datetime
    id: UUID


FIRST = Cursor(datetime.fromisoformat("0001-01-02T00:00:00+00:00"), UUID(int=0))
"""Before every row: where a list that ascends begins."""
LAST = Cursor(datetime.fromisoformat("9999-12-30T00:00:00+00:00"), UUID(int=2**128 - 1))
"""After every row: where a list that descends begins."""


def write_cursor(listing: str, cursor: Cursor) -> str:
    """``cursor`` as text, for ``listing``: readers pass it on and take nothing from it.

    It is no secret and grants nothing; the check sum only tells a damaged one, or one of another list, from
    a right one, so that a slip does not silently skip rows.
    """
    moment = (cursor.time - _EPOCH) // _MICROSECOND
    body = moment.to_bytes(_TIME_BYTES, "big", signed=True) + cursor.id.bytes
    return base64.urlsafe_b64encode(body + _check(listing, body)).decode().rstrip("=")


def read_cursor(listing: str, text: str | None, *, field: str = "after") -> Cursor | None:
    """The row that the text names; none for no text. Raises ``Invalid``, naming ``field``, for what
    ``write_cursor`` did not make for this list.
    """
    if text is None:
        return None
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"==")
        body, check = raw[:-_CHECK_BYTES], raw[-_CHECK_BYTES:]
        if len(raw) != _TIME_BYTES + _ID_BYTES + _CHECK_BYTES or check != _check(listing, body):
            raise ValueError
        time = _EPOCH + int.from_bytes(body[:_TIME_BYTES], "big", signed=True) * _MICROSECOND
        cursor = Cursor(time, UUID(bytes=body[_TIME_BYTES:]))
        if write_cursor(listing, cursor) != text:
            raise ValueError
    except (ValueError, OverflowError, binascii.Error) as error:
        raise Invalid(
            "cursor_invalid",
            "This names no place in this list.",
            advice="Take what the page before gave unchanged, or start at the first page.",
            field=field,
        ) from error
    return cursor


def cut(
    rows: Sequence[Row], limit: int, listing: str, cursor: Callable[[Row], Cursor]
) -> tuple[Sequence[Row], str | None]:
    """The page, of rows read with one more than its ``limit``, and the text of the next one's cursor."""
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], write_cursor(listing, cursor(rows[limit - 1]))


def _check(listing: str, body: bytes) -> bytes:
    return zlib.crc32(listing.encode() + b"\0" + body).to_bytes(_CHECK_BYTES, "big")
