"""Where a page of a list ended, so that the next one begins there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True)
class Cursor:
    """The last row of a page, at the database's full precision. Which time of the row it is, the list says."""

    time: datetime
    id: UUID


FIRST = Cursor(datetime.fromisoformat("0001-01-02T00:00:00+00:00"), UUID(int=0))
"""Before every row: where a list that ascends begins."""
LAST = Cursor(datetime.fromisoformat("9999-12-30T00:00:00+00:00"), UUID(int=2**128 - 1))
"""After every row: where a list that descends begins."""
