"""An invitation as whoever holds its address sees it: signed out, signed in, or not the one it is for.

Opening it uses nothing up. Every address that cannot be used gets the same page and the same status, and how often
one source may look is limited, because the address is the key.
"""

from __future__ import annotations

from litestar import Response, get, post
from litestar.datastructures import Cookie
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.access.acceptance import accept_invite
from lastcall.access.deciding import withdraw_join_request
from lastcall.access.limits import INVITE_LOOKUPS
from lastcall.access.policy import invite_unknown
from lastcall.access.queries import InviteSummary, invite_summary
from lastcall.access.requests import RequestStatus
from lastcall.clock import SYSTEM_CLOCK
from lastcall.db.limits import source_of, take
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound
from lastcall.people.account import request_sign_in
from lastcall.web.access import Access, Visitor, access, browser_of
from lastcall.web.pages import NOWHERE, PageRequest, form_fields, go_to
from lastcall.web.problems import NEXT_COOKIE, NEXT_SECONDS
from lastcall.web.room import Web
from lastcall.web.routes.sign_in import no_mail


@get("/invites/{token:str}", opt=access(Access.PUBLIC))
async def open_invite(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], token: FromPath[str]
) -> Response[str]:
    return await _page(request, web, visitor, token)


@post("/invites/{token:str}", opt=access(Access.SIGNED_IN))
async def accept(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], token: FromPath[str]
) -> Response[str] | Redirect:
    """The page after it says what became of it, however often it is opened."""
    await _count(request, web, visitor)
    try:
        await accept_invite(web.database, visitor.actor, token, mailer=web.mailer)
    except NotFound:
        return _show(request, web, token, None)
    except (NotAllowed, Conflict) as error:
        summary = await _summary(web, visitor, token)
        return _show(request, web, token, summary, status=error.status, problem=error)
    return go_to(f"/invites/{token}")


@post("/invites/{token:str}/sign-in", opt=access(Access.PUBLIC))
async def ask_to_sign_in(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], token: FromPath[str]
) -> Response[str] | Redirect:
    """Mail a way to sign in, which makes an account for whoever has none yet, when they use it; then back here."""
    await _count(request, web, visitor)
    if not web.mailer.is_configured:
        raise no_mail()
    email = (await form_fields(request)).get("email", "")
    summary = await _summary(web, visitor, token)
    if summary is None:
        return _show(request, web, token, None)
    try:
        await request_sign_in(web.database, web.mailer, email, browser_of(request, visitor), may_join=True)
    except Invalid as error:
        return _show(request, web, token, summary, status=Invalid.status, email=email, wrong_email=error)
    answer = go_to("/sign-in/code")
    answer.set_cookie(_way_back(web, token))
    return answer


@post("/invites/{token:str}/withdraw", opt=access(Access.SIGNED_IN))
async def withdraw(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], token: FromPath[str]
) -> Redirect:
    """Take back the request that the visitor's acceptance made."""
    await _count(request, web, visitor)
    summary = await _summary(web, visitor, token)
    if summary is None or summary.request_id is None:
        raise invite_unknown()
    if summary.status is RequestStatus.PENDING:
        await withdraw_join_request(web.database, visitor.actor, summary.club_id, summary.request_id)
    return go_to(f"/invites/{token}")


async def _page(request: PageRequest, web: Web, visitor: Visitor, token: str) -> Response[str]:
    await _count(request, web, visitor)
    summary = await _summary(web, visitor, token)
    answer = _show(request, web, token, summary)
    if summary is not None and (visitor.found is None or not summary.is_for_viewer):
        answer.set_cookie(_way_back(web, token))
    return answer


async def _count(request: PageRequest, web: Web, visitor: Visitor) -> None:
    """Whoever is signed in counts alone, so that a club's whole staff may join from one venue."""
    who = (
        f"person {visitor.found.person_id}"
        if visitor.found
        else source_of(browser_of(request, visitor).source)
    )
    await take(web.database, INVITE_LOOKUPS, who)


async def _summary(web: Web, visitor: Visitor, token: str) -> InviteSummary | None:
    try:
        return await invite_summary(web.database, token, visitor.found)
    except NotFound:
        return None


def _way_back(web: Web, token: str) -> Cookie:
    """Where the visitor is led after signing in, however they do."""
    return web.pages.cookies.make(NEXT_COOKIE, f"/invites/{token}", max_age=NEXT_SECONDS)


def _show(
    request: PageRequest,
    web: Web,
    token: str,
    invite: InviteSummary | None,
    *,
    status: int = 200,
    problem: LastcallError | None = None,
    email: str = "",
    wrong_email: Invalid | None = None,
) -> Response[str]:
    return web.pages.show(
        request,
        "invite.html",
        NOWHERE,
        SYSTEM_CLOCK.wall(),
        status=NotFound.status if invite is None else status,
        invite=invite,
        token=token,
        problem=problem,
        email=email,
        wrong_email=wrong_email,
        has_mail=web.mailer.is_configured,
    )


HANDLERS = (open_invite, accept, ask_to_sign_in, withdraw)
