"""Where a page of a list ended, so that the next one begins there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from lastcall.db.ids import decode_id, encode_id
from lastcall.errors import Invalid

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Cursor:
    """The last row of a page, at the database's full precision. Which time of the row it is, the list says."""

    time: datetime
    id: UUID

    @property
    def text(self) -> str:
        """The form that addresses and the API hold: readers pass it on and take nothing from it."""
        return f"{(self.time - _EPOCH) // _MICROSECOND}.{encode_id(self.id)}"


FIRST = Cursor(datetime.fromisoformat("0001-01-02T00:00:00+00:00"), UUID(int=0))
"""Before every row: where a list that ascends begins."""
LAST = Cursor(datetime.fromisoformat("9999-12-30T00:00:00+00:00"), UUID(int=2**128 - 1))
"""After every row: where a list that descends begins."""


def read_cursor(text: str | None) -> Cursor | None:
    """A cursor from an address; none for an empty text. Raises ``Invalid`` for what is not whole."""
    if not text:
        return None
    try:
        microseconds, row_id = text.split(".")
        return Cursor(_EPOCH + int(microseconds) * _MICROSECOND, decode_id(row_id))
    except (ValueError, OverflowError, Invalid) as error:
        raise Invalid(
            "cursor_invalid",
            "This page address is not complete.",
            advice="Start at the first page.",
            field="after",
        ) from error
