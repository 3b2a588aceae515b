"""Operators see everybody and act on everybody but themselves, confirmed, and only while they are operators."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

import lastcall.people.queries as queries
import lastcall.people.service as service
from lastcall.db.database import Database
from lastcall.errors import Conflict, NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.queries import audit_page, people_page, person_for_operators
from lastcall.people.scopes import Scope
from lastcall.people.service import add_person, block_person, set_operator, unblock_person
from lastcall.people.sessions import (
    SEEN_EVERY,
    USER_AGENT_LENGTH,
    Browser,
    actor_of_session,
    end_other_sessions,
    end_session_by_id,
    sessions_of,
)
from lastcall.people.sign_in import make_sign_in_link, redeem_sign_in_link
from lastcall.testing.clock import TestClock
from lastcall.testing.locks import wait_until_blocked


@pytest.fixture
def database_url(shared_url: str) -> str:
    return shared_url


async def person(database: Database, name: str = "Sam", *, is_operator: bool = False) -> Actor:
    """Somebody in a browser who confirmed just now."""
    email = f"{name.lower()}-{uuid4().hex[:8]}@example.org"
    person_id = await add_person(database, email, name, operator=is_operator)
    return Actor(person_id, name, is_operator, is_recent=True)


async def turn_on_each_other(database: Database) -> tuple[Actor, Actor, object]:
    """Two operators block each other at once; answers them and what the second one was told."""
    first, second = [await person(database, is_operator=True) for _ in range(2)]
    async with database.transaction() as tx:
        await block_person(database, first, second.person_id)
        answer = asyncio.create_task(block_person(database, second, first.person_id))
        await wait_until_blocked(database, "people", by=tx.raw.get_server_pid())
    return first, second, (await asyncio.gather(answer, return_exceptions=True))[0]


async def blocked(database: Database, *people: Actor) -> list[bool]:
    rows = await database.pool.fetch(
        "select id, blocked_at is not null as blocked from people where id = any($1)",
        [one.person_id for one in people],
    )
    found: dict[UUID, bool] = {row["id"]: row["blocked"] for row in rows}
    return [found[one.person_id] for one in people]


async def test_of_two_operators_who_turn_on_each_other_one_remains(database: Database) -> None:
    first, second, answer = await turn_on_each_other(database)
    assert isinstance(answer, NotAllowed)
    assert await blocked(database, first, second) == [False, True]


async def test_without_the_second_look_under_the_lock_none_would_remain(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = service._lock
    monkeypatch.setattr(service, "_lock", lambda tx, _actor, person_id: real(tx, None, person_id))
    first, second = [await person(database, is_operator=True) for _ in range(2)]
    await block_person(database, first, second.person_id)
    await block_person(database, second, first.person_id)
    assert await blocked(database, first, second) == [True, True]


async def test_what_an_operator_does_needs_a_recent_browser_or_the_command_line(database: Database) -> None:
    target = await person(database)
    operator = await person(database, is_operator=True)
    stale = Actor(operator.person_id, "Olga", is_operator=True)
    token = Actor(operator.person_id, "Olga", is_operator=True, scopes=frozenset(Scope))
    for act in (
        lambda actor: block_person(database, actor, target.person_id),
        lambda actor: unblock_person(database, actor, target.person_id),
        lambda actor: set_operator(database, actor, target.person_id, is_operator=True),
    ):
        for actor in (target, stale, token):
            with pytest.raises(NotAllowed):
                await act(actor)
        await act(operator)
        await act(None)
    with pytest.raises(NotAllowed) as refused:
        await block_person(database, operator, operator.person_id)
    assert refused.value.code == "not_to_oneself"
    with pytest.raises(NotFound):
        await block_person(database, operator, uuid4())


async def test_an_erased_person_stays_blocked(database: Database) -> None:
    target = await person(database)
    await block_person(database, None, target.person_id)
    await database.pool.execute("update people set erased_at = blocked_at where id = $1", target.person_id)
    with pytest.raises(Conflict):
        await unblock_person(database, None, target.person_id)


async def test_people_are_found_page_by_page_and_by_part_of_name_or_address(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = await person(database, is_operator=True)
    mark = uuid4().hex[:6]
    added = [await person(database, f"Finn{mark}") for _ in range(3)]
    for _ in range(4):
        await person(database)
    monkeypatch.setattr(queries, "EXAMINED", 2)
    found, after, pages = [], None, 0
    async with database.read() as tx:
        while pages == 0 or after is not None:
            page = await people_page(tx, operator, search=f"INN{mark}", after=after, limit=2)
            found += [row.id for row in page.rows]
            after = page.next
            pages += 1
        everybody, after, rest = 0, None, True
        while rest:
            page = await people_page(tx, operator, after=after, limit=3)
            everybody, after, rest = everybody + len(page.rows), page.next, page.next is not None
        total = await tx.raw.fetchval("select count(*) from people")
        for actor in (
            added[0],
            Actor(operator.person_id, "O", is_operator=True, scopes=frozenset({Scope.READ})),
        ):
            with pytest.raises(NotAllowed):
                await people_page(tx, actor)
            with pytest.raises(NotAllowed):
                await audit_page(tx, actor)
            with pytest.raises(NotAllowed):
                await person_for_operators(tx, actor, actor.person_id)
    assert found == [one.person_id for one in reversed(added)]
    assert pages > 2, "a page looks at two people at most"
    assert everybody == total


async def test_the_audit_is_read_by_page_and_says_who_did_what_to_whom(database: Database) -> None:
    operator, target = await person(database, "Olga", is_operator=True), await person(database, "Tam")
    await block_person(database, operator, target.person_id)
    await unblock_person(database, operator, target.person_id)
    rows, after = [], None
    async with database.read() as tx:
        for _ in range(5):
            page = await audit_page(tx, operator, about=target.person_id, after=after, limit=1)
            rows += page.rows
            after = page.next
            if after is None:
                break
    assert [(row.action, row.actor_name, row.subject_name) for row in rows] == [
        ("person.unblocked", "Olga", "Tam"),
        ("person.blocked", "Olga", "Tam"),
        ("person.added", None, "Tam"),
    ]


async def signed_in(database: Database, email: str, user_agent: str = "") -> tuple[str, Actor]:
    link = await make_sign_in_link(database, email)
    session, _ = await redeem_sign_in_link(database, link, Browser(user_agent=user_agent))
    actor = await actor_of_session(database, session)
    assert actor is not None
    return session, actor


async def test_a_person_sees_their_own_sessions_and_ends_one_or_all_others(database: Database) -> None:
    email = f"sam-{uuid4().hex[:8]}@example.org"
    await add_person(database, email, "Sam")
    stranger = await person(database)
    here, actor = await signed_in(database, email, "Firefox\x00 \u202e" + "x" * 500)
    phone, on_phone = await signed_in(database, email)
    tablet, _ = await signed_in(database, email)
    async with database.read() as tx:
        seen = await sessions_of(tx, actor)
        assert await sessions_of(tx, stranger) == []
    assert [one.is_this for one in seen] == [False, False, True]
    assert seen[-1].user_agent == ("Firefox " + "x" * 500)[:USER_AGENT_LENGTH]
    assert on_phone.session_id is not None
    with pytest.raises(NotFound):
        await end_session_by_id(database, stranger, on_phone.session_id)
    await end_session_by_id(database, actor, on_phone.session_id)
    assert await actor_of_session(database, phone) is None
    assert await end_other_sessions(database, actor) == 1
    assert await actor_of_session(database, tablet) is None
    assert await actor_of_session(database, here) == actor


async def test_when_a_session_was_seen_is_written_only_when_the_read_says_it_is_stale(
    database: Database, test_clock: TestClock
) -> None:
    email = f"sam-{uuid4().hex[:8]}@example.org"
    await add_person(database, email, "Sam")
    session, _ = await signed_in(database, email)

    async def statements() -> int:
        before = database.statements
        await actor_of_session(database, session)
        return database.statements - before

    assert await statements() == 1
    await test_clock.advance(SEEN_EVERY + timedelta(seconds=30))
    assert [await statements(), await statements()] == [2, 1]
