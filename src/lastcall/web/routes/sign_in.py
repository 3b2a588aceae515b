"""In and out: a one-time link, opened by GET and used up by POST."""

from __future__ import annotations

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.clock import SYSTEM_CLOCK
from lastcall.errors import NotSignedIn
from lastcall.people.sessions import SESSION_LIFE, end_session
from lastcall.people.sign_in import peek_sign_in_link, redeem_sign_in_link
from lastcall.web.access import Access, Visitor, access
from lastcall.web.pages import NOWHERE, PageRequest, go_to
from lastcall.web.problems import NEXT_COOKIE
from lastcall.web.room import Web


@get("/sign-in", opt=access(Access.PUBLIC))
async def sign_in_page(request: PageRequest, web: NamedDependency[Web]) -> Response[str]:
    return web.pages.show(request, "sign_in.html", NOWHERE, SYSTEM_CLOCK.wall(), came_from="")


@get("/sign-in/{token:str}", opt=access(Access.PUBLIC))
async def open_link(request: PageRequest, web: NamedDependency[Web], token: FromPath[str]) -> Response[str]:
    """Mail scanners open links too, so opening uses nothing up."""
    is_good = await peek_sign_in_link(web.database, token) is not None
    return _link_page(request, web, token, is_good=is_good)


@post("/sign-in/{token:str}", opt=access(Access.PUBLIC))
async def redeem_link(
    request: PageRequest, web: NamedDependency[Web], token: FromPath[str]
) -> Response[str] | Redirect:
    try:
        session, _ = await redeem_sign_in_link(web.database, token)
    except NotSignedIn:
        return _link_page(request, web, token, is_good=False)
    asked_for = request.cookies.get(NEXT_COOKIE, "/")
    # Only a path of our own: two slashes or a backslash would lead to another host.
    is_ours = asked_for.startswith("/") and not asked_for.startswith(("//", "/\\"))
    answer = go_to(asked_for if is_ours else "/")
    cookies = web.pages.cookies
    answer.set_cookie(cookies.make(cookies.session, session, max_age=int(SESSION_LIFE.total_seconds())))
    answer.set_cookie(cookies.make(cookies.form, "", max_age=0))
    answer.set_cookie(cookies.make(NEXT_COOKIE, "", max_age=0))
    return answer


def _link_page(request: PageRequest, web: Web, token: str, *, is_good: bool) -> Response[str]:
    return web.pages.show(
        request,
        "sign_in_link.html",
        NOWHERE,
        SYSTEM_CLOCK.wall(),
        status=200 if is_good else NotSignedIn.status,
        token=token,
        is_good=is_good,
    )


@post("/sign-out", opt=access(Access.SIGNED_IN))
async def sign_out(web: NamedDependency[Web], visitor: NamedDependency[Visitor]) -> Redirect:
    if visitor.session:
        await end_session(web.database, visitor.session)
    answer = go_to("/sign-in")
    answer.set_cookie(web.pages.cookies.make(web.pages.cookies.session, "", max_age=0))
    return answer


HANDLERS = (sign_in_page, open_link, redeem_link, sign_out)
