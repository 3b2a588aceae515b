"""Local times and instants: what a person types in a time zone, and how an instant is told to them there.

Twice a year a zone's clock jumps. A local time that a jump forward left out (a *gap*) means the instant that it would
have been without the jump, so it shows that much later, as RFC 5545 has it; one that a jump back brought twice (a
*fold*) means the first of the two unless the second is asked for. Either way there is a word for it, which pages and
the API show: nobody should find out at the door that 02:30 was another moment than they thought.
"""

from __future__ import annotations

import functools
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from lastcall.errors import Invalid


class ClockChange(StrEnum):
    """What a change of the clock does to a local time."""

    GAP = "gap"
    """The time does not exist on that day; what is meant is later by what the clock skips."""
    FIRST = "fold_first"
    """The time comes twice on that day; this is the first."""
    SECOND = "fold_second"
    """The time comes twice on that day; this is the second."""

    @property
    def words(self) -> str:
        """What people read beside the time."""
        return _WORDS[self]


_WORDS = {
    ClockChange.GAP: "the clock skips this time on that day, so it is later by as much",
    ClockChange.FIRST: "the clock shows this time twice on that day; this is the first",
    ClockChange.SECOND: "the clock shows this time twice on that day; this is the second",
}


@dataclass(frozen=True)
class LocalTime:
    """An instant and what the clock of a zone shows then. ``local`` is aware, in the zone."""

    instant: datetime
    local: datetime
    change: ClockChange | None


@functools.cache
def zone_names() -> frozenset[str]:
    """Every name of the tz database that a person may choose."""
    return frozenset(zoneinfo.available_timezones()) - {"Factory", "localtime"}


def valid_zone(name: str, field: str = "zone") -> str:
    """The name itself. Raises ``Invalid`` naming ``field`` for what is no zone of the tz database."""
    if name not in zone_names():
        raise Invalid(
            "zone_unknown",
            f"“{name[:100]}” is not a time zone.",
            advice="Use a name like Europe/Berlin or UTC.",
            field=field,
        )
    return name


def in_zone(local: datetime, zone: str, *, second: bool = False) -> LocalTime:
    """The instant that a zone's clock shows as ``local`` (naive); ``second``: of two such the later one.

    Raises ``Invalid`` for an unknown zone and ``OverflowError`` within a day of the ends of the calendar.
    """
    info = zoneinfo.ZoneInfo(valid_zone(zone))
    given = local.replace(tzinfo=info, fold=0)
    early, late = given.astimezone(UTC), given.replace(fold=1).astimezone(UTC)
    if early == late:
        return LocalTime(early, early.astimezone(info), None)
    if (
        early > late
    ):  # of a skipped time the first reading is by the offset before the jump: the later instant
        return LocalTime(early, early.astimezone(info), ClockChange.GAP)
    instant, change = (late, ClockChange.SECOND) if second else (early, ClockChange.FIRST)
    return LocalTime(instant, instant.astimezone(info), change)


def shown_in(instant: datetime, zone: str) -> LocalTime:
    """What the zone's clock shows at ``instant``, with a word when it shows that twice. Raises ``Invalid`` for an
    unknown zone."""
    local = instant.astimezone(zoneinfo.ZoneInfo(valid_zone(zone)))
    change = None
    if local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset():
        change = ClockChange.SECOND if local.fold else ClockChange.FIRST
    return LocalTime(instant.astimezone(UTC), local, change)
