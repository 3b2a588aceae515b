"""The end of every way to sign in: the session's cookie, and on to where the visitor wanted to go."""

from __future__ import annotations

from litestar.response import Redirect

from lastcall.people.sessions import SESSION_LIFE
from lastcall.web.pages import PageRequest, go_to, own_path
from lastcall.web.problems import NEXT_COOKIE
from lastcall.web.room import Web


def arrive(request: PageRequest, web: Web, session: str) -> Redirect:
    """Answer with the session's cookie. What this browser was known by before is forgotten with it."""
    answer = go_to(own_path(request.cookies.get(NEXT_COOKIE, "/")) or "/")
    cookies = web.pages.cookies
    answer.set_cookie(cookies.make(cookies.session, session, max_age=int(SESSION_LIFE.total_seconds())))
    answer.set_cookie(cookies.make(cookies.form, "", max_age=0))
    answer.set_cookie(cookies.make(NEXT_COOKIE, "", max_age=0))
    return answer
