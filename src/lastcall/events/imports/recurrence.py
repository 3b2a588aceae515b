"""Rules of repetition (RFC 5545, 3.3.10), worked out day by day between two dates.

Libraries step from match to match and go on to the year 9999 when a rule has none: one line of a calendar
(``FREQ=DAILY;INTERVAL=7;BYDAY=MO`` from a Tuesday) keeps them busy for seconds, ``FREQ=SECONDLY`` for hours. Here the
work is bounded by the days between the first date and the last one asked for, whatever the rule says. Rules that repeat
within a day are no club's evenings and are refused, as is what hardly anybody writes.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from lastcall.events.imports.problems import Unreadable

INTERVAL_MOST = 1000
COUNT_MOST = 100_000
FIRST_YEAR = 1970
"""Series begin here at the earliest: it bounds the days that a rule with a COUNT is walked over."""

_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_BYDAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
_READ = {
    "FREQ",
    "INTERVAL",
    "COUNT",
    "UNTIL",
    "WKST",
    "BYDAY",
    "BYMONTH",
    "BYMONTHDAY",
    "BYYEARDAY",
    "BYSETPOS",
}
_CLOCK = {"BYHOUR": "hour", "BYMINUTE": "minute", "BYSECOND": "second"}
Match = Callable[[date], bool]


@dataclass(frozen=True)
class Rule:
    """A rule that was read. ``matches`` says which days of a period belong to it; ``until`` is the last local time."""

    frequency: str
    interval: int
    count: int | None
    until: datetime | None
    week_start: int
    positions: frozenset[int]
    matches: Match


def read_rule(parts: Mapping[str, Sequence[Any]], start: datetime, until: datetime | None) -> Rule:
    """The rule of a series that begins at ``start`` (local). ``until`` is its UNTIL in the same local time. Raises
    ``Unreadable`` for one that is wrong, repeats within a day, or uses what is not read here."""
    if start.year < FIRST_YEAR:
        raise Unreadable(f"It repeats since before {FIRST_YEAR}.")
    names = set(parts)
    frequency = str(parts["FREQ"][0]).upper() if parts.get("FREQ") else ""
    if frequency in {"SECONDLY", "MINUTELY", "HOURLY"}:
        raise Unreadable("It repeats within a day, which no event of a club does.")
    if frequency not in {"DAILY", "WEEKLY", "MONTHLY", "YEARLY"}:
        raise Unreadable("Its rule of repetition says no frequency.")
    for name, field in _CLOCK.items():
        if name in names and _numbers(parts, name, 0, 60) != {getattr(start, field)}:
            raise Unreadable("It repeats at several times of a day, which is not read here.")
    if names - _READ - set(_CLOCK):
        raise Unreadable(
            f"Its rule uses {', '.join(sorted(names - _READ - set(_CLOCK)))}, which is not read here."
        )
    week_start = _WEEKDAYS.index(str(parts["WKST"][0]).upper()) if parts.get("WKST") else 0
    return Rule(
        frequency=frequency,
        interval=_number(parts, "INTERVAL", 1, INTERVAL_MOST) or 1,
        count=_number(parts, "COUNT", 1, COUNT_MOST),
        until=until,
        week_start=week_start,
        positions=_numbers(parts, "BYSETPOS", -366, 366),
        matches=_matches(frequency, parts, start.date()),
    )


def occurrences(rule: Rule, start: datetime, low: date, high: date) -> Iterator[datetime]:
    """The local times of a series between two days, in order, its start among them whether the rule has it or not."""
    for number, day in enumerate(_days(rule, start.date(), low, high), start=1):
        at = datetime.combine(day, start.time())
        if rule.until is not None and at > rule.until:
            return
        if rule.count is not None and number > rule.count:
            return
        if day >= low:
            yield at


def _days(rule: Rule, first: date, low: date, high: date) -> Iterator[date]:
    """The first day, though the rule does not have it, and the rule's; some from before ``low`` may be among them."""
    matching = _matching(rule, first, low, high)
    head = next(matching, None)
    if head != first and first <= high and (rule.count is not None or first >= low):
        yield first
    if head is not None:
        yield head
    yield from matching


def _matching(rule: Rule, first: date, low: date, high: date) -> Iterator[date]:
    for period in _periods(rule, first, low, high):
        found = [day for day in period if rule.matches(day)]
        if rule.positions:
            count = len(found)
            found = [d for n, d in enumerate(found) if n + 1 in rule.positions or n - count in rule.positions]
        yield from (day for day in found if first <= day <= high)


def _periods(rule: Rule, first: date, low: date, high: date) -> Iterator[list[date]]:
    """The days of every ``interval``-th period, from the first on; without a COUNT to keep, from about ``low``."""
    step = rule.interval
    match rule.frequency:
        case "DAILY":
            begin, length = first, 1
        case "WEEKLY":
            begin, length = first - timedelta((first.weekday() - rule.week_start) % 7), 7
        case "MONTHLY":
            yield from _months(rule, first, low, high, step)
            return
        case _:
            yield from _months(rule, first.replace(month=1, day=1), low, high, 12 * step, length=12)
            return
    stride = timedelta(length * step)
    if rule.count is None and low > begin:
        begin += (low - begin) // stride * stride
    while begin <= high:
        yield [begin + timedelta(n) for n in range(length)]
        begin += stride


def _months(
    rule: Rule, first: date, low: date, high: date, step: int, length: int = 1
) -> Iterator[list[date]]:
    month, last = first.year * 12 + first.month - 1, high.year * 12 + high.month - 1
    wanted = low.year * 12 + low.month - 1
    if rule.count is None and wanted > month:
        month += (wanted - month) // step * step
    while month <= last:
        yield [
            date(year, n, day)
            for year, n in ((one // 12, one % 12 + 1) for one in range(month, month + length))
            for day in range(1, calendar.monthrange(year, n)[1] + 1)
        ]
        month += step


def _matches(frequency: str, parts: Mapping[str, Sequence[Any]], first: date) -> Match:
    """Whether a day is one of the rule's; what the rule leaves open is as it is on the first day."""
    months = _numbers(parts, "BYMONTH", 1, 12)
    month_days = _numbers(parts, "BYMONTHDAY", -31, 31)
    year_days = _numbers(parts, "BYYEARDAY", -366, 366)
    by_day = _by_day(parts)
    if (year_days and frequency != "YEARLY") or (month_days and frequency == "WEEKLY"):
        raise Unreadable("Its rule of repetition contradicts itself.")
    if any(n for n, _ in by_day) and (frequency not in {"MONTHLY", "YEARLY"} or year_days or month_days):
        raise Unreadable("Its rule of repetition contradicts itself.")
    if not by_day and not month_days and not year_days:
        if frequency == "WEEKLY":
            by_day = frozenset({(0, first.weekday())})
        elif frequency in {"MONTHLY", "YEARLY"}:
            month_days = frozenset({first.day})
            if frequency == "YEARLY" and not months:
                months = frozenset({first.month})
    within_year = frequency == "YEARLY" and not months

    def matches(day: date) -> bool:
        if months and day.month not in months:
            return False
        if month_days:
            length = calendar.monthrange(day.year, day.month)[1]
            if day.day not in month_days and day.day - length - 1 not in month_days:
                return False
        if year_days:
            number, length = day.timetuple().tm_yday, 365 + calendar.isleap(day.year)
            if number not in year_days and number - length - 1 not in year_days:
                return False
        return not by_day or not by_day.isdisjoint(_places(day, within_year=within_year))

    return matches


def _places(day: date, *, within_year: bool) -> tuple[tuple[int, int], ...]:
    """What BYDAY may call a day: its weekday, and which of those it is from either end of its month or year."""
    weekday = day.weekday()
    if within_year:
        number, length = day.timetuple().tm_yday, 365 + calendar.isleap(day.year)
    else:
        number, length = day.day, calendar.monthrange(day.year, day.month)[1]
    return ((0, weekday), ((number - 1) // 7 + 1, weekday), (-((length - number) // 7 + 1), weekday))


def _by_day(parts: Mapping[str, Sequence[Any]]) -> frozenset[tuple[int, int]]:
    found = set()
    for one in parts.get("BYDAY", ()):
        read = _BYDAY.fullmatch(str(one).upper())
        if read is None or (read[1] is not None and int(read[1]) == 0):
            raise Unreadable("Its rule of repetition names no weekday.")
        found.add((int(read[1] or 0), _WEEKDAYS.index(read[2])))
    return frozenset(found)


def _numbers(parts: Mapping[str, Sequence[Any]], name: str, least: int, most: int) -> frozenset[int]:
    try:
        found = frozenset(int(one) for one in parts.get(name, ()))
    except (TypeError, ValueError):
        raise Unreadable(f"The {name} of its rule is no number.") from None
    if any(not least <= one <= most or (least < 0 and one == 0) for one in found):
        raise Unreadable(f"The {name} of its rule is out of range.")
    return found


def _number(parts: Mapping[str, Sequence[Any]], name: str, least: int, most: int) -> int | None:
    found = _numbers(parts, name, least, most)
    if len(found) > 1:
        raise Unreadable(f"The {name} of its rule is more than one.")
    return next(iter(found), None)
