"""What is read out of a calendar, and the bounds within which it is read."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import msgspec

DOCUMENT_CAP = 1024 * 1024
"""Bytes of a calendar at most; one with two thousand entries of usual size has about that."""
COMPONENTS_MOST = 2000
"""Parts of a calendar (entries, zones, alarms) at most."""
ENTRIES_MOST = 400
"""Dates taken from one calendar at most, the next first."""
AHEAD = timedelta(days=366)
"""How far ahead dates are taken; the schedules of actions reach as far."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One date of a calendar. ``key`` is the same in the next reading of the same calendar, though the date moved
    within its day. Either ``starts_at`` or ``date`` is set, but for one with a ``problem``, which cannot be imported.
    ``notes`` say what reading it needed to decide."""

    key: str
    title: str
    description: str = ""
    zone: str
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    date: date | None = None
    is_cancelled: bool = False
    notes: tuple[str, ...] = ()
    problem: str | None = None


class Reading(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A calendar as it was read. ``uids`` are those of which every date before ``complete_until`` is among the
    ``entries``. ``notes`` are about the whole."""

    name: str
    entries: tuple[Entry, ...]
    uids: tuple[str, ...]
    complete_until: datetime
    notes: tuple[str, ...] = ()


class Refusal(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Why a document is no calendar that can be imported."""

    sentence: str
    advice: str


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the reading process is told before the document: the zone of times that name none, and *now*."""

    zone: str
    now: datetime


def key_of(uid: str, day: date | None = None, more: str = "") -> str:
    """An entry's key: its calendar's UID, and of a series the day (and where that is not enough, the time) on which the
    date was at first."""
    return uid if day is None else f"{uid}#{day.isoformat()}{more}"


def uid_of(key: str) -> str:
    """The UID of a key of a series' date; "" for any other."""
    return key.rpartition("#")[0]
