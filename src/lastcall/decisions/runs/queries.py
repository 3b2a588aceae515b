"""Reads of what agents reported of their runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.db.cursor import LAST, Cursor
from lastcall.db.transaction import Reader
from lastcall.decisions.runs.service import RunStatus
from lastcall.errors import NotFound
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

LISTING = "agent-runs"
"""The list, in its cursors."""


@dataclass(frozen=True)
class RunView:
    """A run as staff see it. ``is_current``: no newer run of that agent on the same thing was reported."""

    id: UUID
    agent_id: UUID
    agent: str
    key: str
    thread: str
    title: str
    status: RunStatus
    detail: str | None
    error: str | None
    started_at: datetime
    finished_at: datetime | None
    is_current: bool

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.started_at, self.id)


def _list(where: str) -> str:
    return f"""
        select r.*, g.name as agent from (
            select * from agent_runs r
             where r.club_id = $1 and (r.started_at, r.id) < ($2, $3) and {where}
             order by r.started_at desc, r.id desc limit $4) r
          join agents g on g.club_id = r.club_id and g.id = r.agent_id
         order by r.started_at desc, r.id desc
    """  # noqa: S608 - own literals


_ALL = _list("$5::uuid is null")
_OF_AGENT = _list("r.agent_id = $5")
_ONE = """
    select r.*, g.name as agent from agent_runs r
      join agents g on g.club_id = r.club_id and g.id = r.agent_id
     where r.club_id = $1 and r.id = $2
"""


def run_unknown() -> NotFound:
    """The one answer for a run that is not there and for one of another club."""
    return NotFound("run_unknown", "There is no such run.", advice="Go back to the inbox.")


async def runs_page(
    tx: Reader,
    actor: Actor,
    club_id: UUID,
    *,
    agent_id: UUID | None = None,
    after: Cursor | None = None,
    limit: int = 50,
) -> list[RunView]:
    """Runs of the club's agents, or of one, the latest first, for whoever manages them (``manage_agents``)."""
    await require(tx, actor, club_id, Permission.MANAGE_AGENTS, scope=Scope.READ)
    start = after or LAST
    statement = _ALL if agent_id is None else _OF_AGENT
    rows = await tx.raw.fetch(statement, club_id, start.time, start.id, limit, agent_id)
    return [_view(row) for row in rows]


async def one_run(tx: Reader, actor: Actor, club_id: UUID, run_id: UUID) -> RunView:
    """One run, for whoever manages agents. Raises ``NotFound``."""
    await require(tx, actor, club_id, Permission.MANAGE_AGENTS, scope=Scope.READ)
    row = await tx.raw.fetchrow(_ONE, club_id, run_id)
    if row is None:
        raise run_unknown()
    return _view(row)


def _view(row: asyncpg.Record) -> RunView:
    return RunView(
        row["id"],
        row["agent_id"],
        row["agent"],
        row["key"],
        row["thread_key"],
        row["title"],
        RunStatus(row["status"]),
        row["detail"],
        row["error"],
        row["started_at"],
        row["finished_at"],
        row["superseded_at"] is None,
    )
