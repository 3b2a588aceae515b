"""What a club's agents cost, and its budgets."""

from __future__ import annotations

from decimal import Decimal

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.db.cursor import read_cursor, write_cursor
from lastcall.db.ids import decode_id
from lastcall.errors import Conflict, Invalid, LastcallError
from lastcall.spending.budgets import (
    WARN_PERCENT,
    BudgetFields,
    Period,
    end_budget,
    leave_incident,
    set_budget,
)
from lastcall.spending.queries import LISTING, costs_of, spending_of
from lastcall.spending.source import money
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import club_page
from lastcall.web.fields import known_id, read_seen, seen_text
from lastcall.web.pages import PageRequest, form_fields, go_to
from lastcall.web.room import Web

PAGE = 50  # costs
PERIODS = {Period.MONTH: "a month", Period.LIFETIME: "ever"}


@get("/c/{slug:str}/spending", opt=access(Access.STAFF))
async def spending_page(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    after: FromQuery[str] = "",
) -> Response[str]:
    return await _show(request, web, visitor, slug, after=after)


@post("/c/{slug:str}/spending", opt=access(Access.STAFF))
async def set_one(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str] | Redirect:
    """Set a budget of the club or of an agent."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    fields = await form_fields(request)
    try:
        seen = fields.get("seen", "")
        agent, _, period = fields.get("whose", "").partition(" ")
        await set_budget(
            web.database,
            visitor.actor,
            page.club.id,
            decode_id(agent) if agent else None,
            _period(period),
            BudgetFields(
                _cents(fields.get("amount", "")),
                _percent(fields.get("warn", "")),
                fields.get("stop") == "yes",
            ),
            read_seen(seen) if seen else None,
        )
    except (Invalid, Conflict) as error:
        return await _show(request, web, visitor, slug, problem=error)
    return go_to(page.path("spending"))


@post("/c/{slug:str}/spending/{budget_id:str}/end", opt=access(Access.STAFF))
async def end_one(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    budget_id: FromPath[str],
) -> Redirect:
    """Let a budget hold no more."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    fields = await form_fields(request)
    await end_budget(
        web.database, visitor.actor, page.club.id, known_id(budget_id), read_seen(fields.get("seen", ""))
    )
    return go_to(page.path("spending"))


@post("/c/{slug:str}/spending/incidents/{incident_id:str}/leave", opt=access(Access.STAFF))
async def leave_one(
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    incident_id: FromPath[str],
) -> Redirect:
    """Leave what a budget stopped as it is."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    await leave_incident(web.database, visitor.actor, page.club.id, known_id(incident_id))
    return go_to(page.path("spending"))


async def _show(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    slug: str,
    *,
    after: str = "",
    problem: LastcallError | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        view = await spending_of(tx, visitor.actor, page.club.id)
        start = read_cursor(LISTING, after or None)
        costs = await costs_of(tx, visitor.actor, page.club.id, after=start, limit=PAGE)
    return web.pages.show(
        request,
        "spending.html",
        page.place("staff"),
        page.now,
        status=problem.status if problem else 200,
        view=view,
        costs=costs.costs,
        older=None if costs.next is None else write_cursor(LISTING, costs.next),
        is_first=not after,
        money=money,
        periods=PERIODS,
        seen=seen_text,
        warn_percent=WARN_PERCENT,
        problem=problem,
    )


def _cents(text: str) -> Decimal:
    try:
        return Decimal(text.strip()) * 100
    except ArithmeticError as error:  # no number, or one beyond what decimals hold
        raise Invalid(
            "amount_malformed", "The amount is no number.", advice="Write it like 25.00."
        ) from error


def _percent(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0


def _period(text: str) -> Period:
    if text not in list(Period):
        raise Invalid("form_incomplete", "This form is not complete.", advice="Reload the page.")
    return Period(text)


HANDLERS = (spending_page, set_one, end_one, leave_one)
