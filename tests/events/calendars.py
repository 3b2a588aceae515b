"""Calendars as other programs write them, and what is read out of one."""

from __future__ import annotations

from datetime import UTC, datetime

from lastcall.events.imports.entries import Asked, Entry, Reading
from lastcall.events.imports.reader import read

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ZONE = "Europe/Berlin"


def calendar(*parts: str) -> bytes:
    """A calendar of these parts, with the line ends of the standard."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Other//EN", *parts, "END:VCALENDAR", ""]
    return "\r\n".join(line for part in lines for line in part.split("\n")).encode()


def vevent(uid: str, start: str, *lines: str) -> str:
    """An entry; ``start`` is what stands behind DTSTART."""
    return "\n".join(["BEGIN:VEVENT", f"UID:{uid}", f"DTSTART{start}", *lines, "END:VEVENT"])


def reading(*parts: str, now: datetime = NOW, zone: str = ZONE) -> Reading:
    return read(calendar(*parts), Asked(zone=zone, now=now))


def entries(*parts: str, now: datetime = NOW, zone: str = ZONE) -> list[Entry]:
    return list(reading(*parts, now=now, zone=zone).entries)


def starts(*parts: str, now: datetime = NOW) -> list[str]:
    """When the dates of a calendar begin: ``MM-DD HH:MM`` in UTC, or a date."""
    return [
        f"{one.starts_at:%m-%d %H:%M}" if one.starts_at is not None else str(one.date)
        for one in entries(*parts, now=now)
    ]
