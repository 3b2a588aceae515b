"""Reads of decisions for screens and API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from lastcall.access.agents.policy import require_agent
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import club_unknown, require_staff
from lastcall.db.cursor import LAST, Cursor
from lastcall.db.transaction import Reader
from lastcall.decisions.approvals.queries import Which, is_of, shown
from lastcall.decisions.questions.asking import DecisionStatus, Option, decision_unknown
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.scopes import Scope

LISTING = "decisions"
"""The lists, in their cursors."""


@dataclass(frozen=True)
class DecisionView:
    """A decision as its reader sees it. ``asker`` is a name; ``may_decide`` and ``may_cancel`` are what this reader can
    do now. ``action_body`` is redacted."""

    club_id: UUID
    id: UUID
    title: str
    body: str
    options: tuple[Option, ...]
    action_name: str | None
    action_body: Mapping[str, Any] | None
    action_result: Mapping[str, Any] | None
    status: DecisionStatus
    requested_by_kind: str
    requested_by_id: UUID | None
    asker: str
    activity_at: datetime
    created_at: datetime
    expires_at: datetime
    decided_option: str | None
    decided_at: datetime | None
    decided_by: str | None
    decision_note: str | None
    may_decide: bool
    may_cancel: bool

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.activity_at, self.id)

    @property
    def chosen(self) -> str | None:
        """The words of the option that was chosen."""
        return next((one.label for one in self.options if one.key == self.decided_option), None)


_FIELDS = """
    select a.*, a.options::text as options_text, a.action_body::text as action_text,
           a.action_result::text as result_text,
           coalesce(p.display_name, g.name, a.requested_by_system) as asker, d.display_name as decider
"""
_NAMES = """
      left join people p on p.id = a.requested_by_person_id
      left join agents g on g.club_id = a.club_id and g.id = a.requested_by_agent_id
      left join people d on d.id = a.decided_by
"""
_WHERE = {
    Which.WAITING: "a.status = 'open' and $5::uuid is null",
    Which.MINE: "a.requested_by_person_id = $5",
    Which.ALL: "$5::uuid is null",
}
_OF_AGENT = "a.requested_by_agent_id = $5"


def _list(where: str) -> str:
    return f"""
        {_FIELDS} from (
            select * from decisions a
             where a.club_id = $1 and (a.activity_at, a.id) < ($2, $3) and {where}
             order by a.activity_at desc, a.id desc limit $4) a
        {_NAMES} order by a.activity_at desc, a.id desc
    """  # noqa: S608 - own literals


_ONE = f"{_FIELDS} from decisions a {_NAMES} where a.club_id = $1 and a.id = $2"


async def decisions_page(
    tx: Reader,
    actor: Actor,
    club_id: UUID,
    which: Which,
    *,
    after: Cursor | None = None,
    limit: int = 50,
) -> list[DecisionView]:
    """The club's decisions, the latest first: the open ones or all for whoever may decide (``decide_approvals``), and
    anybody's own on the staff. ``NotFound`` where there is nothing that the reader may see."""
    standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
    may_decide = standing.holds(Permission.DECIDE_APPROVALS)
    if which is not Which.MINE and not may_decide:
        raise decision_unknown()
    mine = actor.person_id if which is Which.MINE else None
    start = after or LAST
    rows = await tx.raw.fetch(_list(_WHERE[which]), club_id, start.time, start.id, limit, mine)
    return [_view(row, actor, may_decide=may_decide) for row in rows]


async def decisions_of_agent(
    tx: Reader, agent: AgentActor, *, after: Cursor | None = None, limit: int = 50
) -> list[DecisionView]:
    """What this agent asked, the latest first; needs the grant ``ask``."""
    await require_agent(tx, agent, AgentGrant.ASK)
    start = after or LAST
    rows = await tx.raw.fetch(_list(_OF_AGENT), agent.club_id, start.time, start.id, limit, agent.agent_id)
    return [_view(row, agent, may_decide=False) for row in rows]


async def one_decision(
    tx: Reader, reader: Actor | AgentActor, club_id: UUID, decision_id: UUID
) -> DecisionView:
    """One decision, for its asker and for whoever may decide it."""
    may_decide = False
    if isinstance(reader, AgentActor):
        if reader.club_id != club_id:
            raise club_unknown()
        await require_agent(tx, reader, AgentGrant.ASK)
    else:
        standing = await require_staff(tx, reader, club_id, scope=Scope.READ)
        may_decide = standing.holds(Permission.DECIDE_APPROVALS)
    row = await tx.raw.fetchrow(_ONE, club_id, decision_id)
    if row is None or not (may_decide or is_of(row, reader)):
        raise decision_unknown()
    return _view(row, reader, may_decide=may_decide)


def _view(row: asyncpg.Record, reader: Actor | AgentActor, *, may_decide: bool) -> DecisionView:
    status, theirs = DecisionStatus(row["status"]), is_of(row, reader)
    is_open = status is DecisionStatus.OPEN
    return DecisionView(
        club_id=row["club_id"],
        id=row["id"],
        title=row["title"],
        body=row["body"],
        options=tuple(
            Option(one["key"], one["label"], one["detail"])
            for one in msgspec.json.decode(row["options_text"])
        ),
        action_name=row["action_name"],
        action_body=shown(row["action_text"]),
        action_result=shown(row["result_text"]),
        status=status,
        requested_by_kind=row["requested_by_kind"],
        requested_by_id=row["requested_by_person_id"] or row["requested_by_agent_id"],
        asker=row["asker"],
        activity_at=row["activity_at"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        decided_option=row["decided_option"],
        decided_at=row["decided_at"],
        decided_by=row["decider"],
        decision_note=row["decision_note"],
        may_decide=is_open and may_decide and not theirs,
        may_cancel=is_open and theirs,
    )
