"""Accounts at providers: out to one by a form of ours, back from it by the address that is registered there."""

from __future__ import annotations

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.clock import SYSTEM_CLOCK
from lastcall.errors import Conflict, Invalid, NotSignedIn, Unavailable
from lastcall.people.flows import Purpose
from lastcall.people.identities import Callback, begin_at_provider, finish_at_provider, remove_identity
from lastcall.web.access import Access, Visitor, access, browser_of
from lastcall.web.arrival import arrive
from lastcall.web.fields import known_id
from lastcall.web.pages import NOWHERE, PageRequest, form_fields, go_to, own_path
from lastcall.web.room import Web
from lastcall.web.routes.passkeys import refused

IDENTITIES = "/me/sign-in#identities"
NEXT_LENGTH = 2000
"""Characters of the address to go on to, which waits in the database meanwhile."""


@post("/sign-in/with/{provider:str}", opt=access(Access.PUBLIC))
async def sign_in_with(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    provider: FromPath[str],
) -> Response[str]:
    return await _leave(request, web, visitor, provider, Purpose.SIGN_IN, "/sign-in")


@post("/sign-in/confirm/with/{provider:str}", opt=access(Access.SIGNED_IN))
async def confirm_with(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    provider: FromPath[str],
) -> Response[str]:
    where = own_path((await form_fields(request)).get("next", "")) or "/"
    where = where if len(where) <= NEXT_LENGTH else "/"
    return await _leave(request, web, visitor, provider, Purpose.STEP_UP, where)


@post("/me/link/{provider:str}", opt=access(Access.SIGNED_IN, asked_on=IDENTITIES))
async def link_with(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    provider: FromPath[str],
) -> Response[str]:
    return await _leave(request, web, visitor, provider, Purpose.ADD, IDENTITIES)


@get("/sign-in/with/{provider:str}/back", opt=access(Access.PUBLIC))
async def come_back(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    provider: FromPath[str],
) -> Response[str] | Redirect:
    """The provider's answer. It is an address that anybody can write, so nothing in it is believed."""
    query = request.query_params
    callback = Callback(state=query.get("state", ""), code=query.get("code"), issuer=query.get("iss"))
    try:
        finished = await finish_at_provider(
            web.database,
            web.mailer,
            web.offer.providers,
            provider,
            browser_of(request, visitor),
            visitor.found,
            callback,
        )
    except (Conflict, Invalid, NotSignedIn, Unavailable) as error:
        back = "/me/sign-in" if visitor.found else "/sign-in"
        return refused(request, web, error, title="That did not work", back=back)
    if finished.session is not None:
        return arrive(request, web, finished.session)
    return go_to(finished.next)


@post("/me/identities/{identity_id:str}/remove", opt=access(Access.SIGNED_IN, asked_on=IDENTITIES))
async def remove(
    web: NamedDependency[Web], visitor: NamedDependency[Visitor], identity_id: FromPath[str]
) -> Redirect:
    await remove_identity(web.database, visitor.actor, known_id(identity_id))
    return go_to(IDENTITIES)


async def _leave(
    request: PageRequest, web: Web, visitor: Visitor, provider: str, purpose: Purpose, where: str
) -> Response[str]:
    """A page that leads on to the provider. ``where`` the visitor goes afterwards, and when they leave it."""
    offer = web.offer.providers
    address = await begin_at_provider(
        web.database, offer, provider, purpose, browser_of(request, visitor), visitor.found, where
    )
    return web.pages.show(
        request,
        "provider_leaving.html",
        NOWHERE,
        SYSTEM_CLOCK.wall(),
        provider=offer.way(provider).provider,
        address=address,
        back=where,
    )


HANDLERS = (sign_in_with, confirm_with, link_with, come_back, remove)
