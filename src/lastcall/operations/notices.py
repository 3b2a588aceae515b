"""The notices that a reader has: what did not end well, is theirs to know of, and was not dismissed by them yet.

For whom a notice is, is judged anew each time: for the person under whose authority the operation stood, while they
hold its permission; for the owner once that person is off the staff.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from lastcall.clubs.policy import Standing
from lastcall.db.cursor import LAST, Cursor
from lastcall.db.transaction import Reader
from lastcall.operations.kinds import kinds_visible_to
from lastcall.operations.machine import State
from lastcall.operations.queries import PAGE_MOST
from lastcall.operations.views import FIELDS, JOINS, OperationView, views
from lastcall.people.actor import Actor

NOTICES = "operation_notices"
"""The list, in its cursors."""

_AUTHORS = """
    select $2::uuid union select departed.id from departed_actors($1) as departed (id) where $3::boolean
"""
# Author by author, each from the index. The operation is looked at as well: a notice is of the revision and the outcome
# that it has now.
_OPEN = f"""
    select {FIELDS}, n.notice_at
      from unnest($3::uuid[]) as a (actor_id)
     cross join lateral (
           select n.club_id, n.id, n.created_at as notice_at
             from operation_notices n
             join operations s on s.club_id = n.club_id and s.id = n.id
            where n.club_id = $1 and n.actor_id = a.actor_id and (n.created_at, n.id) < ($5, $6)
              and n.outcome = s.state and n.revision = s.revision and s.kind = any ($4::text[])
              and not exists (
                  select from operation_notice_reads r
                   where r.club_id = n.club_id and r.person_id = $2 and r.notice_id = n.id)
            order by n.created_at desc, n.id desc
            limit $7) as n
      join operations o on o.club_id = n.club_id and o.id = n.id {JOINS}
     order by n.notice_at desc, o.id desc
     limit $7
"""  # noqa: S608
_THEIRS = """
    select n.id
      from operation_notices n
      join operations o on o.club_id = n.club_id and o.id = n.id
     where n.club_id = $1 and n.id = any ($2::uuid[]) and n.actor_id = any ($3::uuid[]) and o.kind = any ($4::text[])
"""


@dataclass(frozen=True)
class NoticeView:
    """A notice as its recipient sees it: since when, and the operation with its outcome and reason. Pages show it as a
    state and a link, and nothing of what the operation says.
    """

    noticed_at: datetime
    operation: OperationView

    @property
    def id(self) -> UUID:
        """The operation's own."""
        return self.operation.id

    @property
    def outcome(self) -> State:
        return self.operation.state

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.noticed_at, self.id)


async def notices(
    tx: Reader,
    standing: Standing,
    actor: Actor,
    club_id: UUID,
    *,
    after: Cursor | None = None,
    limit: int = 50,
) -> list[NoticeView]:
    """What waits for the reader, the newest first; ``after`` is the last row of the page before."""
    start = after or LAST
    authors = await _authors(tx, standing, actor.person_id, club_id)
    rows: Sequence[asyncpg.Record] = await tx.raw.fetch(
        _OPEN,
        club_id,
        actor.person_id,
        authors,
        kinds_visible_to(standing),
        start.time,
        start.id,
        min(limit, PAGE_MOST),
    )
    times = {row["id"]: row["notice_at"] for row in rows}
    return [NoticeView(times[view.id], view) for view in views(rows, standing, actor)]


async def theirs(
    tx: Reader, standing: Standing, person_id: UUID, club_id: UUID, notice_ids: Collection[UUID]
) -> set[UUID]:
    """Those of these notices that are for the person of that standing, dismissed or not."""
    authors = await _authors(tx, standing, person_id, club_id)
    rows = await tx.raw.fetch(_THEIRS, club_id, list(notice_ids), authors, kinds_visible_to(standing))
    return {row["id"] for row in rows}


async def _authors(tx: Reader, standing: Standing, person_id: UUID, club_id: UUID) -> list[UUID]:
    rows = await tx.raw.fetch(_AUTHORS, club_id, person_id, standing.is_owner)
    return [row[0] for row in rows]
