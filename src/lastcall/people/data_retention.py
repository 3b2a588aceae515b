"""How long each kind of personal data is kept after its use, and the owner of the deadline at which it goes.

A room says what it keeps by a ``Rule``; what ``docs/explanation/privacy.md`` promises is checked against them. All
deadlines are rounded up to the next midnight in UTC, so there is at most one wake a day, and none when nothing
will be due.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lastcall.clock import SYSTEM_CLOCK
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.deadlines.owner import Done, More, PassResult, Position, Reading, Stop
from lastcall.deadlines.signals import Signal

DATA_RETENTION = "data_retention"  # the owner's name, which signals carry
PAGE = 500  # rows a statement
SHORTEST = timedelta(days=30)
"""No rule whose rows are signalled keeps less; so whatever is written now is due no earlier."""


@dataclass(frozen=True)
class Rule:
    """One kind of data. ``ended`` is the SQL expression of when its use was over, with an index on it (for the
    rows that ``where`` leaves); ``forget`` what is set then, or the row goes when there is none.

    ``what`` is the words of the documentation.
    """

    what: str
    table: str
    ended: str
    keep: timedelta
    where: str = "true"
    forget: str | None = None

    @property
    def due(self) -> str:
        """The moment at which the earliest row is due, in SQL: one probe of its index."""
        return (
            f"(select {self.ended} + interval '{self.keep.total_seconds():.0f} seconds' from {self.table}"  # noqa: S608
            f" where {self.where} and {self.ended} is not null order by {self.ended} limit 1)"
        )

    @property
    def settle(self) -> str:
        """Forget a page of what is due. Locked rows are waited for; the order keeps two processes from crossing."""
        rows = (
            f"select ctid from {self.table} where {self.where}"  # noqa: S608
            f" and {self.ended} <= (select lastcall_now()) - interval '{self.keep.total_seconds():.0f} seconds'"
            f" order by {self.ended} limit {PAGE} for update"
        )
        change = f"delete from {self.table}"  # noqa: S608
        if self.forget:
            change = f"update {self.table} set {self.forget}"  # noqa: S608
        return f"{change} where ctid = any (array({rows}))"


_rules: list[Rule] = []


def keep(*rules: Rule) -> None:
    """Register how long a room's data is kept. Registering twice is once."""
    for rule in rules:
        if rule not in _rules:
            _rules.append(rule)


def rules() -> tuple[Rule, ...]:
    """Every registered rule."""
    return tuple(_rules)


def midnight_after(moment: datetime) -> datetime:
    """The first midnight in UTC at or after ``moment``."""
    day = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return day if day == moment else day + timedelta(days=1)


def data_written(tx: Transaction) -> None:
    """Say, in the transaction that writes some, that there is data to forget one day. Costs no SQL.

    The deadline is the earliest that any of it can have; what the rows say is read when it comes.
    """
    tx.publish(Signal(DATA_RETENTION, midnight_after(SYSTEM_CLOCK.wall() + SHORTEST)))


class DataRetention:
    """The owner as the scheduler takes it: a page of one rule a pass."""

    name = DATA_RETENTION

    def __init__(self, db: Database, kept: tuple[Rule, ...]) -> None:
        self._db = db
        self._rules = kept
        earliest = ", ".join(rule.due for rule in kept)
        self._next = (
            "select (select lastcall_now()) as now,"  # noqa: S608
            " case when date_trunc('day', due, 'UTC') = due then due"
            " else date_trunc('day', due, 'UTC') + interval '1 day' end as deadline"
            f" from (select least({earliest}) as due) earliest"
        )

    async def next_deadline(self, beyond: Position | None = None) -> Reading:
        """The first midnight at which anything is due. Nothing is set apart here, so ``beyond`` never comes."""
        del beyond
        row = await self._db.pool.fetchrow(self._next)
        assert row is not None
        return Reading(now=row["now"], deadline=row["deadline"])

    async def run_pass(self, stop: Stop) -> PassResult:
        """One page of each rule. An error ends the pass and is tried again by the scheduler."""
        done, is_more = 0, False
        for rule in self._rules:
            if stop.requested:
                return More(done)
            # The tag of the statement says how many rows it changed.
            changed = int((await self._db.pool.execute(rule.settle)).rpartition(" ")[2])
            done += changed
            is_more = is_more or changed == PAGE
        return More(done) if is_more else Done(done)


def data_retention(db: Database) -> DataRetention:
    """The owner over all rules registered so far."""
    return DataRetention(db, rules())
