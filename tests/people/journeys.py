"""The way to a provider and back, in one browser, for tests to walk and to leave."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from tests.people.openid_provider import OpenIdProvider

from lastcall.clock import SYSTEM_CLOCK
from lastcall.db.database import Database
from lastcall.mail.mailer import Mailer
from lastcall.mail.server import mail_server
from lastcall.people.actor import Actor
from lastcall.people.flows import Purpose
from lastcall.people.identities import Callback, Finished, begin_at_provider, finish_at_provider
from lastcall.people.providers.providers import Providers, providers_from
from lastcall.people.service import add_person
from lastcall.people.sessions import Browser
from lastcall.people.sign_in import make_sign_in_link, redeem_sign_in_link

HERE, ELSEWHERE = Browser("the form cookie of this browser"), Browser("that of another one")
PUBLIC = "http://localhost:8420"


def mailer(database: Database) -> Mailer:
    """One that writes its rows and sends nothing."""
    return Mailer(database, mail_server("smtp://localhost:9", "Lastcall <lastcall@example.org>"), PUBLIC)


async def person(database: Database, name: str = "sam") -> tuple[Actor, Browser]:
    email = f"{name}-{uuid4().hex[:8]}@example.org"
    await add_person(database, email, name.capitalize())
    session, actor = await redeem_sign_in_link(database, await make_sign_in_link(database, email))
    return actor, Browser(session, session=session)


def callback(fields: dict[str, str], **other: Any) -> Callback:
    given = {"state": fields["state"], "code": fields.get("code"), "issuer": fields.get("iss")} | other
    return Callback(**given)


async def go(
    database: Database,
    providers: Providers,
    provider: OpenIdProvider,
    purpose: Purpose = Purpose.SIGN_IN,
    browser: Browser = HERE,
    actor: Actor | None = None,
    **other: Any,
) -> Finished:
    """The whole way there and back, in one browser."""
    address = await begin_at_provider(database, providers, "local", purpose, browser, actor)
    back = callback(provider.approve(address), **other)
    return await finish_at_provider(database, mailer(database), providers, "local", browser, actor, back)


async def linked(
    database: Database, providers: Providers, provider: OpenIdProvider, name: str = "sam"
) -> tuple[Actor, Browser]:
    actor, browser = await person(database, name)
    await go(database, providers, provider, Purpose.ADD, browser, actor)
    return actor, browser


def two(provider: OpenIdProvider, other: OpenIdProvider) -> Providers:
    return providers_from([provider.settings(), other.settings("other")], PUBLIC, SYSTEM_CLOCK)
