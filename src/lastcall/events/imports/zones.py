"""The time zones that a calendar's times are in: by their name where it is one of the tz database, else as the
calendar itself defines them.

Nothing here is kept between documents: a definition under a known name in one calendar must not move another's.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

from icalendar import Timezone
from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

from lastcall.events.imports.problems import Unreadable
from lastcall.local_time import ClockChange, in_zone, zone_names

OBSERVANCES_MOST = 100
"""Changes of the clock that one definition may describe; each is a rule or a list."""
CHANGES_MOST = 1000
"""Dates that the lists of one definition may name."""
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Zone:
    """A zone of a calendar. ``name`` is the tz database's, or that of the importing club where it has none; ``defined``
    is the calendar's own definition."""

    name: str
    defined: tzinfo | None = None
    note: str | None = None

    def instant(self, local: datetime) -> tuple[datetime, ClockChange | None]:
        """The instant of a local time, and what a change of the clock does to it."""
        if self.defined is not None:
            return _instant(local, self.defined)
        found = in_zone(local, self.name)
        return found.instant, found.change

    def local(self, instant: datetime) -> datetime:
        """The local time (naive) of an instant."""
        return instant.astimezone(self.defined or zoneinfo.ZoneInfo(self.name)).replace(tzinfo=None)


def _instant(local: datetime, zone: tzinfo) -> tuple[datetime, ClockChange | None]:
    """As ``local_time.in_zone``, for a zone that may know nothing of folds: by its offsets a day before and after."""
    offsets = {_offset(local - _DAY, zone), _offset(local + _DAY, zone)}
    candidates = sorted(local.replace(tzinfo=UTC) - offset for offset in offsets)
    right = [one for one in candidates if one.astimezone(zone).replace(tzinfo=None) == local]
    if len(right) == 1:
        return right[0], None
    if right:
        return right[0], ClockChange.FIRST
    return local.replace(tzinfo=UTC) - _offset(local - _DAY, zone), ClockChange.GAP


def _offset(local: datetime, zone: tzinfo) -> timedelta:
    return local.replace(tzinfo=zone).utcoffset() or timedelta()


class Zones:
    """The zones of one document. ``own`` is the zone of times that name none."""

    def __init__(self, own: str, defined: Mapping[str, Timezone]) -> None:
        self.own = Zone(own)
        self._defined = defined
        self._found: dict[str, Zone] = {}

    def of(self, name: str | None) -> Zone:
        """The zone that a time names. One that nobody knows is the document's own, with a note. Raises ``Unreadable``
        for a definition beyond all bounds."""
        if name is None:
            return self.own
        if name not in self._found:
            self._found[name] = self._look_up(name)
        return self._found[name]

    def _look_up(self, name: str) -> Zone:
        known = known_zone(name)
        if known is not None:
            return Zone(known)
        definition = self._defined.get(name)
        if definition is None:
            return Zone(
                self.own.name, note=f"Its time zone “{name[:60]}” is unknown; taken as {self.own.name}."
            )
        located = known_zone(str(definition.get("X-LIC-LOCATION", "")))
        if located is not None:
            return Zone(located)
        _check(definition)
        try:
            return Zone(self.own.name, definition.to_tz(lookup_tzid=False))
        except Exception:  # noqa: BLE001 - whatever a definition of others makes the library raise
            raise Unreadable("Its time zone is defined in a way that cannot be read.") from None


def known_zone(name: str) -> str | None:
    """The tz database's name for what calendars write: that itself, Windows' name for it, or a path that ends in it."""
    name = name.strip().strip('"')
    parts = name.split("/")
    for candidate in (name, WINDOWS_TO_OLSON.get(name, ""), "/".join(parts[-3:]), "/".join(parts[-2:])):
        if candidate in zone_names():
            return candidate
    return None


def _check(definition: Timezone) -> None:
    rules = [one.get("RRULE") for one in definition.subcomponents]
    dates = sum(len(_listed(one.get("RDATE"))) for one in definition.subcomponents)
    is_yearly = all(
        rule is None
        or (not isinstance(rule, list) and [str(f).upper() for f in rule.get("FREQ", ())] == ["YEARLY"])
        for rule in rules
    )
    if len(rules) > OBSERVANCES_MOST or dates > CHANGES_MOST or not is_yearly:
        raise Unreadable("Its time zone is defined with more changes than any real one has.")


def _listed(value: Any) -> list[Any]:
    lists = value if isinstance(value, list) else [] if value is None else [value]
    return [one for each in lists for one in getattr(each, "dts", ())]


def naive(value: datetime | date) -> datetime:
    """The local time that a calendar wrote, without what the library took its zone for."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None, fold=0)
    return datetime.combine(value, datetime.min.time())
