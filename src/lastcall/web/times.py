"""Times for people: in the viewer's zone, relative beside absolute, UTC at hand. Pure functions, no clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_ZONE_NAME_LENGTH = 64


@lru_cache(maxsize=256)
def zone_named(name: str | None) -> ZoneInfo | None:
    """The zone of that name, or ``None`` for anything that is not one (a cookie can say anything)."""
    if not name or len(name) > _ZONE_NAME_LENGTH:
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return None


def relative(moment: datetime, now: datetime) -> str:
    """``in 12 minutes``, ``3 h ago``, ``now``: two words, rounded down. live.js has the same rule for open
    pages.
    """
    ahead = moment >= now
    span = abs(moment - now)
    if span < MINUTE:
        return "now" if span < timedelta(seconds=10) else ("in under a minute" if ahead else "a moment ago")
    if span < HOUR:
        amount, unit = span // MINUTE, "min"
    elif span < DAY:
        amount, unit = span // HOUR, "h"
    else:
        amount, unit = span // DAY, "day" if span // DAY == 1 else "days"
    return f"in {amount} {unit}" if ahead else f"{amount} {unit} ago"


def day_title(day: date, today: date) -> str:
    """``Today``, ``Tomorrow``, ``Yesterday``, else ``Saturday 5 December`` (with the year when it is
    another).
    """
    distance = (day - today).days
    near = {0: "Today", 1: "Tomorrow", -1: "Yesterday"}.get(distance)
    if near:
        return near
    title = f"{day:%A} {day.day} {day:%B}"
    return title if day.year == today.year else f"{title} {day.year}"


def duration(span: timedelta) -> str:
    """``under a minute``, ``7 minutes``, ``2 h 5 min``; rounded up, because it is a promise of waiting."""
    minutes = -(-span // MINUTE)
    if span < MINUTE:
        return "under a minute"
    if minutes < 60:
        return f"{minutes} minute{'s' if minutes > 1 else ''}"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def offset_words(offset: timedelta) -> str:
    """``30 minutes before its start``, ``2 h 5 min after its start``, ``at its start``."""
    if not offset:
        return "at its start"
    return f"{duration(abs(offset))} {'after' if offset > timedelta(0) else 'before'} its start"


@dataclass(frozen=True)
class Zoned:
    """The viewer's zone and the moment the page was made; what templates ask for every time they show one."""

    zone: ZoneInfo
    now: datetime

    @property
    def today(self) -> date:
        return self.now.astimezone(self.zone).date()

    def local(self, moment: datetime) -> datetime:
        return moment.astimezone(self.zone)

    def day(self, moment: datetime) -> str:
        return day_title(self.local(moment).date(), self.today)

    def clock(self, moment: datetime) -> str:
        return f"{self.local(moment):%H:%M}"

    def second(self, moment: datetime) -> str:
        """The clock to the second, where less than a minute counts."""
        return f"{self.local(moment):%H:%M:%S}"

    def date(self, moment: datetime) -> str:
        """``5 Dec 2026``: for what lies far back."""
        local = self.local(moment)
        return f"{local.day} {local:%b %Y}"

    def full(self, moment: datetime) -> str:
        """Day, time and zone: for a review, where nothing may be guessed."""
        local = self.local(moment)
        zone = ", ".join(dict.fromkeys([f"{local:%Z}", self.zone.key]))
        return f"{local:%A} {local.day} {local:%B %Y, %H:%M:%S} ({zone})"

    def short(self, moment: datetime) -> str:
        """The clock today, else day and clock: for tables."""
        local = self.local(moment)
        if local.date() == self.today:
            return f"{local:%H:%M}"
        return (
            f"{local.day} {local:%b %H:%M}"
            if local.year == self.today.year
            else f"{local.day} {local:%b %Y %H:%M}"
        )

    def relative(self, moment: datetime) -> str:
        return relative(moment, self.now)


def utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
