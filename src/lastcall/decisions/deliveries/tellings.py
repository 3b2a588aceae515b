"""Tells those who may decide what retention does to what nobody decides: a reminder before, a digest after, one of each
a club and day in UTC.

Which club has something to be told, and when, is noted in the transaction that makes it so (``7_note_tellings.sql``);
what there is to tell is counted from the rows when its time has come. So nobody is reminded of what was decided
meanwhile, and no reminder is sent for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, ClassVar
from uuid import UUID

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.db.database import Database
from lastcall.db.transaction import Reader, Transaction
from lastcall.deadlines.noted import NotedWork, Notes
from lastcall.deadlines.owner import Owner
from lastcall.deadlines.paged import PagedOwner
from lastcall.deadlines.poison import Candidate
from lastcall.decisions.deliveries.deliver import Message, ToPerson, deliver
from lastcall.decisions.deliveries.recipients import holders
from lastcall.decisions.deliveries.signals import RETENTION_DIGEST, RETENTION_REMINDER
from lastcall.decisions.deliveries.words import COUNTED
from lastcall.decisions.retention.kinds import KINDS

_TAKE = """
    delete from retention_tellings
     where club_id = $1 and kind = $2 and tell_at <= lastcall_now()
    returning day, (select c.retention_days from clubs c where c.id = retention_tellings.club_id) as days
"""
# Each is one range of an index: of what is due some day, and of what was archived by itself.
_WAITING = """
    select count(*) from {order.table}
     where club_id = $1 and {order.where} and {order.time} >= $2 and {order.time} < $3
"""
_ARCHIVED = """
    select count(r.{name}_id) from retention r
     where r.club_id = $1 and r.archived_reason = 'idle' and r.archived_at >= $2 and r.archived_at < $3
"""


class _Tellings(NotedWork):
    """The parts that the paged owner asks for: one step is what one club is told by now."""

    kind: ClassVar[str]
    count: ClassVar[str]

    async def step(self, candidate: Candidate) -> None:
        """Take the club's notes and tell what they stand for, in one transaction: told once or not at all."""
        async with self._db.transaction() as tx:
            for day, days in await tx.raw.fetch(_TAKE, candidate.club_id, self.kind):
                await self._tell(tx, candidate.club_id, day, days)

    async def _tell(self, tx: Transaction, club_id: UUID, day: date, days: int | None) -> None:
        begins = datetime.combine(day, time(), UTC)
        found = {}
        for name, kind in KINDS.items():
            statement = self.count.format(name=name, order=kind.order)
            if count := await tx.raw.fetchval(statement, club_id, begins, begins + timedelta(days=1)):
                found[name] = count
        recipients = [ToPerson(person_id) for person_id in await _deciders(tx, club_id, found)]
        data = {"day": day.isoformat(), "days": days, **found}
        await deliver(tx, club_id, recipients, Message(f"retention.{self.kind}", day.isoformat(), data=data))


class Reminders(_Tellings):
    """Of what will be archived on a day."""

    kind, count = "reminder", _WAITING
    notes = Notes("retention_tellings", "tell_at", id="club_id", only="n.kind = 'reminder'")


class Digests(_Tellings):
    """Of what was archived on a day that is over."""

    kind, count = "digest", _ARCHIVED
    notes = Notes("retention_tellings", "tell_at", id="club_id", only="n.kind = 'digest'")


async def _deciders(tx: Reader, club_id: UUID, found: Mapping[str, Any]) -> list[UUID]:
    """Who may decide any of what was found."""
    return await holders(tx, club_id, [COUNTED[name].permission for name in found])


def telling_owners(db: Database, clock: Clock = SYSTEM_CLOCK) -> list[Owner]:
    """Both, to register with the scheduler."""
    return [
        PagedOwner(RETENTION_REMINDER, Reminders(db), clock),
        PagedOwner(RETENTION_DIGEST, Digests(db), clock),
    ]
