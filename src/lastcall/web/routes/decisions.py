"""Decisions: what is open, one with its options, and what an agent reported of a run."""

from __future__ import annotations

from collections.abc import Mapping

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.decisions.inbox.proposed import proposed_items
from lastcall.decisions.questions.asking import DecisionStatus, cancel_decision
from lastcall.decisions.questions.deciding import decide
from lastcall.decisions.questions.queries import LISTING, decisions_page, one_decision
from lastcall.decisions.retention.proposals import ARCHIVE_PROPOSAL
from lastcall.decisions.runs import queries as runs
from lastcall.decisions.runs.service import RunStatus
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed
from lastcall.web.access import Access, Visitor, access
from lastcall.web.asked import SECTION, list_asked
from lastcall.web.club import club_page
from lastcall.web.fields import known_id
from lastcall.web.looks import Look
from lastcall.web.pages import PageRequest, go_to, joined_fields
from lastcall.web.room import Web

_TONES = {
    DecisionStatus.OPEN: ("wait", "clock"),
    DecisionStatus.DECIDED: ("ok", "check"),
    DecisionStatus.EXPIRED: ("", "late"),
    DecisionStatus.CANCELLED: ("", "slash"),
}
LOOKS: Mapping[DecisionStatus, Look] = {status: Look(*look, status.label) for status, look in _TONES.items()}
_RUN_TONES = {
    RunStatus.RUNNING: ("live", "turn"),
    RunStatus.SUCCEEDED: ("ok", "check"),
    RunStatus.FAILED: ("bad", "cross"),
    RunStatus.CANCELLED: ("", "slash"),
}
RUN_LOOKS: Mapping[RunStatus, Look] = {
    status: Look(*look, status.label) for status, look in _RUN_TONES.items()
}


@get("/c/{slug:str}/decisions", opt=access(Access.STAFF))
async def list_decisions(
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
        decisions_page,
        shown=shown,
        after=after,
        waiting="Open",
        looks=LOOKS,
    )


@get("/c/{slug:str}/decisions/{decision_id:str}", opt=access(Access.STAFF))
async def show_decision(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    decision_id: FromPath[str],
) -> Response[str]:
    return await _page(request, web, visitor, slug, decision_id)


@post("/c/{slug:str}/decisions/{decision_id:str}", opt=access(Access.STAFF))
async def act_on_decision(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    decision_id: FromPath[str],
) -> Response[str] | Redirect:
    """Choose, or call off. Refused, the page comes again with the reason and what was typed."""
    fields = await joined_fields(request)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    target = (web.database, visitor.actor, page.club.id, known_id(decision_id))
    try:
        match fields.get("act"):
            case "decide":
                await decide(*target, fields.get("option", ""), note=fields.get("note"))
            case "cancel":
                await cancel_decision(*target)
            case _:
                raise Invalid("act_unknown", "Nothing was done.", advice="Press one of the buttons.")
    except (Invalid, NotAllowed, Conflict) as error:
        return await _page(request, web, visitor, slug, decision_id, typed=fields, problem=error)
    return go_to(page.path(f"decisions/{decision_id}"))


@get("/c/{slug:str}/runs/{run_id:str}", opt=access(Access.STAFF))
async def show_run(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    run_id: FromPath[str],
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        found = await runs.one_run(tx, visitor.actor, page.club.id, known_id(run_id))
    return web.pages.show(
        request, "run.html", page.place(SECTION), page.now, one=found, look=RUN_LOOKS[found.status]
    )


async def _page(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    slug: str,
    decision_id: str,
    *,
    typed: Mapping[str, str] | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        one = await one_decision(tx, visitor.actor, page.club.id, known_id(decision_id))
        proposed = None
        if one.action_name == ARCHIVE_PROPOSAL and one.action_body is not None:
            proposed = await proposed_items(tx, page.standing, page.club.id, one.action_body)
    typed = typed or {}
    return web.pages.show(
        request,
        "decision.html",
        page.place(SECTION),
        page.now,
        status=problem.status if problem else 200,
        one=one,
        look=LOOKS[one.status],
        note=typed.get("note", ""),
        chosen=typed.get("option", ""),
        proposed=proposed,
        problem=problem,
    )


HANDLERS = (list_decisions, show_decision, act_on_decision, show_run)
