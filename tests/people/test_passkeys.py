"""A passkey signs in its own person, here, once an answer, and nobody else."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.people.authenticator import USER_PRESENT, Authenticator
from tests.people.journeys import ELSEWHERE, HERE, mailer, person

from lastcall.db.database import Database
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound, NotSignedIn, TooFast
from lastcall.people import flows, passkeys
from lastcall.people.actor import Actor
from lastcall.people.flows import FLOW_LIFE
from lastcall.people.passkey_answers import RelyingParty, relying_party
from lastcall.people.passkeys import (
    MOST_PASSKEYS,
    add_passkey,
    begin_adding,
    begin_confirming,
    begin_signing_in,
    confirm_by_passkey,
    passkeys_of,
    remove_passkey,
    sign_in_by_passkey,
)
from lastcall.people.service import block_person
from lastcall.people.sessions import Browser, actor_of_session
from lastcall.testing.clock import TestClock
from lastcall.testing.locks import wait_until_blocked

PARTY = RelyingParty("localhost", "http://localhost:8420")
pytestmark = pytest.mark.usefixtures("fresh_limits")


@pytest.fixture
def database_url(shared_url: str) -> str:
    return shared_url


async def registered(
    database: Database, actor: Actor, browser: Browser, device: Authenticator | None = None
) -> Authenticator:
    device = device or Authenticator()
    answer = device.create(await begin_adding(database, PARTY, actor, browser))
    await add_passkey(database, mailer(database), PARTY, actor, browser, answer, "Phone")
    return device


async def sign_in(database: Database, device: Authenticator, browser: Browser = HERE, **lies: Any) -> Actor:
    answer = device.get(await begin_signing_in(database, PARTY, browser), **lies)
    return (await sign_in_by_passkey(database, PARTY, browser, answer))[1]


async def test_a_passkey_signs_in_whoever_added_it_without_a_name(database: Database) -> None:
    actor, browser = await person(database)
    device = await registered(database, actor, browser)
    options = await begin_signing_in(database, PARTY, HERE)
    assert options["allowCredentials"] == []
    assert options["userVerification"] == "required"
    session, found = await sign_in_by_passkey(database, PARTY, HERE, device.get(options))
    assert found.person_id == actor.person_id
    assert await actor_of_session(database, session) == found
    assert found.is_recent
    way = "select signed_in_by from sessions where id = $1"
    assert await database.pool.fetchval(way, found.session_id) == "passkey"


async def test_a_new_passkey_is_told_to_its_person_by_mail(database: Database) -> None:
    actor, browser = await person(database)
    await registered(database, actor, browser)
    mails = "select o.kind from outgoing_mail o join people p on p.email = o.address where p.id = $1"
    assert [row["kind"] for row in await database.pool.fetch(mails, actor.person_id)] == ["passkey_added"]


async def test_a_source_that_begins_too_many_is_stopped(database: Database) -> None:
    source = dataclasses.replace(HERE, source="192.0.2.77")
    for _ in range(flows.FLOW_STARTS.count):
        await begin_signing_in(database, PARTY, source)
    with pytest.raises(TooFast):
        await begin_signing_in(database, PARTY, source)
    assert await begin_signing_in(database, PARTY, dataclasses.replace(HERE, source="192.0.2.78"))


async def test_options_say_what_the_browser_must_ask_for(database: Database) -> None:
    actor, browser = await person(database)
    device = await registered(database, actor, browser)
    options = await begin_adding(database, PARTY, actor, browser)
    assert options["rp"] == {"name": "Lastcall", "id": "localhost"}
    assert options["authenticatorSelection"] == {
        "residentKey": "required",
        "requireResidentKey": True,
        "userVerification": "required",
    }
    with pytest.raises(Conflict):
        await add_passkey(database, mailer(database), PARTY, actor, browser, device.create(options), "Again")
    assert len(options["excludeCredentials"]) == 1


LIES: dict[str, dict[str, Any]] = {
    "another origin": {"client_data": {"origin": "https://localhost.evil.example.org"}},
    "another port": {"client_data": {"origin": "http://localhost:8421"}},
    "another site's page": {"client_data": {"crossOrigin": True}},
    "another place": {"party": "evil.example.org"},
    "a person who was not checked": {"flags": USER_PRESENT},
    "nobody present": {"flags": 0x04},
    "another use": {"client_data": {"type": "webauthn.create"}},
    "another key": {"key": ec.generate_private_key(ec.SECP256R1())},
    "another person": {"user_handle": uuid4().bytes},
    "a challenge of its own": {"client_data": {"challenge": "c29tZXRoaW5n"}},
}


@pytest.mark.parametrize("lies", LIES.values(), ids=LIES)
async def test_an_answer_that_does_not_hold_signs_nobody_in(database: Database, lies: dict[str, Any]) -> None:
    actor, browser = await person(database)
    device = await registered(database, actor, browser)
    sessions = "select count(*) from sessions where person_id = $1"
    with pytest.raises((NotSignedIn, Invalid)):
        await sign_in(database, device, **lies)
    assert await database.pool.fetchval(sessions, actor.person_id) == 1, "the one that added it"
    assert (await sign_in(database, device)).person_id == actor.person_id, "and a true one still does"


async def test_a_passkey_for_another_place_is_not_kept(database: Database) -> None:
    actor, browser = await person(database)
    for lies in (
        {"party": "evil.example.org"},
        {"client_data": {"origin": "https://evil.example.org"}},
        {"flags": 1},
    ):
        answer = Authenticator().create(await begin_adding(database, PARTY, actor, browser), **lies)
        with pytest.raises(Invalid):
            await add_passkey(database, mailer(database), PARTY, actor, browser, answer, "Phone")
    async with database.read() as tx:
        assert await passkeys_of(tx, actor) == []


async def test_an_answer_counts_once(database: Database) -> None:
    actor, browser = await person(database)
    device = await registered(database, actor, browser)
    answer = device.get(await begin_signing_in(database, PARTY, HERE))
    await sign_in_by_passkey(database, PARTY, HERE, answer)
    with pytest.raises(NotSignedIn) as refused:
        await sign_in_by_passkey(database, PARTY, HERE, answer)
    assert refused.value.code == "flow_over"


async def test_a_failed_answer_uses_its_challenge_up(database: Database) -> None:
    actor, browser = await person(database)
    device = await registered(database, actor, browser)
    options = await begin_signing_in(database, PARTY, HERE)
    with pytest.raises(NotSignedIn):
        await sign_in_by_passkey(database, PARTY, HERE, device.get(options, party="evil.example.org"))
    with pytest.raises(NotSignedIn):
        await sign_in_by_passkey(database, PARTY, HERE, device.get(options))


async def test_an_answer_counts_in_the_browser_that_asked_and_for_ten_minutes(
    database: Database, test_clock: TestClock
) -> None:
    actor, browser = await person(database)
    device = await registered(database, actor, browser)
    answer = device.get(await begin_signing_in(database, PARTY, HERE))
    with pytest.raises(NotSignedIn):
        await sign_in_by_passkey(database, PARTY, ELSEWHERE, answer)
    await test_clock.advance(FLOW_LIFE)
    with pytest.raises(NotSignedIn):
        await sign_in_by_passkey(database, PARTY, HERE, answer)


@pytest.mark.parametrize(
    ("guard", "browser"), [("unused", HERE), ("begun_by", ELSEWHERE)], ids=["replay", "another browser"]
)
async def test_twin_without_its_guard_an_answer_counts_again_or_elsewhere(
    database: Database, monkeypatch: pytest.MonkeyPatch, guard: str, browser: Browser
) -> None:
    actor, own = await person(database)
    device = await registered(database, actor, own)
    answer = device.get(await begin_signing_in(database, PARTY, HERE))
    if browser is HERE:
        await sign_in_by_passkey(database, PARTY, HERE, answer)
    monkeypatch.setattr(flows, guard, lambda *_: [])
    assert (await sign_in_by_passkey(database, PARTY, browser, answer))[1].person_id == actor.person_id


async def test_a_flow_is_good_for_its_own_purpose_alone(database: Database) -> None:
    actor, browser = await person(database)
    device = await registered(database, actor, browser)
    stray = device.get(await begin_signing_in(database, PARTY, browser))
    with pytest.raises(NotSignedIn):
        await confirm_by_passkey(database, PARTY, actor, browser, stray)
    stray = device.get(await begin_confirming(database, PARTY, actor, browser))
    with pytest.raises(NotSignedIn):
        await sign_in_by_passkey(database, PARTY, browser, stray)


async def test_a_count_that_goes_back_is_a_copy_and_signs_nobody_in(database: Database) -> None:
    actor, browser = await person(database)
    device = await registered(database, actor, browser, Authenticator(counts=1, count=5))
    copy = dataclasses.replace(device)
    await sign_in(database, device)
    with pytest.raises(NotSignedIn) as refused:
        await sign_in(database, copy)
    assert refused.value.code == "passkey_refused"
    logged = "select count(*) from audit_log where action = 'passkey.refused' and subject = $1"
    assert await database.pool.fetchval(logged, str(actor.person_id)) == 1
    assert (await sign_in(database, device)).person_id == actor.person_id


async def test_twin_without_the_count_a_copy_signs_in(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    actor, browser = await person(database)
    device = await registered(database, actor, browser, Authenticator(counts=1, count=5))
    copy = dataclasses.replace(device)
    await sign_in(database, device)
    monkeypatch.setattr(passkeys, "count_went_back", lambda *_: False)
    assert (await sign_in(database, copy)).person_id == actor.person_id


async def test_two_answers_at_once_with_one_count_let_one_in(database: Database) -> None:
    actor, browser = await person(database)
    device = await registered(database, actor, browser, Authenticator(counts=1))
    copy = dataclasses.replace(device)
    answers = [await begin_signing_in(database, PARTY, HERE) for _ in range(2)]
    first, second = device.get(answers[0]), copy.get(answers[1])
    results = await asyncio.gather(
        *(sign_in_by_passkey(database, PARTY, HERE, answer) for answer in (first, second)),
        return_exceptions=True,
    )
    assert sorted(isinstance(result, NotSignedIn) for result in results) == [False, True]


async def test_the_passkey_of_a_blocked_person_is_as_unknown_as_any(database: Database) -> None:
    actor, browser = await person(database)
    device = await registered(database, actor, browser)
    await block_person(database, None, actor.person_id)
    said = []
    for stranger in (device, Authenticator(user_handle=actor.person_id.bytes)):
        with pytest.raises(NotSignedIn) as refused:
            await sign_in(database, stranger)
        said.append((refused.value.code, refused.value.sentence, refused.value.advice))
    assert said[0] == said[1]


async def test_twin_without_its_guard_a_blocked_person_signs_in(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    actor, browser = await person(database)
    device = await registered(database, actor, browser)
    await block_person(database, None, actor.person_id)
    monkeypatch.setattr(flows, "not_blocked", list)
    assert (await sign_in(database, device)).person_id == actor.person_id


async def test_a_block_that_waits_for_a_passkey_ends_its_session(database: Database) -> None:
    actor, browser = await person(database)
    device = await registered(database, actor, browser)
    assertion = passkeys.read_assertion(PARTY, device.get(await begin_signing_in(database, PARTY, HERE)))
    async with database.transaction() as tx:
        assert await passkeys._person_behind(tx, assertion) is not None
        session, _ = await passkeys.open_session(tx, actor.person_id, passkeys.Way.PASSKEY, HERE)
        block = asyncio.create_task(block_person(database, None, actor.person_id))
        await wait_until_blocked(database, "people", by=tx.raw.get_server_pid())
    await block
    assert await actor_of_session(database, session) is None


async def test_confirming_takes_a_passkey_of_ones_own(database: Database, test_clock: TestClock) -> None:
    actor, browser = await person(database)
    device = await registered(database, actor, browser)
    other, others_browser = await person(database, "kim")
    others = await registered(database, other, others_browser)
    await test_clock.advance(timedelta(minutes=11))
    assert browser.session is not None
    late = await actor_of_session(database, browser.session)
    assert late is not None
    assert not late.is_recent
    options = await begin_confirming(database, PARTY, late, browser)
    assert [entry["id"] for entry in options["allowCredentials"]] == [json.loads(device.get(options))["id"]]
    with pytest.raises(NotSignedIn):
        await confirm_by_passkey(database, PARTY, late, browser, others.get(options))
    answer = device.get(await begin_confirming(database, PARTY, late, browser))
    await confirm_by_passkey(database, PARTY, late, browser, answer)
    fresh = await actor_of_session(database, browser.session)
    assert fresh is not None
    assert fresh.is_recent


async def test_adding_and_removing_need_a_confirmation_and_ones_own_passkey(database: Database) -> None:
    actor, browser = await person(database)
    device = await registered(database, actor, browser)
    other, _ = await person(database, "kim")
    async with database.read() as tx:
        (mine,) = await passkeys_of(tx, actor)
        assert await passkeys_of(tx, other) == []
    late = dataclasses.replace(actor, is_recent=False)
    refused: list[tuple[Callable[[], Any], type[LastcallError]]] = [
        (lambda: begin_adding(database, PARTY, late, browser), NotAllowed),
        (lambda: remove_passkey(database, late, mine.id), NotAllowed),
        (lambda: remove_passkey(database, other, mine.id), NotFound),
        (lambda: remove_passkey(database, actor, uuid4()), NotFound),
    ]
    for call, error in refused:
        with pytest.raises(error):
            await call()
    assert (mine.name, mine.is_backed_up, mine.last_used_at) == ("Phone", False, None)
    await remove_passkey(database, actor, mine.id)
    with pytest.raises(NotSignedIn):
        await sign_in(database, device)


async def test_another_person_cannot_take_an_answer_over(database: Database) -> None:
    actor, browser = await person(database)
    other, _ = await person(database, "kim")
    answer = Authenticator().create(await begin_adding(database, PARTY, actor, browser))
    with pytest.raises(NotSignedIn):
        await add_passkey(database, mailer(database), PARTY, other, browser, answer, "Mine now")
    with pytest.raises(NotSignedIn):
        await add_passkey(database, mailer(database), PARTY, actor, browser, answer, "Too late")


async def test_there_is_an_end_to_how_many_a_person_has(database: Database) -> None:
    actor, browser = await person(database)
    await database.pool.execute(
        "insert into passkeys (id, person_id, credential_id, public_key, sign_count, name, transports, is_backed_up)"
        " select gen_random_uuid(), $1, sha256(n::text::bytea), 'k', 0, 'n', '{internal}', true"
        " from generate_series(1, $2::int) n",
        actor.person_id,
        MOST_PASSKEYS,
    )
    with pytest.raises(Invalid, match="as many as fit"):
        await begin_adding(database, PARTY, actor, browser)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "null",
        "[]",
        "{}",
        "{" * 5000,
        "x" * 20_000,
        '{"id":"a","rawId":"a","type":"public-key","response":{}}',
    ],
)
async def test_garbage_is_refused_in_one_sentence(database: Database, answer: str) -> None:
    actor, browser = await person(database)
    with pytest.raises(Invalid) as refused:
        await sign_in_by_passkey(database, PARTY, HERE, answer)
    assert refused.value.field == "credential"
    with pytest.raises(Invalid):
        await add_passkey(database, mailer(database), PARTY, actor, browser, answer, "Phone")


async def test_nothing_stored_tells_a_challenge(database: Database) -> None:
    options = await begin_signing_in(database, PARTY, HERE)
    stored = await database.pool.fetchval("select string_agg(f::text, ' ') from sign_in_flows f")
    challenge = json.loads(Authenticator().get(options | {"rpId": "localhost"}))["response"]["clientDataJSON"]
    assert options["challenge"] not in stored
    assert challenge not in stored


def test_passkeys_are_where_browsers_have_them() -> None:
    assert relying_party("https://club.example.org/") == RelyingParty(
        "club.example.org", "https://club.example.org"
    )
    assert relying_party("https://club.example.org:8443") == RelyingParty(
        "club.example.org", "https://club.example.org:8443"
    )
    assert relying_party("http://localhost:8420") == RelyingParty("localhost", "http://localhost:8420")
    for nowhere in ("http://club.example.org", "https://192.0.2.1", "http://127.0.0.1:8420", "https://[::1]"):
        assert relying_party(nowhere) is None
