"""One UID of a calendar: an entry, or a series with its exceptions, worked out into dates when they are asked for."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from icalendar import Component
from icalendar.prop import vDDDTypes
from msgspec.structs import replace

from lastcall.events.imports.entries import Entry, key_of
from lastcall.events.imports.problems import Unreadable
from lastcall.events.imports.recurrence import Rule, occurrences, read_rule
from lastcall.events.imports.wording import UNTITLED, many_lines, one_line
from lastcall.events.imports.zones import Zone, Zones, naive
from lastcall.events.times import LONGEST

UTC_NAME = "UTC"
"""The zone of times that are written as instants: how they are shown, their calendar leaves open."""
_END_OF_DAY = timedelta(days=1) - timedelta(seconds=1)


@dataclass(frozen=True)
class Moment:
    """What a calendar wrote: a local time in a zone, or a day."""

    local: datetime
    zone: Zone
    is_day: bool

    def instant(self) -> datetime:
        """The instant; of a day its midnight in UTC, which only sorts."""
        return self.zone.instant(self.local)[0]

    def in_(self, other: Moment) -> datetime:
        """The local time of this moment in the zone of another, as a series writes its exceptions."""
        if self.is_day or other.is_day or self.zone == other.zone:
            return self.local
        return other.zone.local(self.instant())


@dataclass(frozen=True)
class Single:
    """What an entry says of each of its dates: ``length`` is exact, ``days`` are counted on the calendar."""

    title: str
    description: str
    start: Moment
    length: timedelta | None
    days: int
    is_cancelled: bool
    notes: tuple[str, ...]

    def at(self, key: str, local: datetime, own_zone: str) -> Entry:
        """The date that begins at ``local``."""
        zone = self.start.zone
        notes = [note for note in (*self.notes, zone.note) if note]
        entry = Entry(
            key=key,
            title=self.title,
            description=self.description,
            zone=own_zone,
            is_cancelled=self.is_cancelled,
            notes=tuple(notes),
        )
        if self.start.is_day:
            return replace(entry, date=local.date())
        instant, change = zone.instant(local)
        if change is not None:
            notes.append(f"{local:%H:%M} in {zone.name}: {change.words}.")
        end = None
        if self.days:
            end = zone.instant(local + timedelta(self.days))[0]
        elif self.length is not None:
            end = instant + self.length
        return replace(
            entry,
            zone=own_zone if zone.name == UTC_NAME else zone.name,
            starts_at=instant,
            ends_at=end,
            notes=tuple(notes),
        )


@dataclass(frozen=True)
class Series:
    """The dates of one UID. ``excluded`` and the keys of ``changed`` are local times as the series writes them."""

    uid: str
    own_zone: str
    single: Single | None
    rule: Rule | None = None
    more: frozenset[datetime] = frozenset()
    excluded: frozenset[datetime] = frozenset()
    excluded_days: frozenset[date] = frozenset()
    changed: dict[datetime, Single] = field(default_factory=dict)

    def entries(self, low: date, high: date) -> Iterator[Entry]:
        """The dates between two days in order; one that was moved stands where it was moved to."""
        changed = (
            (single.start.local, self._key(original), single) for original, single in self.changed.items()
        )
        moved = sorted(changed, key=lambda one: one[:2])
        others = [(local, key, single) for local, key, single in moved if low <= local.date() <= high]
        regular = ((local, key, None) for local, key in self._regular(low, high))
        for local, key, single in heapq.merge(regular, others, key=lambda one: (one[0], one[1])):
            said = single or self.single
            assert said is not None
            yield said.at(key, local, self.own_zone)

    def _regular(self, low: date, high: date) -> Iterator[tuple[datetime, str]]:
        if self.single is None:
            return
        start = self.single.start.local
        if self.rule is None and not self.more:
            if low <= start.date() <= high:
                yield start, self.uid
            return
        ruled = iter([start]) if self.rule is None else occurrences(self.rule, start, low, high)
        more = sorted(one for one in self.more if low <= one.date() <= high)
        last = None
        for local in heapq.merge(ruled, more):
            is_out = local in self.excluded or local.date() in self.excluded_days or local in self.changed
            if local != last and not is_out and low <= local.date() <= high:
                yield local, self._key(local)
            last = local

    def _key(self, original: datetime) -> str:
        return key_of(self.uid, original.date(), f"T{original:%H%M}" if original in self.more else "")


def read_series(group: tuple[str, Sequence[Component]], zones: Zones) -> Series | Entry:
    """The entries of one UID together, or one with the problem that kept them from being read."""
    uid, parts = group
    try:
        return _series(uid, parts, zones)
    except (Unreadable, OverflowError, ValueError, TypeError, AttributeError, KeyError) as error:
        sentence = error.sentence if isinstance(error, Unreadable) else "It holds a time that cannot be read."
        title = one_line(text_of(parts[0], "SUMMARY")) or UNTITLED
        return Entry(key=uid, title=title, zone=zones.own.name, problem=sentence)


def _series(uid: str, parts: Sequence[Component], zones: Zones) -> Series:
    masters = [one for one in parts if "RECURRENCE-ID" not in one]
    changes = [one for one in parts if "RECURRENCE-ID" in one]
    if not masters:
        changed = {
            _moment(_one(one, "RECURRENCE-ID"), zones).local: _single(one, zones) for one in _latest(changes)
        }
        return Series(uid, zones.own.name, None, changed=changed)
    master = max(masters, key=_sequence)
    single = _single(master, zones)
    start = single.start
    changed = {}
    for one in _latest(changes):
        replaced = _one(one, "RECURRENCE-ID")
        if str(replaced.params.get("RANGE", "")).upper() == "THISANDFUTURE":
            raise Unreadable("It changes all dates from one on, which is not read here.")
        changed[_moment(replaced, zones).in_(start)] = _single(one, zones)
    if "EXRULE" in master:
        raise Unreadable("It leaves out dates by a rule (EXRULE), which is not read here.")
    excluded = _moments(master, "EXDATE", zones)
    return Series(
        uid,
        zones.own.name,
        single,
        rule=_rule(master, start),
        more=frozenset(one.in_(start) for one in _moments(master, "RDATE", zones)),
        excluded=frozenset(one.in_(start) for one in excluded if one.is_day == start.is_day),
        excluded_days=frozenset(one.local.date() for one in excluded if one.is_day or start.is_day),
        changed=changed,
    )


def _latest(parts: Sequence[Component]) -> list[Component]:
    """Of several versions the last wins, because later ones overwrite earlier ones."""
    return sorted(parts, key=_sequence)


def _sequence(part: Component) -> int:
    value = part.get("SEQUENCE", 0)
    return int(value) if isinstance(value, int) else 0


def _rule(master: Component, start: Moment) -> Rule | None:
    given = master.get("RRULE")
    if given is None:
        return None
    if isinstance(given, list):
        raise Unreadable("It has more than one rule of repetition.")
    if not isinstance(given, dict):
        raise Unreadable("Its rule of repetition cannot be read.")
    until = None
    for value in given.get("UNTIL", ()):
        if not isinstance(value, datetime):
            until = naive(value) + (timedelta() if start.is_day else _END_OF_DAY)
        elif value.tzinfo is None or start.is_day:
            until = naive(value)
        else:
            until = start.zone.local(value)
    return read_rule(given, start.local, until)


def _single(part: Component, zones: Zones) -> Single:
    start = _moment(_one(part, "DTSTART"), zones)
    start.instant()  # a definition of a zone may turn out only now not to hold
    notes = []
    length, days = None, 0
    if "DTEND" in part:
        end = _moment(_one(part, "DTEND"), zones)
        length = end.local - start.local if start.is_day else end.instant() - start.instant()
    elif "DURATION" in part:
        length = _one(part, "DURATION").dt
        if not isinstance(length, timedelta):
            raise Unreadable("Its length cannot be read.")
        if not length.seconds and not start.is_day:
            days, length = length.days, None
    if start.is_day and length is not None and length.days > 1:
        notes.append(f"It lasts {length.days} days; only the first is kept.")
    if (length or timedelta(days)) > LONGEST or (length is not None and length < timedelta()):
        notes.append("Its end makes no sense and was left out.")
        length, days = None, 0
    return Single(
        title=one_line(text_of(part, "SUMMARY")) or UNTITLED,
        description=many_lines(text_of(part, "DESCRIPTION")),
        start=start,
        length=length or None,
        days=max(days, 0),
        is_cancelled=text_of(part, "STATUS").strip().upper() == "CANCELLED",
        notes=tuple(notes),
    )


def text_of(part: Component, name: str) -> str:
    """What a property says; of several the first."""
    value = part.get(name, "")
    return str(value[0] if isinstance(value, list) and value else value)


def _one(part: Component, name: str) -> Any:
    value = part.get(name)
    if not isinstance(value, vDDDTypes):
        raise Unreadable(f"Its {name} is missing, twice there or cannot be read.")
    return value


def _moments(part: Component, name: str, zones: Zones) -> list[Moment]:
    given = part.get(name)
    lists = given if isinstance(given, list) else [] if given is None else [given]
    found = []
    for each in lists:
        if not hasattr(each, "dts"):
            raise Unreadable(f"Its {name} cannot be read.")
        found += [_moment(one, zones, each.params.get("TZID")) for one in each.dts]
    return found


def _moment(value: Any, zones: Zones, zone: str | None = None) -> Moment:
    at = value.dt[0] if isinstance(value.dt, tuple) else value.dt
    if not isinstance(at, date):
        raise Unreadable("It holds a time without a day.")
    if not isinstance(at, datetime):
        return Moment(naive(at), Zone(UTC_NAME), is_day=True)
    name = value.params.get("TZID", zone)
    if name is None and at.tzinfo is not None:
        return Moment(naive(at), Zone(UTC_NAME), is_day=False)
    return Moment(naive(at), zones.of(name), is_day=False)
