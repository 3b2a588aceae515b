"""A local time is an instant, in every zone of the tz database and at every change of its clock; and what an action is
timed by is counted in absolute time."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.errors import Invalid
from lastcall.local_time import ClockChange, in_zone, shown_in, valid_zone, zone_names

ZONES = sorted(zone_names())
FIRST, LAST = datetime(2025, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def shown(instant: datetime, zone: str) -> datetime:
    return instant.astimezone(zoneinfo.ZoneInfo(zone)).replace(tzinfo=None)


def offset(instant: datetime, zone: str) -> timedelta:
    return shown(instant, zone) - instant.replace(tzinfo=None)


def readings(local: datetime, zone: str) -> list[datetime]:
    """Every instant at which the zone's clock shows this: by trying the offsets of a day before and after."""
    wide = local.replace(tzinfo=UTC)
    offsets = {offset(wide + HOUR * n, zone) for n in (-26, 0, 26)}
    return sorted(wide - one for one in offsets if shown(wide - one, zone) == local)


def changes(zone: str) -> Iterator[datetime]:
    """The instants at which the zone's clock jumps."""
    begin, known = FIRST, offset(FIRST, zone)
    while begin < LAST:
        end, before = begin + 7 * DAY, known
        known = offset(end, zone)
        if known != before:
            low, high = begin, end
            while high - low > MINUTE:
                middle = low + (high - low) // 2 // MINUTE * MINUTE
                low, high = (middle, high) if offset(middle, zone) == before else (low, middle)
            yield high
        begin = end


def check(local: datetime, zone: str) -> ClockChange | None:
    """What holds of every local time; answers the word there is for it."""
    found, right = in_zone(local, zone), readings(local, zone)
    match len(right):
        case 1:
            assert (found.instant, found.change) == (right[0], None), (zone, local)
            assert in_zone(local, zone, second=True) == found, (zone, local)
        case 2:
            later = in_zone(local, zone, second=True)
            assert [found.instant, later.instant] == right, (zone, local)
            assert [found.change, later.change] == [ClockChange.FIRST, ClockChange.SECOND], (zone, local)
        case _:
            assert found.change is ClockChange.GAP, (zone, local)
            skipped = shown(found.instant, zone) - local
            assert skipped > timedelta(), (zone, local)
            assert skipped == offset(found.instant, zone) - offset(found.instant - 25 * HOUR, zone), (
                zone,
                local,
            )
    back = shown_in(found.instant, zone)
    assert back.local.replace(tzinfo=None) == shown(found.instant, zone), (zone, local)
    assert back.change == (None if found.change is ClockChange.GAP else found.change), (zone, local)
    return found.change


def test_around_every_change_of_every_clock_a_local_time_is_the_instant_it_should_be() -> None:
    words: set[ClockChange | None] = set()
    count = 0
    for zone in ZONES:
        for change in changes(zone):
            count += 1
            before = shown(change - MINUTE, zone) + MINUTE
            for minutes in (-121, -61, -60, -31, -30, -1, 0, 1, 29, 30, 59, 60, 90, 121):
                words.add(check(before + minutes * MINUTE, zone))
    assert count > 400
    assert words == {None, ClockChange.GAP, ClockChange.FIRST}


@given(st.sampled_from(ZONES), st.datetimes(datetime(2000, 1, 2), datetime(2037, 12, 30)))  # noqa: DTZ001 - local times
def test_at_any_time_in_any_zone_too(zone: str, local: datetime) -> None:
    local = local.replace(second=0, microsecond=0)
    assert check(local, zone) in {None, *ClockChange}


@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(2025, 1, 2), datetime(2027, 12, 30)),  # noqa: DTZ001 - local times
    st.integers(-525_600, 525_600),
)
def test_an_offset_from_a_start_is_counted_in_absolute_time_whatever_the_clock_does(
    zone: str, local: datetime, minutes: int
) -> None:
    """Half an hour before the start is half an hour before it, and what the clock shows then is told with a word
    exactly where it shows that twice."""
    start = in_zone(local.replace(second=0, microsecond=0), zone).instant
    due = start + minutes * MINUTE
    told = shown_in(due, zone)
    assert told.instant == due
    assert told.instant - start == minutes * MINUTE
    right = readings(told.local.replace(tzinfo=None), zone)
    if told.change is None:
        assert right == [due]
    else:
        assert right[(ClockChange.FIRST, ClockChange.SECOND).index(told.change)] == due


def test_known_changes_in_words() -> None:
    gap = in_zone(datetime.fromisoformat("2027-03-28T02:30"), "Europe/Berlin")
    assert (gap.local.isoformat(), gap.change) == ("2027-03-28T03:30:00+02:00", ClockChange.GAP)
    fold = datetime.fromisoformat("2027-10-31T02:30")
    assert in_zone(fold, "Europe/Berlin").local.isoformat() == "2027-10-31T02:30:00+02:00"
    assert in_zone(fold, "Europe/Berlin", second=True).local.isoformat() == "2027-10-31T02:30:00+01:00"
    assert len({one.words for one in ClockChange}) == len(ClockChange)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Mars/Olympus",
        "../etc/passwd",
        "europe/berlin",
        "/etc/localtime",
        "localtime",
        "Factory",
        "a" * 500,
    ],
)
def test_what_is_no_zone_of_the_database_is_refused_with_its_field(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        valid_zone(name, field="zone")
    assert refused.value.field == "zone"
    assert len(refused.value.sentence) < 150
