"""What collectors hand in: a look at the group's aggregates, and pages of its audit log.

Each is one routine call and its own transaction, and each may be repeated: the same look and the same page are kept
once. Nothing a worker says of its lease is believed before the routine has compared it with the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from lastcall.connections.refusals import refused
from lastcall.connections.signals import CONNECTION_TOPIC
from lastcall.connections.worker import LeaseHeld, Worker
from lastcall.db.bus import Hint
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.errors import Conflict, Invalid, LastcallError
from lastcall.telemetry.locations import PERSON, Place, read_place
from lastcall.telemetry.states import SAMPLE_AGE_MOST

_RECORD_SAMPLE = """
    select outcome from record_sample($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
"""
_CLAIM_PAGE = "select * from claim_audit_page($1, $2, $3, $4, $5, $6, $7, $8)"
_RECORD_PAGE = """
    select outcome from record_audit_page($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
"""
_SAME_RELEASE = "Run a collector of the same release as the server."


@dataclass(frozen=True)
class InstancePopulation:
    """An open instance as it was sent."""

    location: str
    world_id: str
    population: int


@dataclass(frozen=True)
class AuditLine:
    """A line of the audit log as it was sent."""

    entry_id: str
    at: datetime
    event: str


@dataclass(frozen=True)
class AuditPageDue:
    """The page of the log to read next: of this stretch, from this raw row on."""

    scan_id: UUID
    starts_at: datetime
    ends_at: datetime
    offset: int


async def record_sample(
    db: Database,
    worker: Worker,
    held: LeaseHeld,
    *,
    poll_id: str,
    age: timedelta,
    member_count: int | None,
    instances: Sequence[InstancePopulation],
) -> bool:
    """Keep one look at the group; False when this poll is there already.

    It is all kept or all refused. Raises ``Invalid`` for a look older than a quarter of an hour, and for instances that
    are another group's, named twice, malformed, or that name a person; a refusal for a stale key or lease, for a
    connection that may not work, and for a club without analytics.
    """
    if age > SAMPLE_AGE_MOST:
        raise Invalid(
            "sample_too_old",
            "This look is older than 15 minutes.",
            advice="Drop it and look again.",
            field="ageMs",
        )
    places = _places(instances)
    row = await db.pool.fetchrow(
        _RECORD_SAMPLE,
        *worker.arguments,
        *held.arguments,
        new_id(),
        poll_id,
        age,
        member_count,
        sorted({place.group for place in places}),
        [place.canonical for place in places],
        [place.world_id for place in places],
        [one.population for one in instances],
    )
    outcome = _outcome(row)
    if outcome not in {"recorded", "known"}:
        raise _refused(outcome)
    if outcome == "recorded":
        db.bus.deliver([Hint(held.club_id, CONNECTION_TOPIC)])
    return outcome == "recorded"


async def claim_audit_page(db: Database, worker: Worker, held: LeaseHeld) -> AuditPageDue | None:
    """The page to read next; None when the log is read up to date or the group does not show it to the account.

    A stretch covers a day at most and ends a minute ago, because lines appear late; the next one begins five minutes
    before it. One that was begun under an earlier lease goes on where that one stopped.
    """
    row = await db.pool.fetchrow(_CLAIM_PAGE, *worker.arguments, *held.arguments, new_id())
    match _outcome(row):
        case "nothing":
            return None
        case "page":
            assert row is not None
            return AuditPageDue(row["scan_id"], row["starts_at"], row["ends_at"], row["next_offset"])
        case outcome:
            raise _refused(outcome)


async def record_audit_page(
    db: Database,
    worker: Worker,
    held: LeaseHeld,
    scan_id: UUID,
    offset: int,
    *,
    raw_count: int,
    is_last: bool,
    lines: Sequence[AuditLine],
) -> bool:
    """Keep the page of a stretch at ``offset``; False when it is there already.

    The offset moves on by ``raw_count``, the rows that VRChat gave. Raises ``Invalid`` for lines that name a person and
    for more lines than rows, ``Conflict`` for a page that is not the next one, and the refusals of ``record_sample``.
    """
    if len(lines) > raw_count or any(PERSON in f"{line.entry_id} {line.event}".lower() for line in lines):
        raise Invalid(
            "audit_page_malformed",
            "The page has more lines than rows, or a line of it names a person.",
            advice=_SAME_RELEASE,
            field="entries",
        )
    row = await db.pool.fetchrow(
        _RECORD_PAGE,
        *worker.arguments,
        *held.arguments,
        scan_id,
        offset,
        raw_count,
        is_last,
        [line.entry_id for line in lines],
        [line.at for line in lines],
        [line.event for line in lines],
    )
    outcome = _outcome(row)
    if outcome not in {"recorded", "known"}:
        raise _refused(outcome)
    return outcome == "recorded"


def _places(instances: Sequence[InstancePopulation]) -> list[Place]:
    places = [read_place(one.location) for one in instances]
    is_whole = all(
        place.world_id == one.world_id for place, one in zip(places, instances, strict=True)
    ) and len({place.key for place in places}) == len(places)
    if not is_whole:
        raise Invalid(
            "sample_malformed",
            "An instance is named twice, or its world is not the one of its location.",
            advice=_SAME_RELEASE,
            field="instances",
        )
    return places


def _outcome(row: asyncpg.Record | None) -> str:
    if row is None:
        raise AssertionError("The routine answers exactly one row.")
    return str(row["outcome"])


def _refused(outcome: str) -> LastcallError:
    match outcome:
        case "other_group":
            return Invalid(
                "sample_of_other_group",
                "An instance belongs to another group.",
                advice=_SAME_RELEASE,
                field="instances",
            )
        case "analytics_off":
            return Conflict(
                "analytics_off", "The club does not collect analytics.", advice="Drop what you hold of them."
            )
        case "elsewhere":
            return Conflict(
                "audit_page_elsewhere",
                "This is not the page of the log that comes next.",
                advice="Drop it and ask which one does.",
            )
        case _:
            return refused(outcome)
