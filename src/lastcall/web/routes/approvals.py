"""Approvals: what waits, one with what it carries and what was said, and the buttons that decide it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.db.database import Database
from lastcall.decisions.approvals import asking, deciding
from lastcall.decisions.approvals.machine import Status
from lastcall.decisions.approvals.queries import LISTING, ApprovalView, approval_story, approvals_page
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed
from lastcall.operations.effects import OPERATIONS
from lastcall.people.actor import Actor
from lastcall.web.access import Access, Visitor, access
from lastcall.web.asked import SECTION, list_asked
from lastcall.web.carried import carried_actions
from lastcall.web.club import club_page
from lastcall.web.fields import known_id, read_revision
from lastcall.web.looks import Look
from lastcall.web.pages import PageRequest, go_to, joined_fields
from lastcall.web.room import Web

LOOKS: Mapping[Status, Look] = {
    status: Look(tone, icon, status.label)
    for status, (tone, icon) in {
        Status.PENDING: ("wait", "clock"),
        Status.REVISION_REQUESTED: ("wait", "turn"),
        Status.APPROVED: ("ok", "check"),
        Status.REJECTED: ("bad", "cross"),
        Status.WITHDRAWN: ("", "slash"),
    }.items()
}


@get("/c/{slug:str}/approvals", opt=access(Access.STAFF))
async def list_approvals(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    shown: FromQuery[str] = "",
    after: FromQuery[str] = "",
) -> Response[str]:
    return await list_asked(
        request,
        web,
        visitor,
        slug,
        LISTING,
        approvals_page,
        shown=shown,
        after=after,
        waiting="Waiting",
        looks=LOOKS,
    )


@get("/c/{slug:str}/approvals/{approval_id:str}", opt=access(Access.STAFF))
async def show_approval(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    approval_id: FromPath[str],
) -> Response[str]:
    return await _page(request, web, visitor, slug, approval_id)


@post("/c/{slug:str}/approvals/{approval_id:str}", opt=access(Access.STAFF))
async def act_on_approval(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    approval_id: FromPath[str],
) -> Response[str] | Redirect:
    """What the pressed button says. Refused, the page comes again with the reason and what was typed."""
    fields = await joined_fields(request)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    target = (web.database, visitor.actor, page.club.id, known_id(approval_id))
    note = fields.get("note", "")
    try:
        match fields.get("act"):
            case "approve":
                await deciding.approve(
                    *target, seen_revision=read_revision(fields), note=note, reviewed=_reviewed(fields)
                )
            case "reject":
                await deciding.reject(*target, seen_revision=read_revision(fields), note=note)
            case "revise":
                await deciding.request_revision(*target, seen_revision=read_revision(fields), note=note)
            case "comment":
                await _comment(*target, fields.get("comment", ""))
            case "withdraw":
                await asking.withdraw(*target)
            case "resubmit":
                await asking.resubmit(
                    *target,
                    seen_revision=read_revision(fields),
                    title=fields.get("title", ""),
                    body=fields.get("body", ""),
                )
            case _:
                raise Invalid("act_unknown", "Nothing was done.", advice="Press one of the buttons.")
    except (Invalid, NotAllowed, Conflict) as error:
        return await _page(request, web, visitor, slug, approval_id, typed=fields, problem=error)
    return go_to(page.path(f"approvals/{approval_id}"))


async def _comment(db: Database, actor: Actor, club_id: UUID, approval_id: UUID, text: str) -> None:
    try:
        await asking.comment(db, actor, club_id, approval_id, text)
    except Invalid as error:
        error.field = "comment"  # this page has another field of the name that the service says
        raise


def _reviewed(fields: Mapping[str, str]) -> dict[str, Any]:
    """What the approver confirms beyond what it says: the time that was shown to them, and bans that are lifted."""
    reviewed: dict[str, Any] = {}
    if fields.get("reviewed_due_at"):
        reviewed["reviewedDueAt"] = fields["reviewed_due_at"]
    if fields.get("confirm_banned"):
        reviewed["confirmBanned"] = fields["confirm_banned"].split()
    return reviewed


def _banned(one: ApprovalView, problem: LastcallError | None) -> list[str]:
    """Whom the refusal names as banned: approving can lift that, once the approver says so."""
    if not isinstance(problem, Invalid) or problem.code != "target_banned" or one.effect_body is None:
        return []
    places = [problem.field or "", *(field for field, _ in problem.others)]
    numbers = [int(found[0]) for place in places if (found := re.search(r"[0-9]+", place))]
    return [str(one.effect_body["payloads"][number]["targetUserId"]) for number in numbers]


async def _page(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    slug: str,
    approval_id: str,
    *,
    typed: Mapping[str, str] | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        story = await approval_story(tx, visitor.actor, page.club.id, known_id(approval_id))
        one = story.approval
        actions = None
        if one.effect_name == OPERATIONS and one.effect_body is not None:
            actions = await carried_actions(tx, page, one.effect_body)
    typed = typed or {}
    return web.pages.show(
        request,
        "approval.html",
        page.place(SECTION),
        page.now,
        status=problem.status if problem else 200,
        one=one,
        story=story,
        look=LOOKS[one.status],
        actions=actions,
        may={event.name.lower() for event in one.may},
        banned=_banned(one, problem),
        note=typed.get("note", ""),
        comment=typed.get("comment", ""),
        title=typed.get("title", one.title),
        body=typed.get("body", one.body),
        problem=problem,
    )


HANDLERS = (list_approvals, show_approval, act_on_approval)
