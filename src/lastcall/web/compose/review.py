"""Everything that will be queued, as the person sees it before they confirm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lastcall.db.ids import encode_id, new_id
from lastcall.errors import Invalid
from lastcall.operations.forecast import Forecast
from lastcall.operations.kinds.kind import Kind
from lastcall.operations.schedules import Immediate, Schedule
from lastcall.web import looks
from lastcall.web.compose.fields import Given
from lastcall.web.compose.timing import Timing, read_moment
from lastcall.web.recipients import Recipient

PARTS_MOST = 100


@dataclass(frozen=True)
class Part:
    """One request: so many of the targets, due then. ``due_at`` is None for now."""

    due_at: datetime | None
    people: Sequence[Recipient]
    payloads: Sequence[Mapping[str, Any]]
    schedule: Schedule


@dataclass(frozen=True)
class Review:
    """``request_key`` is made here, so that confirming twice queues once. ``spread`` are the due times of the parts
    that the targets are spread over, with how many each has; empty for one request."""

    request_key: str
    kind: Kind[Any]
    given: Given
    timing: Timing
    forecast: Forecast | None
    spread: tuple[tuple[datetime, int], ...] = ()
    banned: frozenset[str] = frozenset()
    """Of the people those whom VRChat named as banned a moment ago."""
    chosen: frozenset[str] = frozenset()
    """Of those the ones whose ban is to be lifted."""
    draft: str = ""
    """The draft and its revision that is queued, as ``id.revision``."""
    read: str = ""
    """The read whose list the people were chosen from; it is confirmed only while that is fresh (INS-02)."""
    check: str = ""
    """The read that was made for it, if any."""

    @property
    def people(self) -> tuple[Recipient, ...]:
        return self.given.recipients.people

    @property
    def confirm_words(self) -> str:
        return looks.confirm_words(self.kind.name, max(len(self.people), 1))

    @property
    def hidden(self) -> dict[str, str]:
        """What the confirmation sends again, but for the people and longer texts."""
        carried = {name: text for name, text in self.given.values.items() if name not in ("people", "text")}
        due_at = self.timing.due_at
        return {
            "request_key": self.request_key,
            **carried,
            **self.timing.when.as_fields(),
            "reviewed": "" if due_at is None else due_at.isoformat(),
            "spread": ";".join(f"{due.isoformat()},{count}" for due, count in self.spread),
            "draft": self.draft,
            "read": self.read,
            "check": self.check,
        }

    @property
    def people_text(self) -> str:
        return "\n".join(f"{person.user_id} {person.label}".strip() for person in self.people)

    @property
    def request_keys(self) -> list[str]:
        """The id of each request that is queued."""
        count = len(self.parts)
        return [self.request_key] if count == 1 else [f"{self.request_key}_{n}" for n in range(count)]

    @property
    def parts(self) -> list[Part]:
        """What is queued, request by request."""
        return list(self._parts())

    def _parts(self) -> Iterator[Part]:
        schedule = self.timing.schedule
        assert schedule is not None
        payloads = self.given.payloads(self.kind)
        if not self.spread:
            yield Part(self.timing.due_at, self.people, payloads, schedule)
            return
        start = 0
        for number, (due_at, count) in enumerate(self.spread):
            end = start + count
            is_now = number == 0 and isinstance(schedule, Immediate)
            own = schedule if is_now else self.timing.at(due_at)
            yield Part(None if is_now else due_at, self.people[start:end], payloads[start:end], own)
            start = end


def new_request_key() -> str:
    return encode_id(new_id())


def read_spread(text: str, count: int) -> tuple[tuple[datetime, int], ...]:
    """The parts that a review carried. Raises ``Invalid`` unless they hold just the ``count`` targets."""
    if not text:
        return ()
    parts = []
    for part in text.split(";")[: PARTS_MOST + 1]:
        moment, _, number = part.partition(",")
        parts.append((read_moment(moment), int(number) if number.isascii() and number.isdigit() else 0))
    if sum(number for _, number in parts) != count or not all(0 < number <= count for _, number in parts):
        raise Invalid("form_incomplete", "This form is not complete.", advice="Review it again.")
    return tuple(parts)
