"""Reads of approvals for screens and API: lists, and one with all that was said about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from lastcall.db.cursor import Cursor
from lastcall.db.transaction import Reader
from lastcall.decisions.approvals.machine import Event, Status, events_from
from lastcall.decisions.listing import (
    AskedView,
    Listing,
    Which,
    asked_fields,
    is_of,
    one_of,
    page_of,
    page_of_agent,
    shown,
)
from lastcall.decisions.retention.kinds.approval import approval_unknown
from lastcall.people.actor import Actor, AgentActor

LISTING = "approvals"
"""The lists, in their cursors."""
APPROVALS = Listing(
    "approvals",
    ("effect_body", "effect_result"),
    "a.status = 'pending' and not a.is_archived",
    approval_unknown,
)


@dataclass(frozen=True, kw_only=True)
class ApprovalView(AskedView):
    """An approval as its reader sees it. ``effect_body`` is redacted, so no secret that somebody put into it is shown.
    ``may`` is what this reader can do now."""

    type: str
    subject_kind: str | None
    subject_key: str | None
    effect_name: str | None
    effect_body: Mapping[str, Any] | None
    effect_result: Mapping[str, Any] | None
    status: Status
    revision: int
    may: frozenset[Event]
    may_comment: bool


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
    rows, may_decide = await page_of(tx, APPROVALS, actor, club_id, which, after, limit)
    return [_view(row, actor, may_decide=may_decide) for row in rows]


async def approvals_of_agent(
    tx: Reader, agent: AgentActor, *, after: Cursor | None = None, limit: int = 50
) -> list[ApprovalView]:
    """What this agent asked for, the latest activity first; needs the grant ``ask``."""
    rows = await page_of_agent(tx, APPROVALS, agent, after, limit)
    return [_view(row, agent, may_decide=False) for row in rows]


async def approval_story(tx: Reader, reader: Actor | AgentActor, club_id: UUID, approval_id: UUID) -> Story:
    """One approval with its comments and revisions, for its asker and for whoever may decide it."""
    row, may_decide = await one_of(tx, APPROVALS, reader, club_id, approval_id)
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
        **asked_fields(row),
        type=row["type"],
        subject_kind=row["subject_kind"],
        subject_key=row["subject_key"],
        effect_name=row["effect_name"],
        effect_body=shown(row["effect_body_text"]),
        effect_result=shown(row["effect_result_text"]),
        status=status,
        revision=row["revision"],
        may=may,
        may_comment=theirs or may_decide,
    )
