"""In and out: a mail is asked for, a link is opened by GET and used up by POST, or its code is typed."""

from __future__ import annotations

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.clock import SYSTEM_CLOCK
from lastcall.errors import Invalid, NotSignedIn, Unavailable
from lastcall.people.account import confirm_step_up, request_sign_in, request_step_up
from lastcall.people.sessions import end_session
from lastcall.people.sign_in import peek_sign_in_link, redeem_sign_in_code, redeem_sign_in_link
from lastcall.people.tokens import shown_code
from lastcall.web.access import Access, Visitor, access, browser_of
from lastcall.web.arrival import arrive
from lastcall.web.pages import NOWHERE, PageRequest, form_fields, go_to, own_path
from lastcall.web.problems import NEXT_COOKIE, NEXT_SECONDS, confirm_first
from lastcall.web.room import Web
from lastcall.web.ways import confirming


@get("/sign-in", opt=access(Access.PUBLIC))
async def sign_in_page(request: PageRequest, web: NamedDependency[Web]) -> Response[str]:
    """``next`` in the address is where the visitor goes afterwards."""
    where = own_path(request.query_params.get("next", ""))
    answer = _page(request, web, "sign_in.html", came_from=where or "", email="", problem=None)
    if where:
        answer.set_cookie(web.pages.cookies.make(NEXT_COOKIE, where, max_age=NEXT_SECONDS))
    return answer


@post("/sign-in", opt=access(Access.PUBLIC))
async def ask_for_link(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str] | Redirect:
    """The answer is the same for every address; whether a mail goes out is found out after it."""
    email = (await form_fields(request)).get("email", "")
    if not web.mailer.is_configured:
        raise no_mail()
    try:
        await request_sign_in(web.database, web.mailer, email, browser_of(request, visitor))
    except Invalid as error:
        return _page(request, web, "sign_in.html", status=422, came_from="", email=email, problem=error)
    return go_to("/sign-in/code")


@get("/sign-in/code", opt=access(Access.PUBLIC))
async def code_page(request: PageRequest, web: NamedDependency[Web]) -> Response[str]:
    return _page(request, web, "sign_in_code.html", problem=None)


@post("/sign-in/code", opt=access(Access.PUBLIC))
async def use_code(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str] | Redirect:
    code = (await form_fields(request)).get("code", "")
    try:
        session, _ = await redeem_sign_in_code(web.database, code, browser_of(request, visitor))
    except NotSignedIn as error:
        return _page(request, web, "sign_in_code.html", status=error.status, problem=error)
    return arrive(request, web, session)


@get("/sign-in/confirm", opt=access(Access.SIGNED_IN))
async def confirm_page(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    sent: FromQuery[str] = "",
) -> Response[str] | Redirect:
    """Shows again that it is them, and goes on to where they were."""
    where = _next_of(request.query_params.get("next", ""))
    if visitor.actor.is_recent:
        return go_to(where)
    return await _confirm_page(request, web, visitor, where, is_sent=sent == "yes")


@post("/sign-in/confirm/mail", opt=access(Access.SIGNED_IN))
async def mail_confirm_code(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Redirect:
    where = _next_of((await form_fields(request)).get("next", ""))
    if not web.mailer.is_configured:
        raise no_mail()
    await request_step_up(web.database, web.mailer, visitor.actor, browser_of(request, visitor))
    return go_to(confirm_first(where) + "&sent=yes")


@post("/sign-in/confirm", opt=access(Access.SIGNED_IN))
async def confirm(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str] | Redirect:
    fields = await form_fields(request)
    where = _next_of(fields.get("next", ""))
    try:
        await confirm_step_up(
            web.database, visitor.actor, fields.get("code", ""), browser_of(request, visitor)
        )
    except NotSignedIn as error:
        return await _confirm_page(request, web, visitor, where, is_sent=True, problem=error)
    return go_to(where)


@get("/sign-in/{token:str}", opt=access(Access.PUBLIC))
async def open_link(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], token: FromPath[str]
) -> Response[str]:
    """Mail scanners open links too, so opening uses nothing up."""
    return await _link_page(request, web, visitor, token)


@post("/sign-in/{token:str}", opt=access(Access.PUBLIC))
async def redeem_link(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], token: FromPath[str]
) -> Response[str] | Redirect:
    try:
        session, _ = await redeem_sign_in_link(web.database, token, browser_of(request, visitor))
    except NotSignedIn:
        return await _link_page(request, web, visitor, token, status=403)
    return arrive(request, web, session)


@post("/sign-out", opt=access(Access.SIGNED_IN))
async def sign_out(web: NamedDependency[Web], visitor: NamedDependency[Visitor]) -> Redirect:
    if visitor.session:
        await end_session(web.database, visitor.session)
    answer = go_to("/sign-in")
    answer.set_cookie(web.pages.cookies.make(web.pages.cookies.session, "", max_age=0))
    return answer


def no_mail() -> Unavailable:
    """What pages say where mail is not set up."""
    return Unavailable(
        "mail_not_set_up",
        "This server sends no mail.",
        advice="Ask whoever runs it for a sign-in link.",
    )


async def _link_page(
    request: PageRequest, web: Web, visitor: Visitor, token: str, *, status: int = 200
) -> Response[str]:
    link = await peek_sign_in_link(web.database, token, visitor.form_key)
    return _page(
        request,
        web,
        "sign_in_link.html",
        status=NotSignedIn.status if link is None else status,
        token=token,
        link=link,
        code=shown_code(link.code) if link else "",
    )


async def _confirm_page(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    where: str,
    *,
    is_sent: bool,
    problem: NotSignedIn | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        ways = await confirming(tx, visitor.actor, web.offer)
    status = 422 if problem else 200
    values = {"next": where, "is_sent": is_sent, "problem": problem, "confirming": ways}
    return _page(request, web, "confirm.html", status=status, **values)


def _next_of(text: str) -> str:
    return own_path(text) or "/"


def _page(
    request: PageRequest, web: Web, template: str, *, status: int = 200, **values: object
) -> Response[str]:
    return web.pages.show(
        request,
        template,
        NOWHERE,
        SYSTEM_CLOCK.wall(),
        status=status,
        has_mail=web.mailer.is_configured,
        **values,
    )


HANDLERS = (
    sign_in_page,
    ask_for_link,
    code_page,
    use_code,
    confirm_page,
    mail_confirm_code,
    confirm,
    open_link,
    redeem_link,
    sign_out,
)
