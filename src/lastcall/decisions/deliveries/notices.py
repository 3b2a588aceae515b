"""What a reader was told and has not dismissed yet: on their pages, in their own words, judged anew each time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from lastcall.clubs.policy import Standing, require_staff
from lastcall.db.bus import Hint
from lastcall.db.cursor import LAST, Cursor
from lastcall.db.database import Database
from lastcall.db.transaction import Reader
from lastcall.decisions.deliveries.kinds import Told, Words, kind_of
from lastcall.decisions.deliveries.signals import NOTICES
from lastcall.errors import Invalid
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

LISTING = "notices"
"""The list, in its cursors."""
PAGE_MOST = 100

# Club by club, each from the index of what a person has not dismissed.
_PAGE = """
    select d.club_id, d.id, d.created_at, d.kind, d.source_id, d.data, c.name as club, c.slug
      from unnest($1::uuid[]) as n (club_id)
     cross join lateral (
           select d.club_id, d.id, d.created_at, d.kind, coalesce(d.approval_id, d.decision_id) as source_id, d.data
             from deliveries d
            where d.club_id = n.club_id and d.person_id = $2 and d.channel = 'app' and d.dismissed_at is null
              and (d.created_at, d.id) < ($3, $4)
            order by d.created_at desc, d.id desc
            limit $5) as d
      join clubs c on c.id = d.club_id
     order by d.created_at desc, d.id desc
     limit $5
"""
_DISMISS = """
    update deliveries
       set dismissed_at = lastcall_now()
     where club_id = $1 and person_id = $2 and id = any ($3::uuid[]) and channel = 'app' and dismissed_at is null
"""


@dataclass(frozen=True)
class NoticeView:
    """Something that a person was told. ``path`` leads to what it is about."""

    club_id: UUID
    id: UUID
    told_at: datetime
    kind: str
    subject: str
    sentence: str
    action: str
    path: str


@dataclass(frozen=True)
class NoticesPage:
    """The newest first. ``next`` is the last row that was looked at, where more may come; None at the end."""

    items: Sequence[NoticeView]
    next: Cursor | None


async def notices_of(
    tx: Reader,
    actor: Actor,
    standings: Mapping[UUID, Standing],
    *,
    after: Cursor | None = None,
    limit: int = 50,
) -> NoticesPage:
    """What the actor was told in these clubs, by what they are in each now: what they may not know of any more is left
    out. One statement, however many clubs.
    """
    actor.require_scope(Scope.READ)
    clubs = [club_id for club_id, standing in standings.items() if standing.is_staff]
    start, room = after or LAST, min(limit, PAGE_MOST)
    rows = await tx.raw.fetch(_PAGE, clubs, actor.person_id, start.time, start.id, room)
    items = [
        _view(row, words) for row in rows if (words := _words(row, standings[row["club_id"]])) is not None
    ]
    last = Cursor(rows[-1]["created_at"], rows[-1]["id"]) if len(rows) == room else None
    return NoticesPage(items, last)


async def dismiss_notices(db: Database, actor: Actor, club_id: UUID, ids: Collection[UUID]) -> None:
    """Show these of the actor's notices to them no more. One that is dismissed already, or is not theirs, stays as it
    is: a person's own sight is all that this changes.

    Raises ``NotFound`` off the staff, and ``Invalid`` for more than a page of them.
    """
    if len(ids) > PAGE_MOST:
        raise Invalid(
            "too_many_notices",
            f"At most {PAGE_MOST} notices are dismissed at once.",
            advice="Dismiss them page by page.",
            field="ids",
        )
    async with db.transaction() as tx:
        await require_staff(tx, actor, club_id, scope=Scope.DECISIONS)
        await tx.raw.execute(_DISMISS, club_id, actor.person_id, sorted(set(ids)))
        tx.publish(Hint(club_id, NOTICES))


def _words(row: asyncpg.Record, standing: Standing) -> Words | None:
    kind = kind_of(row["kind"])
    return None if kind is None else kind.say(Told(row["club"], row["source_id"], row["data"]), standing)


def _view(row: asyncpg.Record, words: Words) -> NoticeView:
    return NoticeView(
        row["club_id"],
        row["id"],
        row["created_at"],
        row["kind"],
        words.subject,
        words.sentence,
        words.action,
        f"/c/{row['slug']}/{words.place}",
    )
