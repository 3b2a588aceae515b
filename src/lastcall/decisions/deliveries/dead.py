"""Deliveries that came to nothing, for those who can mend why, and how one is tried again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from lastcall.clubs.activity import log
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require, require_owner_or_operator
from lastcall.db.bus import Hint
from lastcall.db.cursor import LAST, Cursor
from lastcall.db.database import Database
from lastcall.db.transaction import Reader
from lastcall.deadlines.signals import Signal
from lastcall.decisions.deliveries.deliver import AGENT
from lastcall.decisions.deliveries.signals import DEAD, DELIVERIES, for_agent
from lastcall.errors import Conflict, NotFound
from lastcall.people.actor import Actor
from lastcall.people.holding import require_operator_now
from lastcall.people.scopes import Scope

LISTING = "dead deliveries"
"""The list, in its cursors."""
PAGE_MOST = 100

_FIELDS = """
    select d.club_id, d.id, d.kind, d.channel, coalesce(p.display_name, a.name) as recipient, d.attempts,
           d.last_error, d.created_at, d.ended_at, c.name as club, c.slug
"""
_JOINS = """
      join clubs c on c.id = d.club_id
      left join people p on p.id = d.person_id
      left join agents a on a.club_id = d.club_id and a.id = d.agent_id
     order by d.ended_at desc, d.id desc
"""
_OF_CLUB = f"""
    {_FIELDS} from (
        select * from deliveries d
         where d.club_id = $1 and d.state = 'dead' and (d.ended_at, d.id) < ($2, $3)
         order by d.ended_at desc, d.id desc limit $4) d
    {_JOINS}
"""  # noqa: S608 - own literals
_EVERYWHERE = f"""
    {_FIELDS} from (
        select * from deliveries d
         where d.state = 'dead' and (d.ended_at, d.id) < ($1, $2)
         order by d.ended_at desc, d.id desc limit $3) d
    {_JOINS}
"""  # noqa: S608 - own literals
_AGAIN = """
    update deliveries
       set state = 'pending', attempts = 0, next_at = lastcall_now(), ended_at = null
     where club_id = $1 and id = $2 and state = 'dead'
    returning channel, agent_id, next_at
"""


@dataclass(frozen=True)
class DeadView:
    """A delivery that was given up. ``recipient`` is a name; ``error`` what the last attempt said."""

    club_id: UUID
    club: str
    slug: str
    id: UUID
    kind: str
    channel: str
    recipient: str
    attempts: int
    error: str | None
    created_at: datetime
    ended_at: datetime

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.ended_at, self.id)


async def dead_of_club(
    tx: Reader, actor: Actor, club_id: UUID, *, after: Cursor | None = None, limit: int = 50
) -> list[DeadView]:
    """The club's, the latest first, for whoever manages its connections to the outside (``manage_connection``)."""
    await require(tx, actor, club_id, Permission.MANAGE_CONNECTION, scope=Scope.READ)
    start = after or LAST
    return _views(await tx.raw.fetch(_OF_CLUB, club_id, start.time, start.id, min(limit, PAGE_MOST + 1)))


async def dead_everywhere(
    tx: Reader, actor: Actor | None, *, after: Cursor | None = None, limit: int = 50
) -> list[DeadView]:
    """Those of every club, for an operator."""
    await require_operator_now(tx, actor)
    start = after or LAST
    return _views(await tx.raw.fetch(_EVERYWHERE, start.time, start.id, min(limit, PAGE_MOST + 1)))


async def try_again(db: Database, actor: Actor, club_id: UUID, delivery_id: UUID) -> None:
    """Begin a dead delivery anew, with all its attempts. For whoever sees it: ``manage_connection``, or an operator.

    Raises ``NotFound`` for one that is not there, and ``Conflict`` for one that is not dead (any more): a mail of which
    nobody knows whether it arrived is never sent again.
    """
    async with db.transaction() as tx:
        if actor.is_operator and actor.has_scope(Scope.OPERATOR):
            await require_owner_or_operator(tx, actor, club_id, scope=Scope.CLUBS)
        else:
            await require(tx, actor, club_id, Permission.MANAGE_CONNECTION, scope=Scope.CLUBS)
        row = await tx.raw.fetchrow(_AGAIN, club_id, delivery_id)
        if row is None:
            raise await _refusal(tx, club_id, delivery_id)
        await log(
            tx, club_id, actor, "delivery.retried", "delivery", delivery_id, {"channel": row["channel"]}
        )
        if row["channel"] == AGENT:
            tx.publish(for_agent(club_id, row["agent_id"]))
        else:
            tx.publish(Signal(DELIVERIES, row["next_at"]))
        tx.publish(Hint(club_id, DEAD))


async def _refusal(tx: Reader, club_id: UUID, delivery_id: UUID) -> NotFound | Conflict:
    found = await tx.raw.fetchval(
        "select state from deliveries where club_id = $1 and id = $2", club_id, delivery_id
    )
    if found is None:
        return NotFound("delivery_unknown", "There is no such message.", advice="Load the list again.")
    return Conflict(
        "delivery_not_dead",
        "This message is under way again, or has ended otherwise.",
        advice="Load the list again.",
    )


def _views(rows: Sequence[asyncpg.Record]) -> list[DeadView]:
    return [
        DeadView(
            row["club_id"],
            row["club"],
            row["slug"],
            row["id"],
            row["kind"],
            row["channel"],
            row["recipient"],
            row["attempts"],
            row["last_error"],
            row["created_at"],
            row["ended_at"],
        )
        for row in rows
    ]
