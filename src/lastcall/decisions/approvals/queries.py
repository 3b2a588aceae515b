"""Reads of approvals for screens and API: lists, and one with all that was said about it."""

from __future__ import annotations

from collections.abc import Mapping
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
from lastcall.clubs.policy import club_unknown, require_staff
from lastcall.db.cursor import LAST, Cursor
from lastcall.db.transaction import Reader
from lastcall.decisions.approvals.machine import Event, Status, events_from
from lastcall.decisions.retention.kinds.approval import approval_unknown
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.scopes import Scope

LISTING = "approvals"
"""The lists, in their cursors."""
SHOWN_MOST = 12_000
"""Characters of one text in what an approval carries: whoever approves a post reads all of it."""


class Which(StrEnum):
    """Which approvals a person lists."""

    WAITING = "waiting"
    MINE = "mine"
    ALL = "all"


@dataclass(frozen=True)
class ApprovalView:
    """An approval as its reader sees it. ``asker`` is a name; ``effect_body`` is redacted, so no secret that somebody
    put into it is shown. ``may`` is what this reader can do now."""

    club_id: UUID
    id: UUID
    type: str
    title: str
    body: str
    subject_kind: str | None
    subject_key: str | None
    effect_name: str | None
    effect_body: Mapping[str, Any] | None
    effect_result: Mapping[str, Any] | None
    status: Status
    revision: int
    requested_by_kind: str
    requested_by_id: UUID | None
    asker: str
    activity_at: datetime
    created_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    decision_note: str | None
    may: frozenset[Event]
    may_comment: bool

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.activity_at, self.id)


@dataclass(frozen=True)
class CommentView:
    """Something that was said. ``is_revision_request``: it asks for a change."""

    id: UUID
    author: str
    is_agent: bool
    is_revision_request: bool
    body: str
    created_at: datetime


@dataclass(frozen=True)
class RevisionView:
    """What an approval said before it was changed."""

    revision: int
    title: str
    body: str
    effect_body: Mapping[str, Any] | None
    replaced_at: datetime


@dataclass(frozen=True)
class Story:
    """One approval with what was said and what it said before, each in the order of time."""

    approval: ApprovalView
    comments: tuple[CommentView, ...]
    revisions: tuple[RevisionView, ...]


_FIELDS = """
    select a.*, a.effect_body::text as effect_text, a.effect_result::text as result_text,
           coalesce(p.display_name, g.name, a.requested_by_system) as asker, d.display_name as decider
"""
_NAMES = """
      left join people p on p.id = a.requested_by_person_id
      left join agents g on g.club_id = a.club_id and g.id = a.requested_by_agent_id
      left join people d on d.id = a.decided_by
"""
_WHERE = {
    Which.WAITING: "a.status = 'pending' and not a.is_archived and $5::uuid is null",
    Which.MINE: "a.requested_by_person_id = $5",
    Which.ALL: "$5::uuid is null",
}
_OF_AGENT = "a.requested_by_agent_id = $5"


def _list(where: str) -> str:
    return f"""
        {_FIELDS} from (
            select * from approvals a
             where a.club_id = $1 and (a.activity_at, a.id) < ($2, $3) and {where}
             order by a.activity_at desc, a.id desc limit $4) a
        {_NAMES} order by a.activity_at desc, a.id desc
    """  # noqa: S608 - own literals


_ONE = f"{_FIELDS} from approvals a {_NAMES} where a.club_id = $1 and a.id = $2"
_COMMENTS = """
    select m.id, m.kind, m.body, m.created_at, m.agent_id, coalesce(p.display_name, g.name) as author
      from approval_comments m
      left join people p on p.id = m.person_id
      left join agents g on g.club_id = m.club_id and g.id = m.agent_id
     where m.club_id = $1 and m.approval_id = $2
     order by m.created_at, m.id
"""
_REVISIONS = """
    select revision, title, body, effect_body::text as effect_text, replaced_at from approval_revisions
     where club_id = $1 and approval_id = $2 order by revision
"""


async def approvals_page(
    tx: Reader,
    actor: Actor,
    club_id: UUID,
    which: Which,
    *,
    after: Cursor | None = None,
    limit: int = 50,
) -> list[ApprovalView]:
    """The club's approvals, the latest activity first: those that wait and are not archived, or all, for whoever may
    decide them, and anybody's own on the staff. ``NotFound`` where there is nothing that the reader may see."""
    standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
    may_decide = standing.holds(Permission.DECIDE_APPROVALS)
    if which is not Which.MINE and not may_decide:
        raise approval_unknown()
    mine = actor.person_id if which is Which.MINE else None
    start = after or LAST
    rows = await tx.raw.fetch(_list(_WHERE[which]), club_id, start.time, start.id, limit, mine)
    return [_view(row, actor, may_decide=may_decide) for row in rows]


async def approvals_of_agent(
    tx: Reader, agent: AgentActor, *, after: Cursor | None = None, limit: int = 50
) -> list[ApprovalView]:
    """What this agent asked for, the latest activity first; needs the grant ``ask``."""
    await require_agent(tx, agent, AgentGrant.ASK)
    start = after or LAST
    rows = await tx.raw.fetch(_list(_OF_AGENT), agent.club_id, start.time, start.id, limit, agent.agent_id)
    return [_view(row, agent, may_decide=False) for row in rows]


async def approval_story(tx: Reader, reader: Actor | AgentActor, club_id: UUID, approval_id: UUID) -> Story:
    """One approval with its comments and revisions, for its asker and for whoever may decide it."""
    may_decide = False
    if isinstance(reader, AgentActor):
        if reader.club_id != club_id:
            raise club_unknown()
        await require_agent(tx, reader, AgentGrant.ASK)
    else:
        standing = await require_staff(tx, reader, club_id, scope=Scope.READ)
        may_decide = standing.holds(Permission.DECIDE_APPROVALS)
    row = await tx.raw.fetchrow(_ONE, club_id, approval_id)
    if row is None or not (may_decide or is_of(row, reader)):
        raise approval_unknown()
    comments = await tx.raw.fetch(_COMMENTS, club_id, approval_id)
    revisions = await tx.raw.fetch(_REVISIONS, club_id, approval_id)
    return Story(
        _view(row, reader, may_decide=may_decide),
        tuple(_comment(one) for one in comments),
        tuple(
            RevisionView(
                one["revision"], one["title"], one["body"], shown(one["effect_text"]), one["replaced_at"]
            )
            for one in revisions
        ),
    )


def _comment(row: asyncpg.Record) -> CommentView:
    return CommentView(
        row["id"],
        row["author"],
        row["agent_id"] is not None,
        row["kind"] == "revision_requested",
        row["body"],
        row["created_at"],
    )


_DECIDES = frozenset({Event.APPROVE, Event.REJECT, Event.REQUEST_REVISION})


def _view(row: asyncpg.Record, reader: Actor | AgentActor, *, may_decide: bool) -> ApprovalView:
    status, theirs = Status(row["status"]), is_of(row, reader)
    may = events_from(status)
    may = may - _DECIDES if theirs else may & _DECIDES if may_decide else frozenset()
    return ApprovalView(
        club_id=row["club_id"],
        id=row["id"],
        type=row["type"],
        title=row["title"],
        body=row["body"],
        subject_kind=row["subject_kind"],
        subject_key=row["subject_key"],
        effect_name=row["effect_name"],
        effect_body=shown(row["effect_text"]),
        effect_result=shown(row["result_text"]),
        status=status,
        revision=row["revision"],
        requested_by_kind=row["requested_by_kind"],
        requested_by_id=row["requested_by_person_id"] or row["requested_by_agent_id"],
        asker=row["asker"],
        activity_at=row["activity_at"],
        created_at=row["created_at"],
        decided_at=row["decided_at"],
        decided_by=row["decider"],
        decision_note=row["decision_note"],
        may=may,
        may_comment=theirs or may_decide,
    )


def shown(body: str | None) -> Mapping[str, Any] | None:
    """Stored JSON as its readers get it: without what looks like a secret."""
    return None if body is None else redacted(msgspec.json.decode(body), most=SHOWN_MOST)


def is_of(row: asyncpg.Record, reader: Actor | AgentActor) -> bool:
    """Whether the reader asked for what this row is."""
    if isinstance(reader, Actor):
        return bool(row["requested_by_person_id"] == reader.person_id)
    return bool(row["requested_by_agent_id"] == reader.agent_id)
