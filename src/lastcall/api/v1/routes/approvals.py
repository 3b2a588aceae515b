"""Approvals of a club, for people: what waits, what it says, and the decisions."""

from __future__ import annotations

from typing import Any

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import FromQuery, JSONBody

from lastcall.api.v1.answers import answers
from lastcall.api.v1.decision_shapes import (
    ApprovalPage,
    ApprovalStory,
    ChangedApproval,
    Made,
    NewApproval,
    NewComment,
    approval_page,
    ask_of,
    story_shape,
)
from lastcall.api.v1.paging import CURSOR, After, Limit
from lastcall.api.v1.shapes import Input, PathId, Shape, known
from lastcall.db.cursor import read_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.decisions.approvals import asking, deciding
from lastcall.decisions.approvals.queries import LISTING, approval_story, approvals_page
from lastcall.decisions.listing import Which
from lastcall.people.actor import Actor

TAGS = ["Approvals"]
_ONE = "/clubs/{club:str}/approvals/{approval_id:str}"


class Approve(Input, frozen=True):
    """`seenRevision` is the one you read; `note` is for whoever asked. `reviewed` is what you confirm beyond what it
    says: for actions, `reviewedDueAt` and `confirmBanned`.
    """

    seen_revision: int
    note: str | None = None
    reviewed: dict[str, Any] | None = None


class Reject(Input, frozen=True):
    """`seenRevision` is the one you read; `note` is for whoever asked."""

    seen_revision: int
    note: str | None = None


class RequestRevision(Input, frozen=True):
    """`note` says what is to be changed."""

    seen_revision: int
    note: str


class Approved(Shape, frozen=True):
    """What approving did, as the effect tells it; null where it does nothing by itself."""

    result: dict[str, Any] | None


class Resubmitted(Shape, frozen=True):
    """The revision that waits now."""

    revision: int


@get("/clubs/{club:str}/approvals", tags=TAGS, responses=answers(404))
async def list_approvals(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
    which: FromQuery[Which] = Which.WAITING,
) -> ApprovalPage:
    """What waits for a decision, what you asked for, or all. Whoever may not decide sees their own only."""
    after = read_cursor(LISTING, cursor, field=CURSOR)
    async with db.read() as tx:
        found = await approvals_page(tx, actor, known(club), which, after=after, limit=limit + 1)
    return approval_page(found, limit)


@post("/clubs/{club:str}/approvals", tags=TAGS, responses=answers(404, 409, body=True))
async def ask_for_approval(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, data: JSONBody[NewApproval]
) -> Made:
    """Put a question to the staff. With an effect it is done when somebody approves, under their authority."""
    made = await asking.ask_approval(db, actor, known(club), ask_of(data), key=data.key)
    return Made(id=encode_id(made))


@get(_ONE, tags=TAGS, responses=answers(404))
async def read_approval(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, approval_id: PathId
) -> ApprovalStory:
    """One approval, with what was said about it."""
    async with db.read() as tx:
        return story_shape(await approval_story(tx, actor, known(club), known(approval_id)))


@post(f"{_ONE}/approve", status_code=200, tags=TAGS, responses=answers(404, 409, body=True))
async def approve_approval(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    approval_id: PathId,
    data: JSONBody[Approve],
) -> Approved:
    """Say yes, and do what it carries under your own authority. Refused, it waits as before."""
    result = await deciding.approve(
        db,
        actor,
        known(club),
        known(approval_id),
        seen_revision=data.seen_revision,
        note=data.note,
        reviewed=data.reviewed,
    )
    return Approved(result=result)


@post(f"{_ONE}/reject", status_code=204, tags=TAGS, responses=answers(404, 409, body=True))
async def reject_approval(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    approval_id: PathId,
    data: JSONBody[Reject],
) -> None:
    """Say no."""
    await deciding.reject(
        db, actor, known(club), known(approval_id), seen_revision=data.seen_revision, note=data.note
    )


@post(f"{_ONE}/request-revision", status_code=204, tags=TAGS, responses=answers(404, 409, body=True))
async def request_approval_revision(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    approval_id: PathId,
    data: JSONBody[RequestRevision],
) -> None:
    """Send it back to whoever asked, with what is to be changed."""
    await deciding.request_revision(
        db, actor, known(club), known(approval_id), seen_revision=data.seen_revision, note=data.note
    )


@post(f"{_ONE}/resubmit", status_code=200, tags=TAGS, responses=answers(404, 409, body=True))
async def resubmit_approval(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    approval_id: PathId,
    data: JSONBody[ChangedApproval],
) -> Resubmitted:
    """Change what you asked for and put it to the staff again."""
    revision = await asking.resubmit(
        db,
        actor,
        known(club),
        known(approval_id),
        seen_revision=data.seen_revision,
        title=data.title,
        body=data.body,
        effect_body=data.effect_body,
    )
    return Resubmitted(revision=revision)


@post(f"{_ONE}/withdraw", status_code=204, tags=TAGS, responses=answers(404, 409))
async def withdraw_approval(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, approval_id: PathId
) -> None:
    """Take back what you asked for."""
    await asking.withdraw(db, actor, known(club), known(approval_id))


@post(f"{_ONE}/comments", tags=TAGS, responses=answers(404, 409, body=True))
async def comment_on_approval(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    approval_id: PathId,
    data: JSONBody[NewComment],
) -> Made:
    """Say something about it, as whoever asked or may decide."""
    made = await asking.comment(db, actor, known(club), known(approval_id), data.body)
    return Made(id=encode_id(made))


HANDLERS = (
    list_approvals,
    ask_for_approval,
    read_approval,
    approve_approval,
    reject_approval,
    request_approval_revision,
    resubmit_approval,
    withdraw_approval,
    comment_on_approval,
)
