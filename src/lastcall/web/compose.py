"""The New action form: what a person typed, what is wrong with it, and the review made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from lastcall.db.ids import encode_id, new_id
from lastcall.errors import Invalid
from lastcall.operations.forecast import Forecast
from lastcall.operations.kinds.kind import Kind
from lastcall.operations.schedules import Fixed, Immediate, Schedule, due_time
from lastcall.protocol.constants import GRACE
from lastcall.web import looks
from lastcall.web.recipients import LineProblem, Recipient, Recipients, read_recipients
from lastcall.web.times import MINUTE, parse_local, zone_named

FIELD_MOST = 200


@dataclass(frozen=True)
class Form:
    """One submission, read. ``problems`` is by field, ``lines`` by line of the people field."""

    people: str = ""
    role: str = ""
    when: str = "now"
    at: str = ""
    zone: str = ""
    """The zone that ``at`` was typed in; empty on a fresh form, which takes the viewer's."""
    problems: Mapping[str, str | None] = field(
        default_factory=lambda: dict.fromkeys(("people", "role", "at"))
    )
    lines: tuple[LineProblem, ...] = ()

    @property
    def problem_count(self) -> int:
        return sum(1 for problem in self.problems.values() if problem) + len(self.lines)


@dataclass(frozen=True)
class Review:
    """Everything that will be queued. ``request_key`` is made here, so that confirming twice queues once."""

    request_key: str
    kind: Kind[Any]
    people: tuple[Recipient, ...]
    role: str
    role_name: str | None
    when: str
    at: str
    zone: str
    due_at: datetime | None
    schedule: Schedule
    forecast: Forecast | None

    @property
    def title(self) -> str:
        return self.kind.words.label

    @property
    def confirm_words(self) -> str:
        return looks.confirm_words(self.kind.name, len(self.people))

    @property
    def people_text(self) -> str:
        return "\n".join(f"{person.user_id} {person.label}".strip() for person in self.people)

    @property
    def payloads(self) -> list[dict[str, Any]]:
        extra = {"roleId": self.role} if self.role else {}
        return [{"kind": self.kind.name, "targetUserId": person.user_id, **extra} for person in self.people]


def has_form(kind: Kind[Any]) -> bool:
    """Whether people and a role are all that a person has to give for this kind."""
    return set(kind.payload.__struct_fields__) <= {"target_user_id", "role_id"}


def takes_role(kind: Kind[Any]) -> bool:
    return "role_id" in kind.payload.__struct_fields__


def read_form(
    kind: Kind[Any], fields: Mapping[str, str], now: datetime, *, is_confirmation: bool = False
) -> tuple[Form, Recipients, Schedule | None]:
    """Read a submission: the form to show again, the people in it, and the schedule when it is a good one.

    A time that has just passed is refused at review; a confirmation may come up to the grace later.
    """
    people = _text(fields, "people", None)
    role = _text(fields, "role") if takes_role(kind) else ""
    when, at, zone = _text(fields, "when"), _text(fields, "at"), _text(fields, "zone")
    recipients = read_recipients(people, 100 if kind.is_bulk else 1)
    problems: dict[str, str | None] = dict.fromkeys(("people", "role", "at"))
    if not recipients.people and not recipients.problems:
        problems["people"] = "Nobody is named here yet."
    if takes_role(kind):
        problems["role"] = _role_problem(kind, role)
    schedule: Schedule | None = Immediate()
    if when == "at":
        tolerance = GRACE if is_confirmation else MINUTE
        schedule, problems["at"] = _read_time(at, zone, now, tolerance=tolerance)
    form = Form(people, role, "at" if when == "at" else "now", at, zone, problems, recipients.problems)
    return form, recipients, schedule


def make_review(
    kind: Kind[Any],
    form: Form,
    recipients: Recipients,
    schedule: Schedule,
    *,
    role_name: str | None,
    forecast: Forecast | None,
    request_key: str | None = None,
) -> Review:
    """The review of a form without problems; a confirmation that failed keeps its ``request_key``."""
    return Review(
        request_key=encode_id(new_id()) if request_key is None else request_key,
        kind=kind,
        people=recipients.people,
        role=form.role,
        role_name=role_name,
        when=form.when,
        at=form.at,
        zone=form.zone,
        due_at=schedule.due_at if isinstance(schedule, Fixed) else None,
        schedule=schedule,
        forecast=forecast,
    )


def _text(fields: Mapping[str, str], name: str, most: int | None = FIELD_MOST) -> str:
    return fields.get(name, "")[:most].strip()


def _role_problem(kind: Kind[Any], role: str) -> str | None:
    if not role:
        return "Choose the role."
    try:
        kind.parse({"targetUserId": f"usr_{_NOBODY}", "roleId": role}, "role")
    except Invalid as error:
        return error.sentence
    return None


_NOBODY = "00000000-0000-0000-0000-000000000000"


def _read_time(
    at: str, zone_name: str, now: datetime, *, tolerance: timedelta
) -> tuple[Schedule | None, str | None]:
    zone = zone_named(zone_name)
    if zone is None:
        return None, "The time zone of this form is unknown; reload the page."
    if not at:
        return None, "Choose a day and a time, or Now."
    moment = parse_local(at, zone)
    if moment is None:
        return None, f"This is not a time that exists in {zone.key}: the clocks may skip it."
    schedule = Fixed(moment)
    if moment < now - tolerance:
        return None, "That time has passed. Choose a later one, or Now."
    try:
        due_time(schedule, now)
    except Invalid as error:
        return None, f"{error.sentence} {error.advice}".strip()
    return schedule, None
