"""Whole microseconds, and the process's idea of the database's clock.

Times are integers here: sums of them are exact, reach as far as anybody asks and cannot overflow (SCH-06).
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
SECOND = 1_000_000
"""Microseconds in a second."""

FIRST = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MICROSECOND
LAST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MICROSECOND


def to_microseconds(moment: datetime) -> int:
    """An aware time as whole microseconds since 1970, exact.

    The driver's *infinity* comes without a zone; it is the end of the calendar.
    """
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - EPOCH) // MICROSECOND


def to_datetime(microseconds: int) -> datetime:
    """The reverse; a time outside of what a datetime holds becomes its nearest end."""
    return EPOCH + min(max(microseconds, FIRST), LAST) * MICROSECOND


def span(delay: timedelta) -> int:
    """A delay as whole microseconds, exact."""
    return delay // MICROSECOND


def whole(seconds: float) -> int:
    """A boot-time reading as whole microseconds, rounded down."""
    return math.floor(seconds * SECOND)


class DatabaseTime:
    """The distance between the database's clock and this process's boot-time clock.

    A reading of ``now`` that was asked for at ``before`` and arrived at ``after`` bounds the distance on both
    sides. The lower bound is kept: by it a wait ends at the deadline or up to one round trip later, never
    before. A later reading that agrees with the kept distance can only raise it; one that contradicts it (a
    clock was set, drift) replaces it.
    """

    __slots__ = ("_offset",)

    def __init__(self) -> None:
        self._offset: int | None = None

    @property
    def known(self) -> bool:
        return self._offset is not None

    def observe(self, now: datetime, before: float, after: float) -> None:
        """Take in one reading; ``before`` and ``after`` are seconds of the boot-time clock."""
        lower = to_microseconds(now) - math.ceil(after * SECOND)
        upper = to_microseconds(now) - whole(before)
        if self._offset is None or not lower <= self._offset <= upper:
            self._offset = lower

    def at(self, boot: int) -> int | None:
        """The database's time at that boot time (whole microseconds), or None before the first reading."""
        return None if self._offset is None else boot + self._offset

    def boot_at(self, database: int) -> int | None:
        """The boot time (whole microseconds) from which the database's clock shows at least ``database``."""
        return None if self._offset is None else database - self._offset
