"""How approvals and decisions are read: whose they are, in what order, and with the names of those who asked and
decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from lastcall.access.agents.policy import require_agent
from lastcall.clubs.activity import redacted
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require_staff
from lastcall.db.cursor import LAST, Cursor
from lastcall.db.transaction import Reader
from lastcall.decisions.asking import asker_columns, let_in
from lastcall.errors import NotFound
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.scopes import Scope

SHOWN_MOST = 12_000
"""Characters of one text in what is carried: whoever approves a post reads all of it."""


class Which(StrEnum):
    """Which of them a person lists."""

    WAITING = "waiting"
    MINE = "mine"
    ALL = "all"


@dataclass(frozen=True, kw_only=True)
class AskedView:
    """What somebody asked, as its reader sees it. ``asker`` and ``decided_by`` are names."""

    club_id: UUID
    id: UUID
    title: str
    body: str
    requested_by_kind: str
    requested_by_id: UUID | None
    asker: str
    activity_at: datetime
    created_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    decision_note: str | None

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.activity_at, self.id)


_NAMES = """
      left join people p on p.id = a.requested_by_person_id
      left join agents g on g.club_id = a.club_id and g.id = a.requested_by_agent_id
      left join people d on d.id = a.decided_by
"""
_OF_AGENT = "a.requested_by_agent_id = $5"


@dataclass(frozen=True)
class Listing:
    """The statements over one table of what is asked. ``bodies`` are its columns of JSON, and ``waits`` is the
    condition of a row that somebody must decide.
    """

    table: str
    bodies: Sequence[str]
    waits: str
    unknown: Callable[[], NotFound]

    def of(self, which: Which) -> str:
        """Those that ``which`` means; one's own are the person's ``$5``, which is null for the others."""
        where = {
            Which.WAITING: f"{self.waits} and $5::uuid is null",
            Which.MINE: "a.requested_by_person_id = $5",
            Which.ALL: "$5::uuid is null",
        }
        return self._page(where[which])

    @property
    def of_agent(self) -> str:
        """Those of the agent ``$5``."""
        return self._page(_OF_AGENT)

    @property
    def one(self) -> str:
        return f"{self._fields} from {self.table} a {_NAMES} where a.club_id = $1 and a.id = $2"

    @property
    def _fields(self) -> str:
        bodies = "".join(f" a.{name}::text as {name}_text," for name in self.bodies)
        return f"""
            select a.*,{bodies}
                   coalesce(p.display_name, g.name, a.requested_by_system) as asker, d.display_name as decider
        """

    def _page(self, where: str) -> str:
        return f"""
            {self._fields} from (
                select * from {self.table} a
                 where a.club_id = $1 and (a.activity_at, a.id) < ($2, $3) and {where}
                 order by a.activity_at desc, a.id desc limit $4) a
            {_NAMES} order by a.activity_at desc, a.id desc
        """  # noqa: S608 - own literals


async def page_of(
    tx: Reader, listing: Listing, actor: Actor, club_id: UUID, which: Which, after: Cursor | None, limit: int
) -> tuple[list[asyncpg.Record], bool]:
    """The rows, the latest activity first, and whether the reader may decide: what waits or all for whoever may, and
    anybody's own on the staff. ``NotFound`` where there is nothing that the reader may see."""
    standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
    may_decide = standing.holds(Permission.DECIDE_APPROVALS)
    if which is not Which.MINE and not may_decide:
        raise listing.unknown()
    mine = actor.person_id if which is Which.MINE else None
    start = after or LAST
    rows = await tx.raw.fetch(listing.of(which), club_id, start.time, start.id, limit, mine)
    return rows, may_decide


async def page_of_agent(
    tx: Reader, listing: Listing, agent: AgentActor, after: Cursor | None, limit: int
) -> list[asyncpg.Record]:
    """What this agent asked for, the latest activity first; needs the grant ``ask``."""
    await require_agent(tx, agent, AgentGrant.ASK)
    start = after or LAST
    found: list[asyncpg.Record] = await tx.raw.fetch(
        listing.of_agent, agent.club_id, start.time, start.id, limit, agent.agent_id
    )
    return found


async def one_of(
    tx: Reader, listing: Listing, reader: Actor | AgentActor, club_id: UUID, item_id: UUID
) -> tuple[asyncpg.Record, bool]:
    """One row, for its asker and for whoever may decide it, and whether the reader may."""
    may_decide = await let_in(tx, reader, club_id, Scope.READ)
    row = await tx.raw.fetchrow(listing.one, club_id, item_id)
    if row is None or not (may_decide or is_of(row, reader)):
        raise listing.unknown()
    return row, may_decide


def is_of(row: asyncpg.Record, reader: Actor | AgentActor) -> bool:
    """Whether the reader asked for what this row is."""
    return all(row[name] == value for name, value in asker_columns(reader).items())


def asked_fields(row: asyncpg.Record) -> dict[str, Any]:
    """What an ``AskedView`` says of the row."""
    names = ("club_id", "id", "title", "body", "requested_by_kind", "asker", "activity_at", "created_at")
    return {
        **{name: row[name] for name in (*names, "decided_at", "decision_note")},
        "requested_by_id": row["requested_by_person_id"] or row["requested_by_agent_id"],
        "decided_by": row["decider"],
    }


def shown(body: str | None) -> Mapping[str, Any] | None:
    """Stored JSON as its readers get it: without what looks like a secret."""
    return None if body is None else redacted(msgspec.json.decode(body), most=SHOWN_MOST)
