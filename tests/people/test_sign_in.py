"""Sign-in links work once, for fifteen minutes, for people who are not blocked."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

import lastcall.people.sessions as sessions
from lastcall.db.bus import CacheDrop
from lastcall.db.database import Database
from lastcall.errors import NotFound, NotSignedIn
from lastcall.people.links import LINK_LIFE
from lastcall.people.service import add_person, block_person, unblock_person
from lastcall.people.sessions import (
    SESSION_LIFE,
    actor_of_session,
    end_all_sessions,
    end_session,
    session_key,
)
from lastcall.people.sign_in import make_sign_in_link, peek_sign_in_link, redeem_sign_in_link
from lastcall.testing.clock import TestClock
from lastcall.testing.locks import wait_until_blocked

MAIL = "sam@example.org"


async def signed_in(database: Database) -> str:
    await add_person(database, MAIL, "Sam")
    token, _ = await redeem_sign_in_link(database, await make_sign_in_link(database, MAIL))
    return token


async def test_a_link_signs_in_whoever_it_was_made_for(database: Database) -> None:
    person_id = await add_person(database, MAIL, "Sam", operator=True)
    session, actor = await redeem_sign_in_link(database, await make_sign_in_link(database, MAIL.upper()))
    assert (actor.person_id, actor.display_name, actor.is_operator) == (person_id, "Sam", True)
    assert await actor_of_session(database, session) == actor


async def test_opening_a_link_never_uses_it_up_and_redeeming_does(database: Database) -> None:
    await add_person(database, MAIL, "Sam")
    link = await make_sign_in_link(database, MAIL)
    assert await peek_sign_in_link(database, link)
    assert await peek_sign_in_link(database, link)
    await redeem_sign_in_link(database, link)
    assert not await peek_sign_in_link(database, link)
    with pytest.raises(NotSignedIn):
        await redeem_sign_in_link(database, link)


async def test_a_link_expires_by_the_databases_clock(database: Database, test_clock: TestClock) -> None:
    await add_person(database, MAIL, "Sam")
    link = await make_sign_in_link(database, MAIL)
    await test_clock.advance(LINK_LIFE - timedelta(seconds=30))
    assert await peek_sign_in_link(database, link)
    await test_clock.advance(timedelta(seconds=30))
    assert not await peek_sign_in_link(database, link)
    with pytest.raises(NotSignedIn):
        await redeem_sign_in_link(database, link)


async def test_of_two_redemptions_at_once_one_wins(database: Database) -> None:
    person_id = await add_person(database, MAIL, "Sam")
    link = await make_sign_in_link(database, MAIL)
    async with database.transaction() as tx:
        first, _ = await redeem_sign_in_link(database, link)
        second = asyncio.create_task(redeem_sign_in_link(database, link))
        await wait_until_blocked(database, "from people", by=tx.raw.get_server_pid())
    with pytest.raises(NotSignedIn):
        await second
    actor = await actor_of_session(database, first)
    assert actor is not None
    assert actor.person_id == person_id
    assert await database.pool.fetchval("select count(*) from sessions") == 1


async def test_neither_a_link_nor_a_session_can_be_read_out_of_the_database(database: Database) -> None:
    await add_person(database, MAIL, "Sam")
    link = await make_sign_in_link(database, MAIL)
    session, _ = await redeem_sign_in_link(database, link)
    for table in ("sign_in_links", "sessions", "audit_log"):
        stored = await database.pool.fetchval(f"select string_agg(t::text, ' ') from {table} t")
        assert link not in stored
        assert session not in stored


async def test_a_session_expires_by_the_databases_clock(database: Database, test_clock: TestClock) -> None:
    session = await signed_in(database)
    await test_clock.advance(SESSION_LIFE - timedelta(minutes=1))
    assert await actor_of_session(database, session) is not None
    await test_clock.advance(timedelta(minutes=1))
    assert await actor_of_session(database, session) is None


async def test_an_ended_session_is_nobody_and_its_streams_are_told(database: Database) -> None:
    dropped: list[CacheDrop] = []
    database.bus.subscribe(CacheDrop, dropped.append)
    session = await signed_in(database)
    other, actor = await redeem_sign_in_link(database, await make_sign_in_link(database, MAIL))
    await end_session(database, session)
    assert await actor_of_session(database, session) is None
    assert await actor_of_session(database, other) == actor
    assert dropped == [CacheDrop("session", session_key(session))]
    assert await end_all_sessions(database, actor.person_id) == 1
    assert await actor_of_session(database, other) is None
    assert dropped[1:] == [CacheDrop("session", session_key(other))]


async def test_a_blocked_person_has_no_session_and_gets_no_link(database: Database) -> None:
    session = await signed_in(database)
    actor = await actor_of_session(database, session)
    assert actor is not None
    link = await make_sign_in_link(database, MAIL)
    await block_person(database, None, actor.person_id)
    assert await actor_of_session(database, session) is None
    assert not await peek_sign_in_link(database, link)
    with pytest.raises(NotSignedIn):
        await redeem_sign_in_link(database, link)
    with pytest.raises(NotFound):
        await make_sign_in_link(database, MAIL)
    await unblock_person(database, None, actor.person_id)
    assert await actor_of_session(database, session) is None, "unblocking revives no session"
    assert await peek_sign_in_link(database, link) is None, "nor a link that was open"


async def test_a_block_that_waits_for_a_sign_in_ends_the_new_session(database: Database) -> None:
    person_id = await add_person(database, MAIL, "Sam")
    link = await make_sign_in_link(database, MAIL)
    async with database.transaction() as tx:
        session, _ = await redeem_sign_in_link(database, link)
        block = asyncio.create_task(block_person(database, None, person_id))
        await wait_until_blocked(database, "people", by=tx.raw.get_server_pid())
    await block
    await unblock_person(database, None, person_id)
    assert await actor_of_session(database, session) is None


@pytest.mark.parametrize("guard", ["s.revoked_at is null", "s.expires_at >", "p.blocked_at is null"])
async def test_each_condition_of_the_one_statement_matters(
    database: Database, monkeypatch: pytest.MonkeyPatch, guard: str, test_clock: TestClock
) -> None:
    session = await signed_in(database)
    if "revoked" in guard:
        await end_session(database, session)
    elif "expires" in guard:
        await test_clock.advance(SESSION_LIFE)
    else:
        # Blocked by hand: the service would also end the session.
        await database.pool.execute("update people set blocked_at = lastcall_now()")
    assert await actor_of_session(database, session) is None
    lines = [line for line in sessions._ACTOR.splitlines() if guard not in line]
    monkeypatch.setattr(sessions, "_ACTOR", "\n".join(lines))
    assert await actor_of_session(database, session) is not None
