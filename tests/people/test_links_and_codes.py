"""A mailed link signs in the browser that asked, its code only there, and both together once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest

import lastcall.people.links as links
import lastcall.people.sessions as sessions
from lastcall.db.database import Database
from lastcall.errors import LastcallError, NotSignedIn, TooFast
from lastcall.people.links import MOST_ATTEMPTS, Purpose, make_link
from lastcall.people.queries import person_by_email
from lastcall.people.service import add_person, block_person
from lastcall.people.sessions import Browser, actor_of_session
from lastcall.people.sign_in import peek_sign_in_link, redeem_sign_in_code, redeem_sign_in_link
from lastcall.people.tokens import code_of, shown_code
from lastcall.testing.locks import wait_until_blocked

WRONG = "00000000"


@pytest.fixture
def database_url(shared_url: str) -> str:
    return shared_url


def browser(**more: Any) -> Browser:
    """A browser that never was here, at an address of its own."""
    return Browser(key=uuid4().hex, source=uuid4().hex, **more)


async def mailed(database: Database, here: Browser) -> tuple[str, str]:
    """The address of somebody new, and the token of a link that ``here`` asked for."""
    email = f"sam-{uuid4().hex[:8]}@example.org"
    person_id = await add_person(database, email, "Sam")
    async with database.transaction() as tx:
        return email, await make_link(tx, Purpose.SIGN_IN, person_id=person_id, browser_key=here.key)


async def test_a_mailed_link_signs_in_only_where_it_was_asked_for(database: Database) -> None:
    here, elsewhere = browser(), browser()
    _, token = await mailed(database, here)
    seen_here, seen_elsewhere = (
        await peek_sign_in_link(database, token, here.key),
        await peek_sign_in_link(database, token, elsewhere.key),
    )
    assert seen_here is not None
    assert seen_elsewhere is not None
    assert (seen_here.is_here, seen_elsewhere.is_here) == (True, False)
    with pytest.raises(NotSignedIn):
        await redeem_sign_in_link(database, token, elsewhere)
    with pytest.raises(NotSignedIn):
        await redeem_sign_in_code(database, seen_elsewhere.code, elsewhere)
    _, actor = await redeem_sign_in_code(database, shown_code(seen_elsewhere.code).lower(), here)
    assert (actor.display_name, actor.is_recent) == ("Sam", True)
    with pytest.raises(NotSignedIn):
        await redeem_sign_in_link(database, token, here)


async def test_without_the_binding_a_forwarded_link_would_sign_in_anybody(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, token = await mailed(database, browser())
    monkeypatch.setattr(links, "bound_to", lambda _key: links.SignInLink.id.is_not(None))
    session, _ = await redeem_sign_in_link(database, token, browser())
    assert await actor_of_session(database, session) is not None


async def guess_until_right(database: Database, here: Browser, token: str) -> str:
    for _ in range(MOST_ATTEMPTS):
        with pytest.raises(NotSignedIn):
            await redeem_sign_in_code(database, WRONG, here)
    session, _ = await redeem_sign_in_code(database, code_of(token), here)
    return session


async def test_five_wrong_codes_end_a_link_and_its_code(database: Database) -> None:
    here = browser()
    _, token = await mailed(database, here)
    with pytest.raises(NotSignedIn):
        await guess_until_right(database, here, token)
    with pytest.raises(NotSignedIn):
        await redeem_sign_in_link(database, token, here)


async def test_without_the_count_guessing_would_go_on(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = browser()
    _, token = await mailed(database, here)
    real = links.usable
    monkeypatch.setattr(links, "usable", lambda: real()[:2])
    assert await guess_until_right(database, here, token)


async def test_codes_cannot_be_tried_by_the_dozen_from_one_address(database: Database) -> None:
    source = uuid4().hex
    for _ in range(30):
        with pytest.raises(NotSignedIn):
            await redeem_sign_in_code(database, WRONG, Browser(key=uuid4().hex, source=source))
    here = browser()
    _, token = await mailed(database, here)
    with pytest.raises(TooFast):
        await redeem_sign_in_code(database, code_of(token), Browser(key=here.key, source=source))


Redeem = Callable[[Database, str, Browser], Awaitable[Any]]


async def by_link(database: Database, token: str, here: Browser) -> Any:
    return await redeem_sign_in_link(database, token, here)


async def by_code(database: Database, token: str, here: Browser) -> Any:
    return await redeem_sign_in_code(database, code_of(token), here)


async def raced(database: Database, second: Redeem) -> tuple[str, Any]:
    """The link is pressed in a transaction that stays open until the second attempt waits for its row."""
    here = browser()
    email, token = await mailed(database, here)
    async with database.transaction() as tx:
        await redeem_sign_in_link(database, token, here)
        loser = asyncio.create_task(second(database, token, here))
        await wait_until_blocked(database, "from people", by=tx.raw.get_server_pid())
    try:
        return email, await loser
    except LastcallError as error:
        return email, error


async def sessions_of(database: Database, email: str) -> int:
    async with database.read() as tx:
        person_id = await person_by_email(tx, email)
    return int(await database.pool.fetchval("select count(*) from sessions where person_id = $1", person_id))


@pytest.mark.parametrize("second", [by_link, by_code])
async def test_of_a_link_and_its_code_at_once_one_signs_in(database: Database, second: Redeem) -> None:
    email, answer = await raced(database, second)
    assert isinstance(answer, NotSignedIn)
    assert await sessions_of(database, email) == 1


async def test_without_the_guarded_update_both_would_sign_in(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "usable", list)
    email, answer = await raced(database, by_code)
    assert not isinstance(answer, LastcallError)
    assert await sessions_of(database, email) == 2


async def test_wrong_codes_at_once_are_each_counted(database: Database) -> None:
    here = browser()
    _, token = await mailed(database, here)
    async with database.transaction() as tx:
        await tx.raw.execute(
            "select 1 from sign_in_links where token_hash = sha256($1) for update", token.encode()
        )
        guesses = [asyncio.create_task(redeem_sign_in_code(database, WRONG, here)) for _ in range(4)]
        await wait_until_blocked(database, "sign_in_links", by=tx.raw.get_server_pid())
    assert all(isinstance(one, NotSignedIn) for one in await asyncio.gather(*guesses, return_exceptions=True))
    attempts = await database.pool.fetchval(
        "select attempts from sign_in_links where token_hash = sha256($1)", token.encode()
    )
    assert attempts == 4


async def test_a_copy_of_the_database_holds_neither_link_nor_code_nor_browser(database: Database) -> None:
    here = browser()
    _, token = await mailed(database, here)
    stored = await database.pool.fetchval("select string_agg(l::text, ' ') from sign_in_links l")
    for secret in (token, code_of(token), here.key, *(s.encode().hex() for s in (token, here.key))):
        assert secret not in stored
    # Each of the 2^40 codes could be tried against a plain hash; against this one only with the browser's key.
    plain = await database.pool.fetchval(
        "select count(*) from sign_in_links where code_hash = sha256($1)", code_of(token).encode()
    )
    assert plain == 0


async def test_whoever_has_no_account_gets_one_by_using_the_link_and_not_before(database: Database) -> None:
    here, email = browser(), f"new-{uuid4().hex[:8]}@example.org"
    async with database.transaction() as tx:
        first, second = [
            await make_link(tx, Purpose.SIGN_IN, person_id=None, email=email, browser_key=here.key)
            for _ in range(2)
        ]
    assert await peek_sign_in_link(database, first, here.key)
    with pytest.raises(NotSignedIn):
        await redeem_sign_in_link(database, first, browser())
    known = "select count(*) from people where email = $1"
    assert await database.pool.fetchval(known, email) == 0
    _, actor = await redeem_sign_in_link(database, first, here)
    _, again = await redeem_sign_in_link(database, second, here)
    assert again.person_id == actor.person_id
    assert await database.pool.fetchval(known + " and email_verified_at is not null", email) == 1


async def test_a_blocked_person_uses_no_code_and_a_new_link_for_their_address_makes_nobody(
    database: Database,
) -> None:
    here = browser()
    email, token = await mailed(database, here)
    async with database.read() as tx:
        person_id = await person_by_email(tx, email)
    await block_person(database, None, person_id)
    with pytest.raises(NotSignedIn):
        await redeem_sign_in_code(database, code_of(token), here)
    async with database.transaction() as tx:
        joining = await make_link(tx, Purpose.SIGN_IN, person_id=None, email=email, browser_key=here.key)
    with pytest.raises(NotSignedIn):
        await redeem_sign_in_link(database, joining, here)


async def plant(database: Database) -> tuple[str, str]:
    """A session that somebody else knows is in this browser when its owner signs in; answers it and the new one."""
    here = browser()
    _, token = await mailed(database, here)
    planted, _ = await redeem_sign_in_link(database, token, here)
    victim = browser(session=planted)
    _, token = await mailed(database, victim)
    new, _ = await redeem_sign_in_link(database, token, victim)
    return planted, new


async def test_a_session_that_was_there_before_a_sign_in_is_worth_nothing_after_it(
    database: Database,
) -> None:
    planted, new = await plant(database)
    assert new != planted
    assert await actor_of_session(database, planted) is None
    assert await actor_of_session(database, new) is not None


async def test_without_a_new_token_whoever_planted_it_would_be_signed_in(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed = uuid4().hex
    monkeypatch.setattr(sessions, "new_token", lambda: fixed)
    here = browser()
    _, token = await mailed(database, here)
    await redeem_sign_in_link(database, token, here)
    assert await actor_of_session(database, fixed) is not None
