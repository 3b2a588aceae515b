"""Tools on approvals and decisions, for the programs of whoever decides."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from lastcall.api.mcp.tool import Club, PageCursor, PageSize, Tool
from lastcall.api.v1.routes import approvals, decisions
from lastcall.api.v1.shapes import Id, Input, Shape
from lastcall.db.database import Database
from lastcall.decisions.listing import Which
from lastcall.people.actor import Actor

Seen = Annotated[int, Meta(description="The `revision` that you read: a newer one is not decided unread.")]
OneId = Annotated[Id, Meta(description="The id, as the list tells it.")]


class ListAsked(Input, frozen=True):
    """Which of them, and which page."""

    club: Club
    which: Which = Which.WAITING
    limit: PageSize = 20
    cursor: PageCursor | None = None


class OneAsked(Input, frozen=True):
    """Which one is meant."""

    club: Club
    id: OneId


class ApproveOne(Input, frozen=True):
    """What is approved. `reviewed` is what the person confirms beyond it, as `approve` of the API takes it."""

    club: Club
    id: OneId
    seen_revision: Seen
    note: str | None = None
    reviewed: dict[str, Any] | None = None


class RejectOne(Input, frozen=True):
    """What is rejected, with words for whoever asked."""

    club: Club
    id: OneId
    seen_revision: Seen
    note: str | None = None


class ReviseOne(Input, frozen=True):
    """What is sent back, and what is to be changed."""

    club: Club
    id: OneId
    seen_revision: Seen
    note: str


class DecideOne(Input, frozen=True):
    """Which decision, and the key of the option that the person chooses."""

    club: Club
    id: OneId
    option: str
    note: str | None = None


async def _approve(db: Database, actor: Actor, asked: ApproveOne) -> Shape:
    data = approvals.Approve(seen_revision=asked.seen_revision, note=asked.note, reviewed=asked.reviewed)
    answer: Shape = await approvals.approve_approval.fn(
        db=db, actor=actor, club=asked.club, approval_id=asked.id, data=data
    )
    return answer


async def _reject(db: Database, actor: Actor, asked: RejectOne) -> Shape:
    data = approvals.Reject(seen_revision=asked.seen_revision, note=asked.note)
    await approvals.reject_approval.fn(db=db, actor=actor, club=asked.club, approval_id=asked.id, data=data)
    return await _read(db, actor, OneAsked(club=asked.club, id=asked.id))


async def _revise(db: Database, actor: Actor, asked: ReviseOne) -> Shape:
    data = approvals.RequestRevision(seen_revision=asked.seen_revision, note=asked.note)
    await approvals.request_approval_revision.fn(
        db=db, actor=actor, club=asked.club, approval_id=asked.id, data=data
    )
    return await _read(db, actor, OneAsked(club=asked.club, id=asked.id))


async def _read(db: Database, actor: Actor, asked: OneAsked) -> Shape:
    answer: Shape = await approvals.read_approval.fn(
        db=db, actor=actor, club=asked.club, approval_id=asked.id
    )
    return answer


async def _decide(db: Database, actor: Actor, asked: DecideOne) -> Shape:
    data = decisions.Answer(option=asked.option, note=asked.note)
    answer: Shape = await decisions.decide_one.fn(
        db=db, actor=actor, club=asked.club, decision_id=asked.id, data=data
    )
    return answer


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="list_approvals",
        words="What agents and people ask the club's staff: what waits for a yes or a no, what this person asked, or"
        " all.",
        asked=ListAsked,
        run=lambda db, actor, asked: approvals.list_approvals.fn(
            db=db, actor=actor, club=asked.club, limit=asked.limit, cursor=asked.cursor, which=asked.which
        ),
        reads=True,
    ),
    Tool(
        name="read_approval",
        words="One approval with what it carries, what was said about it and what it said before.",
        asked=OneAsked,
        run=_read,
        reads=True,
    ),
    Tool(
        name="approve",
        words="Approve, in the person's name and under their permissions; what it carries is done at once. Show them"
        " all of it first. Refused, it waits as before.",
        asked=ApproveOne,
        run=_approve,
        destroys=True,
        repeats=True,
    ),
    Tool(
        name="reject",
        words="Turn down what was asked, in the person's name. Whoever asked is told.",
        asked=RejectOne,
        run=_reject,
        destroys=True,
        repeats=True,
    ),
    Tool(
        name="request_revision",
        words="Send what was asked back to whoever asked, with what is to be changed.",
        asked=ReviseOne,
        run=_revise,
    ),
    Tool(
        name="list_decisions",
        words="Questions with options: those that are open, those this person asked, or all.",
        asked=ListAsked,
        run=lambda db, actor, asked: decisions.list_decisions.fn(
            db=db, actor=actor, club=asked.club, limit=asked.limit, cursor=asked.cursor, which=asked.which
        ),
        reads=True,
    ),
    Tool(
        name="decide",
        words="Choose an option of a decision in the person's name; what it does is done at once.",
        asked=DecideOne,
        run=_decide,
        destroys=True,
        repeats=True,
    ),
)
