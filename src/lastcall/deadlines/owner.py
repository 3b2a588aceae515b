"""What the scheduler and the code that owns a kind of deadline say to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

RETRY = timedelta(seconds=30)
"""How long a failure waits before it is tried again (RET-08)."""

PAGE = 100
"""Rows that one pass attempts at most (RET-06)."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in an owner's order: the time at the database's full precision, ties broken by id (RET-07).

    Python compares a UUID as PostgreSQL does, byte by byte, so positions sort here as they do there.
    """

    time: datetime
    id: UUID


def behind(beyond: Position | None) -> tuple[object, object]:
    """The two arguments of a statement that looks behind a position: both null for none."""
    return (None, None) if beyond is None else (beyond.time, beyond.id)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one indexed statement saw, both times by the database's clock.

    ``deadline`` is never before the moment at which the row is really due: where the time is derived, the
    statement rounds it up to the millisecond (RET-04). None: nothing is to be waited for.
    """

    now: datetime
    deadline: datetime | None


class Stop:
    """Asked for once, never taken back: the row in hand is finished and no other is begun (SCH-05)."""

    __slots__ = ("_requested",)

    def __init__(self) -> None:
        self._requested = False

    @property
    def requested(self) -> bool:
        return self._requested

    def request(self) -> None:
        self._requested = True


@dataclass(frozen=True, slots=True)
class PoisonRow:
    """A due row that failed, as the operator's page shows it. It is a memory of this process, not a
    record.
    """

    club_id: UUID | None
    id: UUID
    due: datetime
    failures: int
    error: str
    retry_in: timedelta


@dataclass(frozen=True, slots=True)
class More:
    """This pass ended at its bound; there may be more to do at once. ``done`` counts the rows settled."""

    done: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left that was due when the cycle began."""

    done: int = 0


@dataclass(frozen=True, slots=True)
class Early:
    """Nothing is due yet; come again after exactly ``delay``. No failure."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class Failed:
    """Something failed and is tried again after ``retry_in``.

    With ``beyond`` the cycle itself is over and only some of its rows failed: they are set apart, and the
    next deadline is read behind that position, so that rows which keep failing do not own the owner. Without
    it the pass as a whole came to nothing. ``failures`` counts the attempts that failed in the pass or cycle;
    none when its poison rows were only stepped past.
    """

    error: str
    retry_in: timedelta = RETRY
    beyond: Position | None = None
    done: int = 0
    failures: int = 1
    poison: Sequence[PoisonRow] = ()


PassResult = More | Done | Early | Failed


class Owner(Protocol):
    """The code that owns one kind of deadline."""

    @property
    def name(self) -> str:
        """The name that signals carry."""
        ...

    async def next_deadline(self, beyond: Position | None = None) -> Reading:
        """Read the earliest deadline over all clubs, in one indexed statement that takes no locks.

        ``beyond`` leaves out every row at or before that position.
        """
        ...

    async def run_pass(self, stop: Stop) -> PassResult:
        """Do a bounded amount of the work that is due by the database's clock; look at ``stop`` between
        rows.
        """
        ...


def describe(error: BaseException) -> str:
    """One line about an error for a log line or the operator's page.

    Only the first line of its text: drivers put statements and their parameters on the ones after it.
    """
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200]}" if text else type(error).__name__
