"""Passkeys: options for the browser as JSON, and its answer as an ordinary form."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.clock import SYSTEM_CLOCK
from lastcall.errors import Invalid, LastcallError, NotSignedIn
from lastcall.people.passkeys import (
    add_passkey,
    begin_adding,
    begin_confirming,
    begin_signing_in,
    confirm_by_passkey,
    remove_passkey,
    sign_in_by_passkey,
)
from lastcall.web.access import Access, Visitor, access, browser_of
from lastcall.web.arrival import arrive
from lastcall.web.fields import known_id
from lastcall.web.pages import NOWHERE, PageRequest, Place, form_fields, go_to, own_path
from lastcall.web.problems import confirm_first
from lastcall.web.room import Web, database_now
from lastcall.web.ways import own_ways

PASSKEYS = "/me/sign-in#passkeys"


@post("/sign-in/passkey/options", opt=access(Access.PUBLIC), status_code=200)
async def sign_in_options(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[dict[str, Any]]:
    browser = browser_of(request, visitor)
    return _options(await begin_signing_in(web.database, web.offer.party, browser))


@post("/sign-in/passkey", opt=access(Access.PUBLIC))
async def sign_in_with_passkey(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str] | Redirect:
    answer = (await form_fields(request)).get("credential", "")
    try:
        session, _ = await sign_in_by_passkey(
            web.database, web.offer.party, browser_of(request, visitor), answer
        )
    except (Invalid, NotSignedIn) as error:
        return refused(request, web, error, title="Not signed in", back="/sign-in")
    return arrive(request, web, session)


@post("/sign-in/confirm/passkey/options", opt=access(Access.SIGNED_IN), status_code=200)
async def confirm_options(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[dict[str, Any]]:
    browser = browser_of(request, visitor)
    return _options(await begin_confirming(web.database, web.offer.party, visitor.actor, browser))


@post("/sign-in/confirm/passkey", opt=access(Access.SIGNED_IN))
async def confirm_with_passkey(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str] | Redirect:
    fields = await form_fields(request)
    browser, answer = browser_of(request, visitor), fields.get("credential", "")
    where = own_path(fields.get("next", "")) or "/"
    try:
        await confirm_by_passkey(web.database, web.offer.party, visitor.actor, browser, answer)
    except (Invalid, NotSignedIn) as error:
        return refused(request, web, error, title="Not confirmed", back=confirm_first(where))
    return go_to(where)


@get("/me/sign-in", opt=access(Access.SIGNED_IN))
async def own_ways_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str]:
    """The person's passkeys and linked accounts."""
    async with web.database.read() as tx:
        ways, now = await own_ways(tx, visitor.actor, web.offer), await database_now(tx)
    return web.pages.show(request, "own_ways.html", Place("me"), now, ways=ways)


@post("/me/passkeys/options", opt=access(Access.SIGNED_IN), status_code=200)
async def adding_options(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[dict[str, Any]]:
    browser = browser_of(request, visitor)
    return _options(await begin_adding(web.database, web.offer.party, visitor.actor, browser))


@post("/me/passkeys", opt=access(Access.SIGNED_IN))
async def add(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str] | Redirect:
    fields = await form_fields(request)
    try:
        await add_passkey(
            web.database,
            web.mailer,
            web.offer.party,
            visitor.actor,
            browser_of(request, visitor),
            fields.get("credential", ""),
            fields.get("name", ""),
        )
    except (Invalid, NotSignedIn) as error:
        return refused(request, web, error, title="Nothing was added", back=PASSKEYS)
    return go_to(PASSKEYS)


@post("/me/passkeys/{passkey_id:str}/remove", opt=access(Access.SIGNED_IN, asked_on=PASSKEYS))
async def remove(
    web: NamedDependency[Web], visitor: NamedDependency[Visitor], passkey_id: FromPath[str]
) -> Redirect:
    await remove_passkey(web.database, visitor.actor, known_id(passkey_id))
    return go_to(PASSKEYS)


def refused(request: PageRequest, web: Web, error: LastcallError, *, title: str, back: str) -> Response[str]:
    """What did not work, and the way back to where it began."""
    return web.pages.show(
        request,
        "sign_in_refused.html",
        NOWHERE,
        SYSTEM_CLOCK.wall(),
        status=error.status,
        title=title,
        error=error,
        back=back,
    )


def _options(options: dict[str, Any]) -> Response[dict[str, Any]]:
    return Response(options, headers={"Cache-Control": "no-store"})


HANDLERS = (
    sign_in_options,
    sign_in_with_passkey,
    confirm_options,
    confirm_with_passkey,
    own_ways_page,
    adding_options,
    add,
    remove,
)
