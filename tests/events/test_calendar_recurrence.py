"""Rules of repetition come to the same dates as another implementation's, and to an end for any rule."""

from __future__ import annotations

import itertools
from datetime import date, datetime, time, timedelta
from time import process_time

import pytest
from dateutil.rrule import rrulestr
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lastcall.events.imports.problems import Unreadable
from lastcall.events.imports.recurrence import occurrences, read_rule

WEEKDAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
at = datetime.fromisoformat  # of local times
LOW, HIGH = date(2026, 1, 1), date(2027, 6, 30)


def some(values: list[str], most: int = 3) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), max_size=most, unique=True)


def numbers(least: int, most: int) -> list[str]:
    return [str(n) for n in range(least, most + 1) if n]


@st.composite
def rules(draw: st.DrawFn) -> dict[str, list[str]]:
    frequency = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]))
    rule = {"FREQ": [frequency], "INTERVAL": [str(draw(st.integers(1, 5)))]}
    rule["BYMONTH"] = draw(some(numbers(1, 12)))
    if frequency != "WEEKLY":
        rule["BYMONTHDAY"] = draw(some(numbers(-28, 28), 2))
    days = draw(some(WEEKDAYS))
    if frequency in {"MONTHLY", "YEARLY"} and not rule.get("BYMONTHDAY"):
        days = [f"{draw(st.sampled_from(['', '1', '2', '-1', '5']))}{day}" for day in days]
    rule["BYDAY"] = days
    if frequency == "YEARLY" and not any(one[:-2] for one in days):
        rule["BYYEARDAY"] = draw(some(numbers(-365, 365), 2))
    if rule["BYDAY"] and frequency in {"MONTHLY", "YEARLY"}:
        rule["BYSETPOS"] = draw(some(numbers(-3, 3), 2))
    rule["WKST"] = [draw(st.sampled_from(WEEKDAYS))]
    if draw(st.booleans()):
        rule["COUNT"] = [str(draw(st.integers(1, 40)))]
    return {name: values for name, values in rule.items() if values}


@settings(max_examples=100, deadline=None)
@given(rules(), st.dates(date(2018, 1, 1), date(2026, 12, 31)), st.booleans())
def test_the_dates_are_those_of_another_implementation(
    parts: dict[str, list[str]], begin: date, has_until: bool
) -> None:
    """From a date on that the rule has: what an implementation does with another first date differs."""
    evening = timedelta(hours=20)
    tried = (datetime.combine(begin + timedelta(n), time.min) + evening for n in range(1500))
    start = next((one for one in tried if _has(parts, one)), None)
    assume(start is not None)
    assert start is not None
    until = at("2026-09-01T20:00") if has_until and "COUNT" not in parts else None
    text = ";".join(f"{name}={','.join(values)}" for name, values in parts.items())
    oracle = rrulestr(text + (f";UNTIL={until:%Y%m%dT%H%M%S}" if until else ""), dtstart=start)
    end = datetime.combine(HIGH, time.max)
    # It looks for a match to the last year there is: seconds for a rule that has no further one.
    with pytest.MonkeyPatch.context() as fewer_years:
        fewer_years.setattr("dateutil.rrule.datetime.MAXYEAR", HIGH.year + 1)
        others = list(itertools.takewhile(lambda one: one <= end, oracle))
    assume(others[:1] == [start] or (until is not None and until < start))
    rule = read_rule(parts, start, until)
    assert list(occurrences(rule, start, LOW, HIGH)) == [one for one in others if one.date() >= LOW]


def _has(parts: dict[str, list[str]], start: datetime) -> bool:
    """Whether a rule from this day on has the day itself, by its filters."""
    return read_rule(parts, start, None).matches(start.date())


def test_the_first_date_belongs_to_the_series_though_the_rule_has_it_not() -> None:
    start = at("2026-03-04T20:00")
    rule = read_rule({"FREQ": ["WEEKLY"], "BYDAY": ["MO"], "COUNT": ["3"]}, start, None)
    assert [one.date().isoformat() for one in occurrences(rule, start, LOW, HIGH)] == [
        "2026-03-04",
        "2026-03-09",
        "2026-03-16",
    ]


@pytest.mark.parametrize(
    "parts",
    [
        {"FREQ": ["DAILY"], "INTERVAL": ["7"], "BYDAY": ["MO"]},
        {"FREQ": ["DAILY"], "BYMONTH": ["2"], "BYMONTHDAY": ["30"]},
        {"FREQ": ["MONTHLY"], "BYMONTH": ["2"], "BYMONTHDAY": ["31"]},
        {"FREQ": ["YEARLY"], "BYMONTH": ["2"], "BYMONTHDAY": ["30"], "COUNT": ["100000"]},
        {"FREQ": ["DAILY"], "COUNT": ["100000"]},
        {"FREQ": ["DAILY"], "BYMONTH": ["2"], "BYMONTHDAY": ["30"], "COUNT": ["1"]},
    ],
)
def test_a_rule_without_a_match_or_with_very_many_comes_to_its_end_at_once(
    parts: dict[str, list[str]],
) -> None:
    start = at("1970-01-06T20:00")  # a Tuesday
    begun = process_time()
    found = list(occurrences(read_rule(parts, start, None), start, LOW, HIGH))
    assert process_time() - begun < 1
    assert len(found) in {0, (HIGH - LOW).days + 1}


@pytest.mark.parametrize("frequency", ["SECONDLY", "MINUTELY", "HOURLY"])
def test_what_repeats_within_a_day_is_refused_before_a_step_is_made(frequency: str) -> None:
    with pytest.raises(Unreadable, match="within a day"):
        read_rule({"FREQ": [frequency]}, at("2026-01-01T20:00"), None)


def test_a_series_from_before_the_first_year_is_refused() -> None:
    with pytest.raises(Unreadable, match="before 1970"):
        read_rule({"FREQ": ["DAILY"]}, at("1969-12-31T20:00"), None)
