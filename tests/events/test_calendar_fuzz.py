"""Whatever is made of a calendar on its way, it is read or refused, and never in another way than that."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.events.calendars import NOW, ZONE, calendar, vevent

from lastcall.events.fields import valid_fields
from lastcall.events.imports.comparison import ItemChange, compare
from lastcall.events.imports.entries import Asked, Reading, Refusal
from lastcall.events.imports.reader import NoCalendarError, read

LINES = (
    calendar(
        "X-WR-TIMEZONE:Europe/Berlin",
        "X-WR-CALNAME:Evenings",
        "BEGIN:VTIMEZONE\nTZID:Ours\nBEGIN:STANDARD\nDTSTART:19701025T030000\nRRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\n"
        "TZOFFSETFROM:+0200\nTZOFFSETTO:+0100\nEND:STANDARD\nEND:VTIMEZONE",
        vevent(
            "1", ";TZID=Ours:20261204T200000", "DTEND;TZID=Ours:20261204T230000", "RRULE:FREQ=WEEKLY;COUNT=5"
        ),
        vevent(
            "1", ";TZID=Europe/Berlin:20261212T200000", "RECURRENCE-ID:20261211T190000Z", "STATUS:CANCELLED"
        ),
        vevent(
            "2",
            ";VALUE=DATE:20261204",
            "DURATION:P2D",
            "EXDATE;VALUE=DATE:20261205",
            "RDATE;VALUE=DATE:20261206",
        ),
        vevent(
            "3", ":20261204T200000Z", "RRULE:FREQ=MONTHLY;BYDAY=-1FR;UNTIL=20270801T000000Z", "SUMMARY:Dänce"
        ),
    )
    .decode()
    .split("\r\n")
)
JUNK = st.sampled_from(
    [
        "",
        ";",
        ":",
        "BEGIN:VEVENT",
        "END:VEVENT",
        "DTSTART:",
        "RRULE:FREQ=",
        "RRULE:FREQ=DAILY;INTERVAL=-1",
        "RRULE:FREQ=YEARLY;BYYEARDAY=366",
        " folded",
        "DTSTART;TZID=:20261204T200000",
        "DTSTART;VALUE=DATE:99991231",
        "DTSTART:00010101T000000",
        "DTSTART;TZID=Europe/Berlin;VALUE=DATE:20261204T200000",
        "DTEND:99991231T235959Z",
        "DURATION:P99999999D",
        "DURATION:-P1D",
        "EXDATE:",
        "RDATE;VALUE=PERIOD:20261204T200000Z/PT1H",
        "UID:",
        "SEQUENCE:x",
        "RECURRENCE-ID;VALUE=DATE:20261204",
        "SUMMARY:\u202e\u200b",
        "TZOFFSETTO:+9999",
        "X-WR-TIMEZONE:Mars",
    ]
)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    lines = list(LINES)
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(lines) - 1))
        match draw(st.integers(0, 4)):
            case 0:
                del lines[place]
            case 1:
                lines.insert(place, draw(JUNK))
            case 2:
                lines.insert(place, lines[draw(st.integers(0, len(lines) - 1))])
            case 3:
                cut = draw(st.integers(0, len(lines[place])))
                lines[place] = lines[place][:cut] + draw(st.text(max_size=3)) + lines[place][cut + 1 :]
            case _:
                lines[place] = draw(JUNK)
        lines = lines or [""]
    data = "\r\n".join(lines).encode("utf-8", "surrogatepass")
    return data[: draw(st.integers(0, len(data)))] if draw(st.integers(0, 9)) == 0 else data


def outcome(document: bytes) -> Reading | Refusal:
    try:
        return read(document, Asked(zone=ZONE, now=NOW))
    except NoCalendarError as refused:
        return refused.refusal


@settings(max_examples=100, deadline=None)
@given(documents())
def test_a_damaged_calendar_is_read_or_refused(document: bytes) -> None:
    found = outcome(document)
    if isinstance(found, Refusal):
        assert found.sentence.endswith(".")
        return
    keys = [one.key for one in found.entries if one.problem is None]
    assert len(keys) == len(set(keys))
    for item in compare(found, {}):
        assert item.change in {ItemChange.NEW, ItemChange.UNREADABLE}
        if item.change is ItemChange.NEW:
            assert valid_fields(item.fields.written(None)).title


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_anything_else_is_refused(document: bytes) -> None:
    found = outcome(document)
    assert isinstance(found, Refusal)
    assert found.advice
