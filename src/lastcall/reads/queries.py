"""What whoever may look sees of a read now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from lastcall.clubs.policy import require_staff
from lastcall.db.transaction import Reader
from lastcall.errors import NotFound
from lastcall.operations.codes import Reason
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope
from lastcall.reads.codes import REASONS
from lastcall.reads.kinds import KINDS
from lastcall.reads.kinds.fields import Item, Params
from lastcall.reads.kinds.kind import ReadKind
from lastcall.reads.states import ReadState

# What was read under another epoch, account or key is not there any more.
_READ = """
    select r.id, r.kind, r.params::text as params, r.requested_at, r.observed_at, r.total, c.features,
           s.state, s.code, s.remaining,
           case when s.remaining > interval '0' then r.items::text end as items,
           case when s.remaining > interval '0' then r.next_offset end as next_offset
      from provider_reads r
      join connections c
        on c.club_id = r.club_id and c.id = r.connection_id and c.epoch = r.epoch and c.account_id = r.account_id
       and c.state not in ('disconnecting', 'disconnected')
      join accounts a on a.id = r.account_id and a.credential_generation = r.credential_generation
     cross join lateral read_standing(r, (select lastcall_now())) as s
     where r.club_id = $1 and r.id = $2
"""


@dataclass(frozen=True)
class Read:
    """A read as it stands at the moment of the look.

    ``items`` are there while it is fresh, typed as its kind says, and never after: whoever shows them takes them away
    when ``remaining`` is over, counted on a clock that nobody can set from before the look was sent.
    """

    id: UUID
    kind: ReadKind[Any, Any]
    params: Params
    state: ReadState
    requested_at: datetime
    observed_at: datetime | None
    remaining: timedelta
    items: Sequence[Item]
    next_offset: int | None
    total: int | None
    code: str | None

    @property
    def is_fresh(self) -> bool:
        """Whether it may be shown; at the boundary of sixty seconds it is over."""
        return self.remaining > timedelta(0)

    @property
    def remaining_ms(self) -> int:
        """How much longer it may be shown, in whole milliseconds, rounded down."""
        return self.remaining // timedelta(milliseconds=1)

    @property
    def reason(self) -> Reason | None:
        """Why it failed, in words."""
        return None if self.code is None else REASONS[self.code]


async def read_of(tx: Reader, actor: Actor, club_id: UUID, read_id: UUID) -> Read:
    """The read, for anybody who holds its permission now, whoever asked for it.

    ``NotFound`` for everybody else, when its feature is off, and when the connection, its account or that one's key is
    another than it was asked under.
    """
    standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
    read = await current_read(tx, club_id, read_id)
    if read is None or not standing.holds(read.kind.permission):
        raise read_unknown()
    return read


async def current_read(tx: Reader, club_id: UUID, read_id: UUID) -> Read | None:
    """The read, for a caller who knows that it may be seen; None where nobody may see it any more."""
    row = await tx.raw.fetchrow(_READ, club_id, read_id)
    if row is None:
        return None
    kind = KINDS.get(row["kind"])
    return None if kind is None or kind.feature not in row["features"] else _read(kind, row)


def _read(kind: ReadKind[Any, Any], row: asyncpg.Record) -> Read:
    items = row["items"]
    return Read(
        id=row["id"],
        kind=kind,
        params=msgspec.json.decode(row["params"], type=kind.params),
        state=ReadState(row["state"]),
        requested_at=row["requested_at"],
        observed_at=row["observed_at"],
        remaining=row["remaining"],
        items=() if items is None else msgspec.json.decode(items, type=tuple[kind.item, ...]),  # type: ignore[name-defined]
        next_offset=row["next_offset"],
        total=row["total"],
        code=row["code"],
    )


def read_unknown() -> NotFound:
    """The one answer for a read that is not there and for one that is not for the reader."""
    return NotFound("read_unknown", "There is no such read any more.", advice="Refresh to read it anew.")
