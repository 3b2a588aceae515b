"""Who may ask for a page: every route declares it, one guard looks, and a route without a declaration stops
the start.

What is checked here is identity, operatorship and that a form came from our own page. Permissions in a club
are the services' business, and what a person may not see answers 404 there as here.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie
from litestar.datastructures.multi_dicts import MultiMixin
from litestar.handlers import BaseRouteHandler

from lastcall.api.client import client_address
from lastcall.db.database import Database
from lastcall.errors import Invalid, NotAllowed, NotFound, NotSignedIn
from lastcall.people.actor import Actor
from lastcall.people.sessions import Browser, actor_of_session

FORM_FIELD = "form_token"
FORM_HEADER = "x-form-token"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Access(StrEnum):
    """Who a route is for."""

    PUBLIC = "public"
    """Anybody: the sign-in page, styles, health."""
    SIGNED_IN = "signed in"
    STAFF = "staff of the club in the address"
    """Signed in here; that the person is on the staff, and what they may do, is asked by the route's
    queries.
    """
    OPERATOR = "operator"


def access(kind: Access, *, asked_on: str | None = None) -> dict[str, Any]:
    """The declaration that every route handler carries: ``@get(..., opt=access(Access.STAFF))``.

    ``asked_on`` is the page with the form of a dangerous act that has no page at its own address: whoever has to
    confirm first comes back to it.
    """
    return {"access": kind, "asked_on": asked_on}


@dataclass(frozen=True)
class Cookies:
    """The names of our cookies. Under https they carry the prefix with which browsers refuse a weaker one."""

    is_secure: bool

    @property
    def session(self) -> str:
        return "__Host-lastcall" if self.is_secure else "lastcall"

    @property
    def form(self) -> str:
        return "__Host-lastcall-form" if self.is_secure else "lastcall-form"

    def make(self, name: str, value: str, *, max_age: int | None = None) -> Cookie:
        return Cookie(
            key=name,
            value=value,
            max_age=max_age,
            path="/",
            httponly=True,
            samesite="lax",
            secure=self.is_secure,
        )


@dataclass(frozen=True)
class Visitor:
    """Whoever sent the request, signed in or not."""

    session: str | None
    found: Actor | None
    form_key: str
    """The secret that form tokens are made from: the session, else a cookie of this browser alone."""
    is_new: bool
    """Whether ``form_key`` was made just now and has yet to be sent as a cookie."""

    @property
    def actor(self) -> Actor:
        if self.found is None:
            raise NotSignedIn("not_signed_in", "You are not signed in.", advice="Open a sign-in link.")
        return self.found

    @property
    def form_token(self) -> str:
        """What a form carries to show that it is ours; worth nothing without the cookie it was made from."""
        return hmac.new(self.form_key.encode(), b"form", hashlib.sha256).hexdigest()


def browser_of(request: ASGIConnection[Any, Any, Any, Any], visitor: Visitor) -> Browser:
    """The browser that sent the request, as signing in wants to know it."""
    return Browser(
        key=visitor.form_key,
        user_agent=request.headers.get("user-agent", ""),
        session=visitor.session,
        source=client_address(request),
    )


async def look_at(
    request: ASGIConnection[Any, Any, Any, Any], database: Database, cookies: Cookies
) -> Visitor:
    """Find out who sent the request. An unknown, ended or expired session is nobody."""
    session = request.cookies.get(cookies.session)
    found = await actor_of_session(database, session) if session else None
    if session and found:
        return Visitor(session, found, session, is_new=False)
    form_key = request.cookies.get(cookies.form)
    return Visitor(None, None, form_key or secrets.token_urlsafe(32), is_new=not form_key)


async def guard(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Let the request through or raise; leaves the ``Visitor`` in the request's state."""
    if connection.scope.get("method") == "OPTIONS":
        return  # The framework's own answer to it names the methods of the address, and nothing else.
    kind = Access(handler.opt["access"])
    state = connection.app.state
    visitor = await look_at(connection, state.database, state.cookies)
    connection.state.visitor = visitor
    if kind is not Access.PUBLIC:
        actor = visitor.actor
        if kind is Access.OPERATOR and not actor.is_operator:
            raise NotFound("not_found", "There is no such page.")
    _check_text(connection.query_params)
    if connection.scope.get("method") not in _SAFE:
        request = cast("Request[Any, Any, Any]", connection)
        await _check_form(request, visitor)
        _check_text(await request.form())


def _check_text(fields: MultiMixin[Any]) -> None:
    """No field of a page holds a zero character, which no text in the database can."""
    for name, value in fields.multi_items():
        if "\0" in name or (isinstance(value, str) and "\0" in value):
            raise Invalid(
                "zero_character", "Text cannot hold a zero character.", advice="Type it again, without it."
            )


async def _check_form(request: Request[Any, Any, Any], visitor: Visitor) -> None:
    given = request.headers.get(FORM_HEADER)
    if given is None:
        given = (await request.form()).get(FORM_FIELD)
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(), visitor.form_token.encode()):
        raise NotAllowed(
            "form_out_of_date",
            "This form is out of date, so nothing was done.",
            advice="Reload the page and send it again.",
        )
