"""The Slack of a club: connecting a workspace, and the links that its people open from there."""

from __future__ import annotations

from litestar import Response, get, post
from litestar.datastructures import Cookie
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.access.limits import INVITE_LOOKUPS
from lastcall.access.slack.installing import Slack, begin_install, finish_install, remove_install, slack_of
from lastcall.access.slack.linking import LinkPreview, confirm_link, preview_link, request_access, unlink
from lastcall.clock import SYSTEM_CLOCK
from lastcall.clubs.policy import standing_of
from lastcall.clubs.queries import roles_of
from lastcall.db.limits import source_of, take
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound, Unavailable
from lastcall.people.account import request_sign_in
from lastcall.people.scopes import Scope
from lastcall.people.tokens import browser_hash
from lastcall.web.access import Access, Visitor, access, browser_of
from lastcall.web.club import club_page
from lastcall.web.fields import known_id
from lastcall.web.pages import NOWHERE, PageRequest, form_fields, go_to
from lastcall.web.problems import NEXT_COOKIE, NEXT_SECONDS
from lastcall.web.room import Web
from lastcall.web.routes.passkeys import refused
from lastcall.web.routes.sign_in import no_mail

SECTION = "staff"


@get("/c/{slug:str}/slack", opt=access(Access.STAFF))
async def slack_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    return await _club_page(request, web, visitor, slug)


@post("/c/{slug:str}/slack", opt=access(Access.STAFF))
async def leave_for_slack(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    """On to Slack, by a page of its own: a form may not lead to another host by itself."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    role = (await form_fields(request)).get("role", "")
    try:
        address = await begin_install(
            web.database,
            _app(web),
            visitor.actor,
            page.club.id,
            known_id(role),
            browser_hash(visitor.form_key),
        )
    except NotAllowed as error:
        return await _club_page(request, web, visitor, slug, problem=error)
    return web.pages.show(
        request, "slack_leaving.html", NOWHERE, page.now, address=address, back=f"/c/{slug}/slack"
    )


@get("/slack/installed", opt=access(Access.SIGNED_IN))
async def come_back(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str] | Redirect:
    """Slack's answer. It is an address that anybody can write, so nothing in it is believed."""
    query = request.query_params
    code, state = query.get("code", ""), query.get("state", "")
    browser = browser_hash(visitor.form_key)
    try:
        slug = await finish_install(web.database, _app(web), visitor.actor, code, state, browser)
    except (Conflict, Invalid, NotAllowed, NotFound, Unavailable) as error:
        return refused(request, web, error, title="Slack was not connected", back="/")
    return go_to(f"/c/{slug}/slack")


@post("/c/{slug:str}/slack/remove", opt=access(Access.STAFF))
async def remove(
    web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Redirect:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    await remove_install(web.database, web.slack, visitor.actor, page.club.id)
    return go_to(f"/c/{slug}/slack")


@post("/c/{slug:str}/slack/unlink", opt=access(Access.STAFF))
async def let_go(
    web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Redirect:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    await unlink(web.database, visitor.actor, page.club.id)
    return go_to(f"/c/{slug}/slack")


@get("/slack/connect/{token:str}", opt=access(Access.PUBLIC))
async def open_link(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], token: FromPath[str]
) -> Response[str]:
    await _count(request, web, visitor)
    link = await _preview(web, visitor, token)
    answer = _show(request, web, token, link)
    if visitor.found is None and link is not None:
        answer.set_cookie(_way_back(web, token))
    return answer


@post("/slack/connect/{token:str}/sign-in", opt=access(Access.PUBLIC))
async def ask_to_sign_in(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], token: FromPath[str]
) -> Response[str] | Redirect:
    """Mail a way to sign in, which makes an account for whoever has none yet, when they use it; then back here."""
    await _count(request, web, visitor)
    if not web.mailer.is_configured:
        raise no_mail()
    email = (await form_fields(request)).get("email", "")
    link = await _preview(web, visitor, token)
    if link is None:
        return _show(request, web, token, None)
    try:
        await request_sign_in(web.database, web.mailer, email, browser_of(request, visitor), may_join=True)
    except Invalid as error:
        return _show(request, web, token, link, problem=error)
    answer = go_to("/sign-in/code")
    answer.set_cookie(_way_back(web, token))
    return answer


@post("/slack/connect/{token:str}/ask", opt=access(Access.SIGNED_IN))
async def ask(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], token: FromPath[str]
) -> Response[str] | Redirect:
    await _count(request, web, visitor)
    try:
        await request_access(web.database, visitor.actor, token)
    except NotFound:
        return _show(request, web, token, None)
    return go_to(f"/slack/connect/{token}")


@post("/slack/connect/{token:str}/confirm", opt=access(Access.SIGNED_IN))
async def confirm(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], token: FromPath[str]
) -> Response[str] | Redirect:
    await _count(request, web, visitor)
    try:
        await confirm_link(web.database, visitor.actor, token)
    except NotFound:
        return _show(request, web, token, None)
    except (Conflict, NotAllowed) as error:
        return _show(request, web, token, await _preview(web, visitor, token), problem=error)
    return go_to(f"/slack/connect/{token}")


async def _club_page(
    request: PageRequest, web: Web, visitor: Visitor, slug: str, *, problem: LastcallError | None = None
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        found = await slack_of(tx, visitor.actor, page.club.id)
        standing = await standing_of(tx, visitor.actor, page.club.id, scope=Scope.READ)
        roles = [role for role in await roles_of(tx, page.club.id) if standing.may_hand_on(role.id)]
    return web.pages.show(
        request,
        "slack.html",
        page.place(SECTION),
        page.now,
        status=problem.status if problem else 200,
        found=found,
        roles=roles,
        problem=problem,
        has_app=web.slack is not None,
    )


def _app(web: Web) -> Slack:
    if web.slack is None:
        raise NotFound("slack_off", "This server has no Slack app.", advice="Ask whoever runs it.")
    return web.slack


async def _count(request: PageRequest, web: Web, visitor: Visitor) -> None:
    """Opening links counts together with opening invitations: both addresses are keys."""
    who = (
        f"person {visitor.found.person_id}"
        if visitor.found
        else source_of(browser_of(request, visitor).source)
    )
    await take(web.database, INVITE_LOOKUPS, who)


async def _preview(web: Web, visitor: Visitor, token: str) -> LinkPreview | None:
    try:
        async with web.database.read() as tx:
            return await preview_link(tx, token, visitor.found)
    except NotFound:
        return None


def _way_back(web: Web, token: str) -> Cookie:
    return web.pages.cookies.make(NEXT_COOKIE, f"/slack/connect/{token}", max_age=NEXT_SECONDS)


def _show(
    request: PageRequest,
    web: Web,
    token: str,
    link: LinkPreview | None,
    *,
    problem: LastcallError | None = None,
) -> Response[str]:
    status = NotFound.status if link is None else problem.status if problem else 200
    return web.pages.show(
        request,
        "slack_connect.html",
        NOWHERE,
        SYSTEM_CLOCK.wall(),
        status=status,
        link=link,
        token=token,
        problem=problem,
        has_mail=web.mailer.is_configured,
    )


HANDLERS = (slack_page, leave_for_slack, come_back, remove, let_go, open_link, ask_to_sign_in, ask, confirm)
