"""What is read out of a calendar: its dates as instants, within the next year, whatever program wrote it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from tests.events.calendars import NOW, ZONE, calendar, entries, reading, starts, vevent

from lastcall.events.imports import zones
from lastcall.events.imports.entries import ENTRIES_MOST, Asked
from lastcall.events.imports.reader import NoCalendarError, read

EVENING = ";TZID=Europe/Berlin:20261204T200000"
CUSTOM = """BEGIN:VTIMEZONE
TZID:{name}
BEGIN:DAYLIGHT
DTSTART:19700329T020000
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
END:DAYLIGHT
BEGIN:STANDARD
DTSTART:19701025T030000
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
END:STANDARD
END:VTIMEZONE"""


def test_one_entry_with_all_that_an_event_holds() -> None:
    (one,) = entries(
        vevent(
            "1",
            EVENING,
            "DTEND;TZID=Europe/Berlin:20261205T020000",
            "SUMMARY:Dance\\, late",
            "DESCRIPTION:a\\nb",
        )
    )
    assert (one.key, one.title, one.description, one.zone) == ("1", "Dance, late", "a\nb", "Europe/Berlin")
    assert one.starts_at == datetime(2026, 12, 4, 19, tzinfo=UTC)
    assert one.ends_at == datetime(2026, 12, 5, 1, tzinfo=UTC)
    assert (one.notes, one.problem, one.is_cancelled) == ((), None, False)


@pytest.mark.parametrize(
    ("start", "zone", "instant"),
    [
        (":20261204T200000Z", ZONE, 20),
        (":20261204T200000", ZONE, 19),
        (";TZID=America/New_York:20261204T150000", "America/New_York", 20),
        (";TZID=W. Europe Standard Time:20261204T210000", "Europe/Berlin", 20),
        (';TZID="/freeassociation.sourceforge.net/Europe/Berlin":20261204T210000', "Europe/Berlin", 20),
        (";TZID=Nowhere:20261204T200000", ZONE, 19),
    ],
)
def test_a_start_is_an_instant_however_its_zone_is_written(start: str, zone: str, instant: int) -> None:
    (one,) = entries(vevent("1", start))
    assert (one.zone, one.starts_at) == (zone, datetime(2026, 12, 4, instant, tzinfo=UTC))
    assert any("Nowhere" in note for note in one.notes) == ("Nowhere" in start)


def test_a_zone_that_the_calendar_defines_itself_is_used_as_it_is_defined() -> None:
    summer, winter = (
        vevent("summer", ";TZID=Ours:20270704T200000"),
        vevent("winter", ";TZID=Ours:20261204T200000"),
    )
    assert starts(CUSTOM.format(name="Ours"), summer, winter) == ["12-04 19:00", "07-04 18:00"]
    assert {one.zone for one in entries(CUSTOM.format(name="Ours"), summer)} == {ZONE}


def test_a_calendar_cannot_redefine_a_known_zone() -> None:
    wrong = CUSTOM.format(name="Asia/Tokyo")
    assert starts(wrong, vevent("1", ";TZID=Asia/Tokyo:20261204T200000")) == ["12-04 11:00"]


@pytest.mark.parametrize("name", ["Asia/Tokyo", "Their own"])
def test_in_a_gap_and_a_fold_both_kinds_of_zones_agree_and_say_so(name: str) -> None:
    known = "Europe/Berlin" if name == "Asia/Tokyo" else "Their own"
    definition = CUSTOM.format(name=known)
    gap, fold = entries(
        definition,
        vevent("gap", f";TZID={known}:20270328T023000"),
        vevent("fold", f";TZID={known}:20271031T023000"),
    )
    assert gap.starts_at == datetime(2027, 3, 28, 1, 30, tzinfo=UTC)
    assert fold.starts_at == datetime(2027, 10, 31, 0, 30, tzinfo=UTC)
    assert ["skips" in gap.notes[0], "twice" in fold.notes[0]] == [True, True]


def test_the_calendar_s_own_zone_comes_before_the_club_s() -> None:
    (one,) = entries("X-WR-TIMEZONE:Asia/Tokyo", vevent("1", ":20261204T200000"))
    assert (one.zone, one.starts_at) == ("Asia/Tokyo", datetime(2026, 12, 4, 11, tzinfo=UTC))


def test_an_all_day_entry_is_a_date_and_never_a_time() -> None:
    one, several = entries(
        vevent("1", ";VALUE=DATE:20261204", "DTEND;VALUE=DATE:20261205"),
        vevent("2", ";VALUE=DATE:20261210", "DTEND;VALUE=DATE:20261213"),
    )
    assert (one.date, one.starts_at, one.ends_at, one.notes) == (date(2026, 12, 4), None, None, ())
    assert several.date == date(2026, 12, 10)
    assert several.notes == ("It lasts 3 days; only the first is kept.",)


@pytest.mark.parametrize(
    ("line", "length"),
    [
        ("DURATION:PT90M", timedelta(minutes=90)),
        ("DTEND;TZID=Asia/Tokyo:20261205T050000", timedelta(hours=1)),
        ("DTEND;TZID=Europe/Berlin:20261204T190000", None),
        ("DURATION:P60D", None),
        ("DURATION:-PT1H", None),
        ("DTEND;TZID=Europe/Berlin:20261204T200000", None),
    ],
)
def test_an_end_that_makes_no_sense_is_left_out_and_said(line: str, length: timedelta | None) -> None:
    (one,) = entries(vevent("1", EVENING, line))
    assert one.starts_at is not None
    assert one.ends_at == (None if length is None else one.starts_at + length)
    assert bool(one.notes) == (length is None and "T200000" not in line)


def test_an_exact_length_stays_exact_across_a_change_of_the_clock_and_days_are_counted_on_the_calendar() -> (
    None
):
    over = ";TZID=Europe/Berlin:20270327T200000"
    exact, ruled, days = entries(
        vevent("exact", over, "DTEND;TZID=Europe/Berlin:20270328T060000"),
        vevent("ruled", ";TZID=Europe/Berlin:20270327T210000", "DURATION:PT10H"),
        vevent("days", ";TZID=Europe/Berlin:20270327T220000", "DURATION:P1D"),
    )
    lengths = [one.ends_at - one.starts_at for one in (exact, ruled, days) if one.ends_at and one.starts_at]
    assert lengths == [timedelta(hours=9), timedelta(hours=10), timedelta(hours=23)]


def test_a_series_keeps_its_local_time_across_a_change_of_the_clock() -> None:
    weekly = vevent("1", ";TZID=Europe/Berlin:20270319T200000", "RRULE:FREQ=WEEKLY;COUNT=3")
    assert starts(weekly) == ["03-19 19:00", "03-26 19:00", "04-02 18:00"]
    daily = vevent("1", ";TZID=Europe/Berlin:20270327T023000", "RRULE:FREQ=DAILY;COUNT=3")
    assert starts(daily) == ["03-27 01:30", "03-28 01:30", "03-29 00:30"]
    assert [bool(one.notes) for one in entries(daily)] == [False, True, False]


def test_the_exceptions_of_a_series_in_every_way_of_writing_them() -> None:
    series = vevent(
        "1",
        EVENING,
        "RRULE:FREQ=WEEKLY;UNTIL=20270115T190000Z",
        "EXDATE;TZID=Europe/Berlin:20261211T200000",
        "EXDATE:20261218T190000Z",
        "EXDATE;VALUE=DATE:20261225",
        "RDATE;TZID=Europe/Berlin:20261209T210000",
    )
    assert starts(series) == ["12-04 19:00", "12-09 20:00", "01-01 19:00", "01-08 19:00", "01-15 19:00"]


def test_a_changed_date_of_a_series_keeps_the_key_of_the_date_that_it_was() -> None:
    series = vevent("1", EVENING, "RRULE:FREQ=WEEKLY;COUNT=3", "SUMMARY:Dance")
    moved = vevent(
        "1", ";TZID=Europe/Berlin:20261212T210000", "RECURRENCE-ID:20261211T190000Z", "SUMMARY:Late"
    )
    off = vevent(
        "1",
        ";TZID=Europe/Berlin:20261218T200000",
        "RECURRENCE-ID;TZID=Europe/Berlin:20261218T200000",
        "STATUS:CANCELLED",
    )
    found = [
        (one.key, one.title, f"{one.starts_at:%d %H}", one.is_cancelled)
        for one in entries(series, moved, off)
    ]
    assert found == [
        ("1#2026-12-04", "Dance", "04 19", False),
        ("1#2026-12-11", "Late", "12 20", False),
        ("1#2026-12-18", "Untitled", "18 19", True),
    ]


def test_two_changes_of_one_day_to_one_time_are_both_read() -> None:
    series = vevent("1", EVENING, "RRULE:FREQ=WEEKLY;COUNT=2", "SUMMARY:Dance")
    changed = [
        vevent(
            "1",
            ":20261212T200000Z",
            f"RECURRENCE-ID;TZID=Europe/Berlin:20261211T{hour}0000",
            f"SUMMARY:At {hour}",
        )
        for hour in (20, 21)
    ]
    assert [one.title for one in entries(series, *changed)] == ["Dance", "At 20", "At 21"]


def test_a_series_moved_by_an_hour_keeps_its_keys() -> None:
    def keys(hour: int) -> list[str]:
        return [one.key for one in entries(vevent("1", f":20261204T{hour}0000", "RRULE:FREQ=WEEKLY;COUNT=4"))]

    assert (
        keys(20)
        == keys(21)
        == [f"1#{day}" for day in ("2026-12-04", "2026-12-11", "2026-12-18", "2026-12-25")]
    )


def test_of_two_versions_of_an_entry_the_later_counts() -> None:
    old, new = (vevent("1", EVENING, f"SUMMARY:{n}", f"SEQUENCE:{n}") for n in (3, 4))
    assert [one.title for one in entries(new, old)] == ["4"]


def test_what_is_over_and_what_is_more_than_a_year_ahead_is_left_out_and_counted() -> None:
    found = reading(
        vevent("past", ":20261130T050000Z"),
        vevent("running", ":20261130T070000Z"),
        vevent("long", ":20261110T070000Z", "DTEND:20261203T070000Z"),
        vevent("far", ":20280101T000000Z"),
        vevent("today", ";VALUE=DATE:20261130"),
        vevent("ended", ";VALUE=DATE:20261129"),
    )
    assert [one.key for one in found.entries] == ["long", "today", "running"]
    assert found.notes == ("3 entries have no date in the next year.",)


def test_the_next_dates_are_taken_where_there_are_too_many() -> None:
    found = reading(*(vevent(str(n), EVENING, "RRULE:FREQ=DAILY") for n in range(3)))
    assert len(found.entries) == ENTRIES_MOST
    assert {one.key.partition("#")[0] for one in found.entries} == {"0", "1", "2"}
    assert found.complete_until < max(one.starts_at for one in found.entries if one.starts_at)
    assert "Only its next 400 dates were taken" in found.notes[0]


@pytest.mark.parametrize(
    "lines",
    [
        ["RRULE:FREQ=HOURLY"],
        ["RRULE:FREQ=DAILY;BYHOUR=1,2,3"],
        ["RRULE:FREQ=WEEKLY;BYEASTER=1"],
        ["RRULE:FREQ=YEARLY;BYWEEKNO=20"],
        ["RRULE:FREQ=DAILY;INTERVAL=0"],
        ["RRULE:FREQ=DAILY;COUNT=99999999999999999999"],
        ["RRULE:FREQ=WEEKLY;BYDAY=1MO"],
        ["RRULE:INTERVAL=2"],
        ["RRULE:nonsense"],
        ["RRULE:FREQ=DAILY", "RRULE:FREQ=WEEKLY"],
        ["EXRULE:FREQ=DAILY"],
        ["RDATE:nonsense"],
        ["EXDATE:20269999"],
        ["DTEND:nonsense"],
        ["DURATION:nonsense"],
        ["RECURRENCE-ID:nonsense"],
        ["DTSTART:20261205T200000Z"],
    ],
)
def test_an_entry_that_cannot_be_read_says_why_and_the_others_are_read(lines: list[str]) -> None:
    bad, good = vevent("bad", EVENING, "SUMMARY:Bad", *lines), vevent("good", EVENING, "SUMMARY:Good")
    found = {one.title: one for one in entries(bad, good)}
    assert set(found) == {"Bad", "Good"}
    assert found["Good"].problem is None
    assert found["Bad"].problem
    assert found["Bad"].problem[-1] == "."


@pytest.mark.parametrize(
    "start", ["", ":", ":nonsense", ":20261301T000000Z", ":00010101T000000Z", ";VALUE=DATE:99991231"]
)
def test_a_start_that_is_none_loses_only_its_own_entry(start: str) -> None:
    assert [one.key for one in entries(vevent("bad", start), vevent("good", EVENING)) if not one.problem] == [
        "good"
    ]


@pytest.mark.parametrize(
    ("document", "title"),
    [
        (calendar(vevent("1", EVENING, "SUMMARY:Zoë")), "Zoë"),
        (b"\xef\xbb\xbf" + calendar(vevent("1", EVENING, "SUMMARY:Zoë")), "Zoë"),
        (calendar(vevent("1", EVENING, "SUMMARY:Zoë")).decode().encode("utf-16"), "Zoë"),
        (calendar(vevent("1", EVENING, "SUMMARY:Zoë")).decode().encode("cp1252"), "Zoë"),
        (calendar(vevent("1", EVENING, "SUMMARY:A\u202eB\u200bC")), "ABC"),
        (calendar(vevent("1", EVENING, "SUMMARY:\u200b")), "Untitled"),
        (calendar(vevent("1", EVENING, "SUMMARY:" + "é" * 300)), "é" * 120),
        (calendar(vevent("1", EVENING, "SUMMARY:x" + "\u0301" * 50)), "x"),
        (calendar(vevent("1", EVENING, "SUMMARY:a", "SUMMARY:b")), "a"),
        (calendar(vevent("1", EVENING)).replace(b"\r\n", b"\n"), "Untitled"),
        (calendar(vevent("1", EVENING, "SUMMARY:Da\n nce")), "Dance"),
    ],
)
def test_titles_in_every_encoding_become_names_that_can_be_shown(document: bytes, title: str) -> None:
    assert read(document, Asked(zone=ZONE, now=NOW)).entries[0].title == title


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"\0\0\0",
        b"\xff\xfe\xff\xff",
        b"<html><body>Sign in</body></html>",
        b"BEGIN:VCALENDAR",
        b"BEGIN:VEVENT\r\nEND:VEVENT\r\n",
        b"BEGIN:VCALENDAR\r\nno line\r\nEND:VCALENDAR",
        b"PK\x03\x04" + bytes(100),
    ],
)
def test_what_is_no_calendar_is_refused_with_what_to_give_instead(document: bytes) -> None:
    with pytest.raises(NoCalendarError) as refused:
        read(document, Asked(zone=ZONE, now=NOW))
    assert refused.value.refusal.advice


def test_a_calendar_without_uids_has_keys_that_the_next_reading_finds_again() -> None:
    part = vevent("1", EVENING, "SUMMARY:Dance").replace("UID:1\n", "")
    (first,), (second,) = entries(part), entries(part)
    assert first.key == second.key
    assert first.key.startswith("sha256:")


def test_a_definition_of_a_zone_beyond_all_bounds_costs_only_the_entries_that_use_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    endless = CUSTOM.format(name="Endless").replace("FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU", "FREQ=SECONDLY")
    bad, good = vevent("bad", ";TZID=Endless:20261204T200000"), vevent("good", EVENING)
    found = {one.key: one.problem for one in entries(endless, bad, good)}
    assert found == {"bad": "Its time zone is defined with more changes than any real one has.", "good": None}
    monkeypatch.setattr(zones, "_check", lambda _: None)
    # The twin: without the check the definition is taken.
    harmless = CUSTOM.format(name="Monthly").replace(
        "FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU", "FREQ=MONTHLY;COUNT=3"
    )
    assert [one.problem for one in entries(harmless, vevent("1", ";TZID=Monthly:20261204T200000"))] == [None]
