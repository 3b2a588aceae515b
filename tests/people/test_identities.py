"""An account at a provider signs in the person who linked it, and belongs to that person."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from tests.people.journeys import HERE, PUBLIC, callback, go, linked, mailer, person, two
from tests.people.openid_provider import OpenIdProvider, openid_provider

from lastcall.clock import SYSTEM_CLOCK
from lastcall.db.database import Database
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound, NotSignedIn, Unavailable
from lastcall.people import flows
from lastcall.people.flows import Purpose
from lastcall.people.identities import (
    MOST_IDENTITIES,
    begin_at_provider,
    finish_at_provider,
    identities_of,
    remove_identity,
)
from lastcall.people.providers.providers import Providers, providers_from
from lastcall.people.sessions import actor_of_session
from lastcall.testing.clock import TestClock

pytestmark = pytest.mark.usefixtures("fresh_limits")


@pytest.fixture
def database_url(shared_url: str) -> str:
    return shared_url


async def test_a_linked_account_signs_its_person_in(
    database: Database, providers: Providers, provider: OpenIdProvider
) -> None:
    actor, _ = await linked(database, providers, provider)
    finished = await go(database, providers, provider)
    assert finished.session is not None
    found = await actor_of_session(database, finished.session)
    assert found is not None
    assert (found.person_id, found.is_recent) == (actor.person_id, True)
    way = "select signed_in_by from sessions where id = $1"
    assert await database.pool.fetchval(way, found.session_id) == "provider"
    async with database.read() as tx:
        (mine,) = await identities_of(tx, actor)
    assert (mine.provider, mine.label) == ("local", "robin")
    assert mine.last_used_at is not None


async def test_a_new_way_to_sign_in_is_told_to_its_person_by_mail(
    database: Database, providers: Providers, provider: OpenIdProvider
) -> None:
    actor, browser = await linked(database, providers, provider)
    await go(database, providers, provider, Purpose.ADD, browser, actor)
    mails = "select o.kind from outgoing_mail o join people p on p.email = o.address where p.id = $1"
    assert [row["kind"] for row in await database.pool.fetch(mails, actor.person_id)] == ["identity_linked"]


async def test_what_is_sent_names_us_and_nothing_that_could_be_replayed(
    database: Database, providers: Providers, provider: OpenIdProvider
) -> None:
    address = await begin_at_provider(database, providers, "local", Purpose.SIGN_IN, HERE, None)
    asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    assert asked["redirect_uri"] == f"{PUBLIC}/sign-in/with/local/back"
    assert asked["code_challenge_method"] == "S256"
    assert asked["scope"] == "openid profile"
    assert flows.derived(HERE, b"verifier", asked["state"]) not in address
    stored = await database.pool.fetchval("select string_agg(f::text, ' ') from sign_in_flows f")
    for secret in (asked["state"], asked["nonce"], flows.derived(HERE, b"verifier", asked["state"])):
        assert secret not in stored


async def test_a_provider_that_said_no_changes_nothing(
    database: Database, providers: Providers, provider: OpenIdProvider
) -> None:
    await linked(database, providers, provider)
    for code in (None, "x" * 5000):
        with pytest.raises(Invalid, match="nothing was done"):
            await go(database, providers, provider, code=code)


async def test_a_provider_that_is_away_is_said_to_be(database: Database, provider: OpenIdProvider) -> None:
    providers = providers_from([provider.settings(issuer="http://127.0.0.1:9")], PUBLIC, SYSTEM_CLOCK)
    with pytest.raises(Unavailable, match="Local ID did not answer"):
        await begin_at_provider(database, providers, "local", Purpose.SIGN_IN, HERE, None)
    with pytest.raises(NotFound):
        await begin_at_provider(database, providers, "nowhere", Purpose.SIGN_IN, HERE, None)


async def test_several_accounts_belong_to_one_person_and_one_account_to_one_person(
    database: Database, provider: OpenIdProvider
) -> None:
    async with openid_provider(subject=provider.subject) as other:
        providers = two(provider, other)
        actor, browser = await linked(database, providers, provider)
        await go(database, providers, provider, Purpose.ADD, browser, actor)
        address = await begin_at_provider(database, providers, "other", Purpose.ADD, browser, actor)
        back = callback(other.approve(address))
        await finish_at_provider(database, mailer(database), providers, "other", browser, actor, back)
        async with database.read() as tx:
            assert [identity.provider for identity in await identities_of(tx, actor)] == ["local", "other"]
        thief, thiefs_browser = await person(database, "kim")
        with pytest.raises(Conflict):
            await go(database, providers, provider, Purpose.ADD, thiefs_browser, thief)
        finished = await go(database, providers, provider)
        assert finished.session is not None
        found = await actor_of_session(database, finished.session)
        assert found is not None
        assert found.person_id == actor.person_id


async def test_linking_and_removing_need_a_confirmation_and_ones_own_account(
    database: Database, providers: Providers, provider: OpenIdProvider
) -> None:
    actor, browser = await linked(database, providers, provider)
    other, _ = await person(database, "kim")
    async with database.read() as tx:
        (mine,) = await identities_of(tx, actor)
    late = dataclasses.replace(actor, is_recent=False)
    refused: list[tuple[Callable[[], Any], type[LastcallError]]] = [
        (lambda: begin_at_provider(database, providers, "local", Purpose.ADD, browser, late), NotAllowed),
        (lambda: begin_at_provider(database, providers, "local", Purpose.ADD, browser, None), NotSignedIn),
        (
            lambda: begin_at_provider(database, providers, "local", Purpose.STEP_UP, browser, None),
            NotSignedIn,
        ),
        (lambda: remove_identity(database, late, mine.id), NotAllowed),
        (lambda: remove_identity(database, other, mine.id), NotFound),
        (lambda: remove_identity(database, actor, uuid4()), NotFound),
    ]
    for call, error in refused:
        with pytest.raises(error):
            await call()
    await remove_identity(database, actor, mine.id)
    with pytest.raises(NotSignedIn):
        await go(database, providers, provider)


async def test_confirming_takes_an_account_of_ones_own_and_asks_there_again(
    database: Database, providers: Providers, provider: OpenIdProvider, test_clock: TestClock
) -> None:
    actor, browser = await linked(database, providers, provider)
    other, others_browser = await person(database, "kim")
    await test_clock.advance(timedelta(minutes=11))
    provider.ahead = 660
    assert browser.session is not None
    address = await begin_at_provider(database, providers, "local", Purpose.STEP_UP, browser, actor)
    assert parse_qs(urlsplit(address).query)["prompt"] == ["login"]
    with pytest.raises(NotSignedIn):
        await go(database, providers, provider, Purpose.STEP_UP, others_browser, other)
    late = await actor_of_session(database, browser.session)
    assert late is not None
    assert not late.is_recent
    await go(database, providers, provider, Purpose.STEP_UP, browser, late)
    fresh = await actor_of_session(database, browser.session)
    assert fresh is not None
    assert fresh.is_recent
    await test_clock.advance(-timedelta(minutes=11))


@pytest.mark.parametrize(("ago", "counts"), [(60, True), (700, False), (None, True)])
async def test_a_provider_that_says_it_did_not_ask_again_confirms_nothing(
    database: Database, providers: Providers, provider: OpenIdProvider, ago: float | None, counts: bool
) -> None:
    actor, browser = await linked(database, providers, provider)
    provider.claims = {"auth_time": None if ago is None else time.time() - ago}
    if counts:
        finished = await go(database, providers, provider, Purpose.STEP_UP, browser, actor)
        assert finished.purpose is Purpose.STEP_UP
    else:
        with pytest.raises(Unavailable):
            await go(database, providers, provider, Purpose.STEP_UP, browser, actor)


async def test_there_is_an_end_to_how_many_a_person_links(
    database: Database, providers: Providers, provider: OpenIdProvider
) -> None:
    actor, browser = await person(database)
    await database.pool.execute(
        "insert into identities (id, person_id, provider, issuer, subject, label)"
        " select gen_random_uuid(), $1, 'local', 'https://id.example.org', gen_random_uuid()::text, 'n'"
        " from generate_series(1, $2::int) n",
        actor.person_id,
        MOST_IDENTITIES,
    )
    with pytest.raises(Invalid, match="as many as fit"):
        await go(database, providers, provider, Purpose.ADD, browser, actor)


async def test_a_name_at_a_provider_is_shown_on_one_line_and_turns_no_text_around(
    database: Database, providers: Providers, provider: OpenIdProvider
) -> None:
    provider.claims = {"preferred_username": "\u202e<b>nibor</b>\n\u2066" + "x" * 200}
    actor, _ = await linked(database, providers, provider)
    async with database.read() as tx:
        (mine,) = await identities_of(tx, actor)
    assert mine.label.startswith("<b>nibor</b>x")
    assert len(mine.label) == 80
    assert mine.label.isprintable()
