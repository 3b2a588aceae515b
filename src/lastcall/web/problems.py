"""Errors as pages say them: a sentence, what to do, and the way back."""

from __future__ import annotations

from urllib.parse import urlencode

from litestar import MediaType, Response

from lastcall.api.problems import as_family, retry_after
from lastcall.clock import SYSTEM_CLOCK
from lastcall.errors import Conflict, LastcallError, NotSignedIn, WrongRequest
from lastcall.people.actor import STEP_UP_NEEDED
from lastcall.web.access import Visitor
from lastcall.web.pages import NOWHERE, PageRequest, here, is_fragment
from lastcall.web.room import provide_web

NEXT_COOKIE = "lastcall-next"
"""Where the visitor wanted to go before they were asked to sign in."""
NEXT_SECONDS = 3600

TITLES = {
    401: "Sign in",
    403: "Not allowed",
    404: "Not found",
    408: "Too slow",
    409: "Refresh to continue",
    413: "Too large",
    422: "Something is not right yet",
    429: "Too fast",
    503: "Not available right now",
}


def page_problem(request: PageRequest, exception: Exception) -> Response[str]:
    """An exception as a page, for every path that people open."""
    error = as_family(exception)
    if not hasattr(request.state, "visitor"):
        # The address is unknown, so the guard never looked; the page needs nobody's name.
        request.state.visitor = Visitor(None, None, "", is_new=False)
    if isinstance(error, NotSignedIn):
        return _sign_in(request, error)
    if error.code == STEP_UP_NEEDED:
        return _confirm(request)
    answer = provide_web(request).pages.show(
        request,
        "problem.html",
        NOWHERE,
        SYSTEM_CLOCK.wall(),
        status=error.status,
        title=TITLES.get(error.status, "Something went wrong"),
        sentence=error.sentence,
        advice=error.advice,
        code=error.code,
        back=_way_back(request, error),
    )
    if isinstance(error, WrongRequest):
        answer.headers.update(error.headers)
    answer.headers.update(retry_after(error))
    return answer


def _sign_in(request: PageRequest, error: NotSignedIn) -> Response[str]:
    web = provide_web(request)
    asked_for = request.url.path if request.method == "GET" else ""
    answer = web.pages.show(
        request,
        "sign_in.html",
        NOWHERE,
        SYSTEM_CLOCK.wall(),
        status=error.status,
        came_from=asked_for,
        has_mail=web.mailer.is_configured,
        email="",
        problem=None,
    )
    if asked_for:
        answer.set_cookie(web.pages.cookies.make(NEXT_COOKIE, asked_for, max_age=NEXT_SECONDS))
    return answer


def _confirm(request: PageRequest) -> Response[str]:
    """To the page where people confirm, and back afterwards to where the form is: at the address that it is sent
    to, unless its route says otherwise.
    """
    where = confirm_first(request.route_handler.opt.get("asked_on") or here(request))
    if is_fragment(request):
        return Response("", headers={"HX-Redirect": where}, media_type=MediaType.HTML)
    return Response("", status_code=303, headers={"Location": where}, media_type=MediaType.HTML)


def confirm_first(where: str) -> str:
    """The page where people confirm, which goes on to ``where``."""
    return "/sign-in/confirm?" + urlencode({"next": where})


def _way_back(request: PageRequest, error: LastcallError) -> str | None:
    """The list behind a form whose row moved on: the first two parts of the address."""
    slug = request.path_params.get("slug")
    if not slug:
        return None
    return f"/c/{slug}/scheduled" if isinstance(error, Conflict) or error.status == 403 else None
