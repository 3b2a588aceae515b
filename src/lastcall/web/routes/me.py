"""A person's own account: name, mail address, sessions, API tokens, and which mails they want.

What is dangerous has its question and its answer at one address, so that a person who must confirm first comes
back to the question.
"""

from __future__ import annotations

from datetime import timedelta

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.errors import Invalid, NotFound, NotSignedIn
from lastcall.people.account import confirm_email_change, rename, request_email_change
from lastcall.people.api_tokens import create_token, revoke_token, tokens_of
from lastcall.people.preferences import preferences_of, set_preferences
from lastcall.people.queries import own_account
from lastcall.people.scopes import Scope
from lastcall.people.sessions import end_other_sessions, end_session_by_id, sessions_of
from lastcall.web.access import Access, Visitor, access, browser_of
from lastcall.web.browsers import browser_name
from lastcall.web.fields import known_id
from lastcall.web.pages import PageRequest, Place, form_fields, go_to
from lastcall.web.room import Web, database_now
from lastcall.web.routes.sign_in import no_mail

PLACE = Place("me")
LIVES = (7, 30, 90, 365)
"""Days that a new token may be made for."""


@get("/me", opt=access(Access.SIGNED_IN))
async def account_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str]:
    return await _account(request, web, visitor)


@post("/me/name", opt=access(Access.SIGNED_IN))
async def change_name(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str] | Redirect:
    name = (await form_fields(request)).get("display_name", "")
    try:
        await rename(web.database, visitor.actor, name)
    except Invalid as error:
        return await _account(request, web, visitor, name=name, problem=error)
    return go_to("/me")


@get("/me/email", opt=access(Access.SIGNED_IN))
async def email_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str]:
    visitor.actor.require_recent()
    return await _show(request, web, "me_email.html", email="", problem=None)


@post("/me/email", opt=access(Access.SIGNED_IN))
async def ask_for_email(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str] | Redirect:
    """The answer is the same for an address that somebody else has."""
    email = (await form_fields(request)).get("email", "")
    if not web.mailer.is_configured:
        raise no_mail()
    browser = browser_of(request, visitor)
    try:
        await request_email_change(web.database, web.mailer, visitor.actor, email, browser)
    except Invalid as error:
        return await _show(request, web, "me_email.html", status=422, email=email, problem=error)
    return go_to("/me/email/confirm")


@get("/me/email/confirm", opt=access(Access.SIGNED_IN))
async def email_code_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str]:
    visitor.actor.require_recent()
    return await _show(request, web, "me_email_code.html", problem=None)


@post("/me/email/confirm", opt=access(Access.SIGNED_IN))
async def change_email(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str] | Redirect:
    code = (await form_fields(request)).get("code", "")
    browser = browser_of(request, visitor)
    try:
        await confirm_email_change(web.database, web.mailer, visitor.actor, code, browser)
    except NotSignedIn as error:
        return await _show(request, web, "me_email_code.html", status=422, problem=error)
    return go_to("/me")


@post("/me/mails", opt=access(Access.SIGNED_IN))
async def choose_mails(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Redirect:
    wanted = [str(topic) for topic in (await request.form()).getall("topic", [])]
    await set_preferences(web.database, visitor.actor, wanted)
    return go_to("/me")


@post("/me/sessions/{session_id:str}", opt=access(Access.SIGNED_IN))
async def end_one_session(
    web: NamedDependency[Web], visitor: NamedDependency[Visitor], session_id: FromPath[str]
) -> Redirect:
    await end_session_by_id(web.database, visitor.actor, known_id(session_id))
    return go_to("/me")


@post("/me/sessions", opt=access(Access.SIGNED_IN))
async def end_the_others(web: NamedDependency[Web], visitor: NamedDependency[Visitor]) -> Redirect:
    await end_other_sessions(web.database, visitor.actor)
    return go_to("/me")


@get("/me/tokens/new", opt=access(Access.SIGNED_IN))
async def token_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str]:
    visitor.actor.require_recent()
    return await _token_form(request, web, visitor)


@post("/me/tokens/new", opt=access(Access.SIGNED_IN))
async def make_token(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str]:
    """The answer shows the token, this once; it is stored nowhere."""
    fields = await form_fields(request)
    chosen = {str(scope) for scope in (await request.form()).getall("scope", [])}
    days = fields.get("days", "")
    try:
        _, token = await create_token(
            web.database,
            web.mailer,
            visitor.actor,
            fields.get("name", ""),
            [scope for scope in Scope if scope in chosen],
            timedelta(days=int(days) if days.isascii() and days.isdigit() and len(days) < 5 else 0),
        )
    except Invalid as error:
        return await _token_form(request, web, visitor, fields=fields, chosen=chosen, problem=error)
    return await _show(request, web, "me_token_made.html", token=token, name=fields["name"])


@get("/me/tokens/{token_id:str}", opt=access(Access.SIGNED_IN))
async def ask_revoke(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    token_id: FromPath[str],
) -> Response[str]:
    """The question before a token ends."""
    wanted = known_id(token_id)
    async with web.database.read() as tx:
        now = await database_now(tx)
        found = [one for one in await tokens_of(tx, visitor.actor) if one.id == wanted]
    if not found:
        raise NotFound("token_unknown", "You have no such token.", advice="Reload the page.")
    return web.pages.ask(request, "me_token_ask.html", PLACE, now, title="Revoke a token", token=found[0])


@post("/me/tokens/{token_id:str}", opt=access(Access.SIGNED_IN))
async def revoke(
    web: NamedDependency[Web], visitor: NamedDependency[Visitor], token_id: FromPath[str]
) -> Redirect:
    await revoke_token(web.database, visitor.actor, known_id(token_id))
    return go_to("/me")


async def _account(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    *,
    name: str | None = None,
    problem: Invalid | None = None,
) -> Response[str]:
    actor = visitor.actor
    async with web.database.read() as tx:
        now = await database_now(tx)
        person = await own_account(tx, actor)
        sessions = await sessions_of(tx, actor)
        tokens = await tokens_of(tx, actor)
        preferences = await preferences_of(tx, actor)
    return web.pages.show(
        request,
        "me.html",
        PLACE,
        now,
        status=problem.status if problem else 200,
        person=person,
        name=person.display_name if name is None else name,
        problem=problem,
        sessions=sessions,
        tokens=tokens,
        preferences=preferences,
        browser_name=browser_name,
        has_mail=web.mailer.is_configured,
    )


async def _token_form(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    *,
    fields: dict[str, str] | None = None,
    chosen: set[str] | None = None,
    problem: Invalid | None = None,
) -> Response[str]:
    return await _show(
        request,
        web,
        "me_token_new.html",
        status=problem.status if problem else 200,
        scopes=[scope for scope in Scope if scope is not Scope.OPERATOR or visitor.actor.is_operator],
        chosen=chosen or {Scope.READ},
        lives=LIVES,
        fields={"name": "", "days": "90"} | (fields or {}),
        problem=problem,
    )


async def _show(
    request: PageRequest, web: Web, template: str, *, status: int = 200, **values: object
) -> Response[str]:
    async with web.database.read() as tx:
        now = await database_now(tx)
    return web.pages.show(
        request, template, PLACE, now, status=status, has_mail=web.mailer.is_configured, **values
    )


HANDLERS = (
    account_page,
    change_name,
    email_page,
    ask_for_email,
    email_code_page,
    change_email,
    choose_mails,
    end_one_session,
    end_the_others,
    token_page,
    make_token,
    ask_revoke,
    revoke,
)
