"""An account at a provider signs in the person who linked it, by its subject alone, where the sign-in was begun."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from joserfc.jwk import ECKey
from tests.people.openid_provider import OpenIdProvider, openid_provider

from lastcall.clock import SYSTEM_CLOCK
from lastcall.db.database import Database
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound, NotSignedIn, Unavailable
from lastcall.mail.mailer import Mailer
from lastcall.mail.server import mail_server
from lastcall.people import flows, identities
from lastcall.people.actor import Actor
from lastcall.people.flows import FLOW_LIFE, Purpose
from lastcall.people.identities import (
    MOST_IDENTITIES,
    Callback,
    Finished,
    begin_at_provider,
    finish_at_provider,
    identities_of,
    remove_identity,
)
from lastcall.people.providers import openid
from lastcall.people.providers.providers import Providers, providers_from
from lastcall.people.service import add_person, block_person
from lastcall.people.sessions import Browser, actor_of_session
from lastcall.people.sign_in import make_sign_in_link, redeem_sign_in_link
from lastcall.testing.clock import TestClock

HERE, ELSEWHERE = Browser("the form cookie of this browser"), Browser("that of another one")
PUBLIC = "http://localhost:8420"


@pytest.fixture
def database_url(shared_url: str) -> str:
    return shared_url


@pytest.fixture
async def provider() -> AsyncIterator[OpenIdProvider]:
    async with openid_provider(subject=uuid4().hex) as provider:
        yield provider


@pytest.fixture
def providers(provider: OpenIdProvider) -> Providers:
    return providers_from([provider.settings()], PUBLIC, SYSTEM_CLOCK)


def mailer(database: Database) -> Mailer:
    """One that writes its rows and sends nothing."""
    return Mailer(database, mail_server("smtp://localhost:9", "Lastcall <lastcall@example.org>"), PUBLIC)


@pytest.fixture(autouse=True)
async def _fresh_limits(database: Database) -> None:
    await database.pool.execute("delete from rate_limits")


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


async def two(provider: OpenIdProvider, other: OpenIdProvider) -> Providers:
    return providers_from([provider.settings(), other.settings("other")], PUBLIC, SYSTEM_CLOCK)


async def test_an_answer_of_one_provider_is_none_of_another(
    database: Database, provider: OpenIdProvider
) -> None:
    async with openid_provider(subject=provider.subject) as other:
        providers = await two(provider, other)
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
        providers = await two(provider, other)
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
        providers = await two(provider, other)
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
