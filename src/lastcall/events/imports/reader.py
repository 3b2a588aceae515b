"""Reads a calendar (RFC 5545) into entries, in a process of its own: ``child.py`` starts it, and ends it when it takes
too long.

A parser of others meets what anybody may send, some definitions of time zones keep it busy without end, and it
remembers the zones of one document for the next. Here it lives for one document.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta

import msgspec
from icalendar import Calendar, Component, Timezone

from lastcall.events.imports.entries import (
    AHEAD,
    COMPONENTS_MOST,
    ENTRIES_MOST,
    Asked,
    Entry,
    Reading,
    Refusal,
    uid_of,
)
from lastcall.events.imports.series import Series, read_series, text_of
from lastcall.events.imports.wording import one_line
from lastcall.events.imports.zones import Zones, known_zone, naive
from lastcall.events.times import DATE_ENDS_AFTER, USUAL_LENGTH

_FOLD = re.compile(r"\r?\n[ \t]")
_BEGIN = re.compile(r"^BEGIN:", re.IGNORECASE | re.MULTILINE)


class NoCalendarError(Exception):
    """The document is none that can be imported."""

    def __init__(self, sentence: str, advice: str) -> None:
        super().__init__(sentence)
        self.refusal = Refusal(sentence=sentence, advice=advice)


def read(document: bytes, asked: Asked) -> Reading:
    """What the calendar says of the next ``AHEAD``. Raises ``NoCalendarError``."""
    text, notes = _decoded(document)
    calendars = _parsed(text)
    zone = next((z for one in calendars if (z := known_zone(text_of(one, "X-WR-TIMEZONE")))), asked.zone)
    zones = Zones(zone, _defined(calendars))
    read_all = [read_series(group, zones) for group in _grouped(calendars)]
    window = (asked.now, asked.now + AHEAD)
    series = [one for one in read_all if isinstance(one, Series)]
    problems = [one for one in read_all if isinstance(one, Entry)]
    found = heapq.merge(*(_within(one, window) for one in series), key=_place)
    entries = list(itertools.islice(found, ENTRIES_MOST + 1))
    complete_until = window[1]
    if len(entries) > ENTRIES_MOST:
        complete_until = _place(entries.pop())[0] - timedelta(days=1)
        notes.append(
            f"Only its next {ENTRIES_MOST} dates were taken; import it again later for those behind."
        )
    elif outside := _outside(series, entries):
        notes.append(f"{outside} {'entry has' if outside == 1 else 'entries have'} no date in the next year.")
    other = sum(1 for one in calendars for part in one.subcomponents if part.name in {"VTODO", "VJOURNAL"})
    if other:
        notes.append(f"{other} {'task or note was' if other == 1 else 'tasks and notes were'} left out.")
    return Reading(
        name=next((n for one in calendars if (n := one_line(text_of(one, "X-WR-CALNAME")))), ""),
        entries=(*entries, *problems[:ENTRIES_MOST]),
        uids=tuple(sorted({one.uid for one in series})),
        complete_until=complete_until,
        notes=tuple(notes),
    )


def _decoded(document: bytes) -> tuple[str, list[str]]:
    if b"\0" in document[:4096]:
        for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
            try:
                text = document.decode(encoding)
            except UnicodeDecodeError:
                continue
            if "BEGIN:VCALENDAR" in text.upper():
                return text.lstrip("\ufeff"), []
        raise _not_one()
    try:
        return document.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        return document.decode("cp1252", "replace"), ["It is not in UTF-8; letters with marks may be wrong."]


def _parsed(text: str) -> list[Calendar]:
    count = sum(1 for _ in itertools.islice(_BEGIN.finditer(_FOLD.sub("", text)), COMPONENTS_MOST + 1))
    if count > COMPONENTS_MOST:
        raise NoCalendarError(
            f"The calendar has more than {COMPONENTS_MOST} parts.",
            "Export fewer entries, for example those of the next year.",
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # of zones that the library guesses; ``zones.py`` judges them by itself
            found = Calendar.from_ical(text, multiple=True)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError):
        raise _not_one() from None
    calendars = [one for one in found if one.name == "VCALENDAR"]
    if not calendars:
        raise _not_one()
    return calendars


def _not_one() -> NoCalendarError:
    return NoCalendarError(
        "This is no calendar that can be read.",
        "Give an .ics file, or the address from which one is downloaded.",
    )


def _defined(calendars: Iterable[Calendar]) -> dict[str, Timezone]:
    return {
        str(part.get("TZID", "")): part
        for one in calendars
        for part in one.subcomponents
        if isinstance(part, Timezone)
    }


def _grouped(calendars: Iterable[Calendar]) -> list[tuple[str, list[Component]]]:
    """The entries of each UID; one without is known by what it says, so that it is found again while it says that."""
    groups: dict[str, list[Component]] = {}
    for one in calendars:
        for part in one.subcomponents:
            if part.name == "VEVENT":
                groups.setdefault(_uid(part), []).append(part)
    return list(groups.items())


def _uid(part: Component) -> str:
    uid = part.get("UID")
    given = str(uid).strip() if uid is not None and not isinstance(uid, list) else ""
    if 0 < len(given) <= 255 and given.isprintable():
        return given
    start = getattr(part.get("DTSTART"), "dt", None)
    known_by = given or f"{text_of(part, 'SUMMARY')} {naive(start) if isinstance(start, date) else ''}"
    return f"sha256:{hashlib.sha256(known_by.encode('utf-8', 'replace')).hexdigest()}"


def _within(series: Series, window: tuple[datetime, datetime]) -> Iterator[Entry]:
    """The dates of a series that are not over and begin before the end of the window, in order."""
    now, end = window
    for entry in series.entries((now - timedelta(days=32)).date(), (end + timedelta(days=1)).date()):
        begin, over = _place(entry)[0], _over(entry)
        if over > now and begin < end:
            yield entry


def _place(entry: Entry) -> tuple[datetime, str]:
    if entry.starts_at is not None:
        return entry.starts_at, entry.key
    assert entry.date is not None
    return datetime.combine(entry.date, time(), UTC), entry.key


def _over(entry: Entry) -> datetime:
    if entry.starts_at is None:
        return _place(entry)[0] + DATE_ENDS_AFTER
    return entry.ends_at or entry.starts_at + USUAL_LENGTH


def _outside(series: list[Series], entries: list[Entry]) -> int:
    there = {one.key for one in entries} | {uid_of(one.key) for one in entries}
    return sum(1 for one in series if one.uid not in there)


def main() -> None:
    """Read a line of JSON (``Asked``) and the document from standard input; write a ``Reading`` or a ``Refusal``."""
    asked = msgspec.json.decode(sys.stdin.buffer.readline(), type=Asked)
    try:
        answer: Reading | Refusal = read(sys.stdin.buffer.read(), asked)
    except NoCalendarError as error:
        answer = error.refusal
    sys.stdout.buffer.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main()
