"""Answers of providers that were forged, replayed, carried elsewhere or sent to somebody else let nobody in."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from joserfc.jwk import ECKey
from tests.people.journeys import ELSEWHERE, HERE, PUBLIC, callback, go, linked, mailer, person, two
from tests.people.openid_provider import OpenIdProvider, openid_provider

from lastcall.clock import SYSTEM_CLOCK
from lastcall.db.database import Database
from lastcall.errors import NotSignedIn, Unavailable
from lastcall.people import flows, identities
from lastcall.people.flows import FLOW_LIFE, Purpose
from lastcall.people.identities import (
    begin_at_provider,
    finish_at_provider,
    identities_of,
)
from lastcall.people.providers import openid
from lastcall.people.providers.providers import Providers, providers_from
from lastcall.people.service import block_person
from lastcall.people.sessions import Browser, actor_of_session
from lastcall.testing.clock import TestClock

pytestmark = pytest.mark.usefixtures("fresh_limits")


@pytest.fixture
def database_url(shared_url: str) -> str:
    return shared_url


async def test_an_unknown_account_signs_nobody_in_whatever_mail_address_it_has(
    database: Database, providers: Providers, provider: OpenIdProvider
) -> None:
    actor, _ = await person(database)
    email = await database.pool.fetchval("select email from people where id = $1", actor.person_id)
    provider.claims = {"email": email, "email_verified": True, "preferred_username": email}
    people = await database.pool.fetchval("select count(*) from people")
    with pytest.raises(NotSignedIn) as refused:
        await go(database, providers, provider)
    assert refused.value.code == "identity_not_linked"
    assert await database.pool.fetchval("select count(*) from people") == people
    assert (
        await database.pool.fetchval("select count(*) from identities where subject = $1", provider.subject)
        == 0
    )


async def test_the_account_of_a_blocked_person_is_as_unknown_as_any(
    database: Database, providers: Providers, provider: OpenIdProvider
) -> None:
    actor, _ = await linked(database, providers, provider)
    await block_person(database, None, actor.person_id)
    said = []
    for subject in (provider.subject, uuid4().hex):
        provider.subject = subject
        with pytest.raises(NotSignedIn) as refused:
            await go(database, providers, provider)
        said.append((refused.value.code, refused.value.sentence, refused.value.advice))
    assert said[0] == said[1]


async def test_twin_without_the_subject_another_account_signs_in(
    database: Database, providers: Providers, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    actor, _ = await linked(database, providers, provider)
    provider.subject = uuid4().hex
    with pytest.raises(NotSignedIn):
        await go(database, providers, provider)
    monkeypatch.setattr(
        identities, "same_account", lambda profile: [identities.Identity.issuer == profile.issuer]
    )
    finished = await go(database, providers, provider)
    assert finished.session is not None
    found = await actor_of_session(database, finished.session)
    assert found is not None
    assert found.person_id == actor.person_id


TOKENS: dict[str, dict[str, Any]] = {
    "another issuer": {"iss": "https://evil.example.org"},
    "another audience": {"aud": "them"},
    "another nonce": {"nonce": "of another sign-in"},
    "no nonce": {"nonce": None},
    "expired": {"exp": 1},
}


@pytest.mark.parametrize("claims", TOKENS.values(), ids=TOKENS)
async def test_a_token_that_does_not_hold_signs_nobody_in(
    database: Database, providers: Providers, provider: OpenIdProvider, claims: dict[str, Any]
) -> None:
    await linked(database, providers, provider)
    provider.claims = claims
    with pytest.raises(Unavailable):
        await go(database, providers, provider)


async def test_a_token_of_a_key_that_the_provider_does_not_have_signs_nobody_in(
    database: Database, providers: Providers, provider: OpenIdProvider
) -> None:
    await linked(database, providers, provider)
    forged, honest = ECKey.generate_key("P-256", auto_kid=True), provider.sign
    provider.sign = lambda claims, _: honest(claims, forged)
    with pytest.raises(Unavailable):
        await go(database, providers, provider)


async def test_keys_that_a_provider_changed_are_fetched_anew(
    database: Database, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = [0.0]

    class Later:
        wall = SYSTEM_CLOCK.wall
        sleep = SYSTEM_CLOCK.sleep

        def boot(self) -> float:
            return boot[0]

    providers = providers_from([provider.settings()], PUBLIC, Later())
    await linked(database, providers, provider)
    provider.key = ECKey.generate_key("P-256", auto_kid=True)
    with pytest.raises(Unavailable):
        await go(database, providers, provider)
    boot[0] = 61
    assert (await go(database, providers, provider)).session


async def test_a_state_counts_once(
    database: Database, providers: Providers, provider: OpenIdProvider
) -> None:
    await linked(database, providers, provider)
    address = await begin_at_provider(database, providers, "local", Purpose.SIGN_IN, HERE, None)
    first, again = provider.approve(address), provider.approve(address)
    await finish_at_provider(database, mailer(database), providers, "local", HERE, None, callback(first))
    with pytest.raises(NotSignedIn) as refused:
        await finish_at_provider(database, mailer(database), providers, "local", HERE, None, callback(again))
    assert refused.value.code == "flow_over"


async def test_the_nonce_of_one_sign_in_is_no_answer_to_another(
    database: Database, providers: Providers, provider: OpenIdProvider
) -> None:
    """Somebody else's code, put into one's own callback (code injection)."""
    await linked(database, providers, provider)
    theirs = await begin_at_provider(database, providers, "local", Purpose.SIGN_IN, ELSEWHERE, None)
    mine = await begin_at_provider(database, providers, "local", Purpose.SIGN_IN, HERE, None)
    stolen, state = provider.approve(theirs), provider.approve(mine)["state"]
    # PKCE stops it at the provider; where the provider checks nothing, the nonce does.
    provider.token = lambda form, _: {"id_token": provider.id_token(provider.codes[form["code"]])}  # type: ignore[method-assign, misc]
    with pytest.raises(Unavailable):
        await finish_at_provider(
            database, mailer(database), providers, "local", HERE, None, callback(stolen, state=state)
        )


async def test_an_answer_counts_in_the_browser_that_began_and_for_ten_minutes(
    database: Database, providers: Providers, provider: OpenIdProvider, test_clock: TestClock
) -> None:
    """Nobody is signed in by an answer that somebody else's sign-in got (login CSRF)."""
    await linked(database, providers, provider)
    for browser in (ELSEWHERE, Browser("")):
        address = await begin_at_provider(database, providers, "local", Purpose.SIGN_IN, HERE, None)
        with pytest.raises(NotSignedIn):
            await finish_at_provider(
                database,
                mailer(database),
                providers,
                "local",
                browser,
                None,
                callback(provider.approve(address)),
            )
    address = await begin_at_provider(database, providers, "local", Purpose.SIGN_IN, HERE, None)
    await test_clock.advance(FLOW_LIFE)
    provider.ahead = FLOW_LIFE.total_seconds()
    with pytest.raises(NotSignedIn):
        await finish_at_provider(
            database, mailer(database), providers, "local", HERE, None, callback(provider.approve(address))
        )
    await test_clock.advance(-FLOW_LIFE)


async def test_twin_without_the_browser_an_answer_counts_for_whoever_opens_it(
    database: Database, provider: OpenIdProvider, providers: Providers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await linked(database, providers, provider)
    monkeypatch.setattr(flows, "begun_by", lambda _: [])
    monkeypatch.setattr(identities, "derived", lambda _browser, use, state: f"{use.decode()}{state}")
    address = await begin_at_provider(database, providers, "local", Purpose.SIGN_IN, HERE, None)
    back = callback(provider.approve(address))
    assert (
        await finish_at_provider(database, mailer(database), providers, "local", ELSEWHERE, None, back)
    ).session


async def test_an_answer_of_one_provider_is_none_of_another(
    database: Database, provider: OpenIdProvider
) -> None:
    async with openid_provider(subject=provider.subject) as other:
        providers = two(provider, other)
        await linked(database, providers, provider)
        address = await begin_at_provider(database, providers, "other", Purpose.SIGN_IN, HERE, None)
        asked = len(provider.asked)
        with pytest.raises(NotSignedIn):
            await finish_at_provider(
                database,
                mailer(database),
                providers,
                "local",
                HERE,
                None,
                callback(other.approve(address), issuer=provider.issuer),
            )
        assert provider.asked[asked:] == [], "a code of one is not carried to the other"
        # The same subject at another issuer is another account.
        address = await begin_at_provider(database, providers, "other", Purpose.SIGN_IN, HERE, None)
        with pytest.raises(NotSignedIn) as refused:
            await finish_at_provider(
                database, mailer(database), providers, "other", HERE, None, callback(other.approve(address))
            )
        assert refused.value.code == "identity_not_linked"


async def test_twin_without_its_provider_a_code_is_carried_to_another(
    database: Database, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flows, "begun_at", lambda _: [])
    provider.names_itself = False
    async with openid_provider(names_itself=False) as other:
        providers = two(provider, other)
        address = await begin_at_provider(database, providers, "other", Purpose.SIGN_IN, HERE, None)
        back = callback(other.approve(address))
        with pytest.raises(Unavailable):
            await finish_at_provider(database, mailer(database), providers, "local", HERE, None, back)
    assert "POST /token" in provider.asked


@pytest.mark.parametrize(
    ("names_itself", "issuer"),
    [(True, None), (True, "https://evil.example.org"), (False, "https://evil.example.org")],
)
async def test_an_answer_that_names_another_sender_or_none_is_refused(
    database: Database, provider: OpenIdProvider, providers: Providers, names_itself: bool, issuer: str | None
) -> None:
    await linked(database, providers, provider)
    provider.names_itself = names_itself
    providers = providers_from([provider.settings()], PUBLIC, SYSTEM_CLOCK)
    asked = len(provider.asked)
    with pytest.raises(Unavailable):
        await go(database, providers, provider, issuer=issuer)
    assert "POST /token" not in provider.asked[asked:], "its code is carried nowhere"


async def test_twin_without_rfc_9207_a_code_is_carried_to_another_provider(
    database: Database, provider: OpenIdProvider, providers: Providers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await linked(database, providers, provider)
    monkeypatch.setattr(openid, "check_sender", lambda *_args, **_kwargs: None)
    assert (await go(database, providers, provider, issuer="https://evil.example.org")).session


async def test_an_account_is_linked_only_by_who_began_to(
    database: Database, providers: Providers, provider: OpenIdProvider
) -> None:
    """A link begun by one person and answered in another's browser would open the one's account to the other."""
    actor, browser = await person(database)
    victim, victims_browser = await person(database, "kim")
    address = await begin_at_provider(database, providers, "local", Purpose.ADD, browser, actor)
    back = callback(provider.approve(address))
    for who, where in ((victim, victims_browser), (victim, browser), (None, browser)):
        with pytest.raises(NotSignedIn):
            await finish_at_provider(database, mailer(database), providers, "local", where, who, back)
    async with database.read() as tx:
        assert await identities_of(tx, victim) == []
