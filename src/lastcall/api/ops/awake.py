"""What keeps a host from sleeping: work that no alarm from outside covers (SCH-09).

A deadline is covered by one: the host is woken for it. What lives in this process alone is not: somebody who waits here
to be told, a message on its way, a commit whose outcome nobody knows yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec import Struct

from lastcall.deadlines.lane import OwnerStatus
from lastcall.deadlines.scheduler import Scheduler


@dataclass(frozen=True)
class Awake:
    """One sort of work that needs this process awake. ``name`` is for programs, ``says`` for people, and ``count`` how
    much of it there is now."""

    name: str
    says: str
    count: Callable[[], int]


class Reason(Struct, frozen=True, rename="camel", kw_only=True):
    """Why the host must not sleep now."""

    reason: str
    count: int
    says: str


class NextWake(Struct, frozen=True, rename="camel", kw_only=True):
    """When this process must be awake next. ``next_wake`` is by the database's clock, and ``in_seconds`` how long until
    then: never more, so that an alarm set by it is not late. Both are null with nothing to come; ``owner`` is whose
    deadline it is."""

    next_wake: datetime | None
    in_seconds: float | None
    owner: str | None
    may_sleep: bool
    reasons: list[Reason]


def of_owners(status: Callable[[], Sequence[OwnerStatus]]) -> tuple[Awake, ...]:
    """What the scheduler itself has in hand."""
    return (
        Awake("owners_working", "Due work is under way.", lambda: sum(one.running for one in status())),
        Awake(
            "commits_unclear",
            "Nobody knows yet whether these were saved; they are asked for every 30 seconds.",
            lambda: sum(one.unclear_commits for one in status()),
        ),
    )


def next_wake(scheduler: Scheduler, awake: Sequence[Awake]) -> NextWake:
    """What this process knows by itself; nothing is asked of the database."""
    wake = scheduler.earliest_wake()
    counted = [(one, one.count()) for one in awake]
    reasons = [Reason(reason=one.name, count=count, says=one.says) for one, count in counted if count]
    return NextWake(
        next_wake=wake.at if wake else None,
        in_seconds=max(wake.delay, timedelta(0)).total_seconds() if wake else None,
        owner=wake.owner if wake else None,
        may_sleep=not reasons and (wake is None or wake.delay > timedelta(0)),
        reasons=reasons,
    )
