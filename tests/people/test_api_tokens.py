"""A token does what its scopes say, for its person alone, until it ends; and never what a browser must confirm."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

import lastcall.people.api_tokens as api_tokens
from lastcall.db.database import Database
from lastcall.errors import Invalid, NotAllowed, NotFound
from lastcall.mail.mailer import Mailer
from lastcall.people.actor import Actor
from lastcall.people.api_tokens import (
    MOST_TOKENS,
    USED_EVERY,
    actor_of_token,
    create_token,
    revoke_token,
    tokens_of,
)
from lastcall.people.scopes import Scope
from lastcall.people.service import add_person, block_person, unblock_person
from lastcall.testing.clock import TestClock
from lastcall.testing.locks import wait_until_blocked

DAY = timedelta(days=1)


@pytest.fixture
def database_url(shared_url: str) -> str:
    return shared_url


async def person(database: Database, *, is_operator: bool = False) -> Actor:
    """Somebody in a browser who confirmed just now."""
    person_id = await add_person(database, f"sam-{uuid4().hex[:8]}@example.org", "Sam", operator=is_operator)
    return Actor(person_id, "Sam", is_operator, is_recent=True)


async def made(database: Database, actor: Actor, *scopes: Scope, life: timedelta = DAY) -> tuple[UUID, str]:
    unsent = Mailer(database, None, "http://localhost")
    return await create_token(database, unsent, actor, "Bot", scopes or [Scope.READ], life)


async def test_a_token_acts_within_its_scopes_and_is_never_recent(database: Database) -> None:
    sam = await person(database)
    _, token = await made(database, sam, Scope.READ, Scope.CLUBS)
    actor = await actor_of_token(database, token)
    assert actor is not None
    assert (actor.person_id, actor.scopes, actor.is_recent) == (
        sam.person_id,
        {Scope.READ, Scope.CLUBS},
        False,
    )
    actor.require_scope(Scope.CLUBS)
    with pytest.raises(NotAllowed) as refused:
        actor.require_scope(Scope.ACCOUNT)
    assert refused.value.code == "scope_missing"
    with pytest.raises(NotAllowed) as refused:
        actor.require_recent()
    assert refused.value.code == "browser_needed"
    with pytest.raises(NotAllowed):
        await made(database, actor)


async def test_a_token_dies_with_its_day_a_revocation_and_a_block(
    database: Database, test_clock: TestClock
) -> None:
    sam = await person(database)
    _, short = await made(database, sam, life=timedelta(minutes=5))
    revoked_id, revoked = await made(database, sam)
    _, blocked = await made(database, sam)
    await revoke_token(database, sam, revoked_id)
    await revoke_token(database, sam, revoked_id)
    await test_clock.advance(timedelta(minutes=5))
    assert await actor_of_token(database, short) is None
    assert await actor_of_token(database, revoked) is None
    assert await actor_of_token(database, blocked) is not None
    await block_person(database, None, sam.person_id)
    assert await actor_of_token(database, blocked) is None
    await unblock_person(database, None, sam.person_id)
    assert await actor_of_token(database, blocked) is None


@pytest.mark.parametrize("guard", ["t.revoked_at is null", "t.expires_at >", "p.blocked_at is null"])
async def test_each_condition_of_the_one_statement_matters(
    database: Database, monkeypatch: pytest.MonkeyPatch, guard: str, test_clock: TestClock
) -> None:
    sam = await person(database)
    token_id, token = await made(database, sam, life=timedelta(minutes=1))
    if "revoked" in guard:
        await revoke_token(database, sam, token_id)
    elif "expires" in guard:
        await test_clock.advance(timedelta(minutes=1))
    else:
        # Blocked by hand: the service would also revoke the token.
        await database.pool.execute(
            "update people set blocked_at = lastcall_now() where id = $1", sam.person_id
        )
    assert await actor_of_token(database, token) is None
    lines = [line for line in api_tokens._ACTOR.splitlines() if guard not in line]
    monkeypatch.setattr(api_tokens, "_ACTOR", "\n".join(lines))
    assert await actor_of_token(database, token) is not None


async def test_nobody_sees_or_revokes_the_token_of_another(database: Database) -> None:
    sam, robin = await person(database), await person(database)
    token_id, token = await made(database, sam)
    async with database.read() as tx:
        assert [one.id for one in await tokens_of(tx, sam)] == [token_id]
        assert await tokens_of(tx, robin) == []
    with pytest.raises(NotFound):
        await revoke_token(database, robin, token_id)
    assert await actor_of_token(database, token) is not None


async def test_a_token_is_stored_as_a_hash_with_its_first_characters(database: Database) -> None:
    sam = await person(database)
    _, token = await made(database, sam)
    assert len(token) == 46
    async with database.read() as tx:
        (view,) = await tokens_of(tx, sam)
    assert view.hint == token[:8]
    for table in ("api_tokens", "audit_log"):
        assert token not in await database.pool.fetchval(f"select string_agg(t::text, ' ') from {table} t")


@pytest.mark.parametrize(
    ("scopes", "life", "field"),
    [((), DAY, "scopes"), ((Scope.OPERATOR,), DAY, "scopes"), ((Scope.READ,), DAY * 366, "days")],
)
async def test_what_a_token_cannot_be_is_refused_with_its_field(
    database: Database, scopes: tuple[Scope, ...], life: timedelta, field: str
) -> None:
    unsent = Mailer(database, None, "http://localhost")
    with pytest.raises(Invalid) as refused:
        await create_token(database, unsent, await person(database), "Bot", scopes, life)
    assert refused.value.field == field


async def test_two_forms_at_once_do_not_pass_the_limit_together(database: Database) -> None:
    sam = await person(database)
    await database.pool.execute(
        "insert into api_tokens (id, person_id, name, token_hash, hint, scopes, expires_at)"
        " select gen_random_uuid(), $1, 'Bot', sha256(gen_random_uuid()::text::bytea), 'lc_', '{read}',"
        " lastcall_now() + interval '1 day' from generate_series(2, $2)",
        sam.person_id,
        MOST_TOKENS,
    )
    async with database.transaction() as tx:
        await made(database, sam)
        second = asyncio.create_task(made(database, sam))
        await wait_until_blocked(database, "people", by=tx.raw.get_server_pid())
    with pytest.raises(Invalid) as refused:
        await second
    assert refused.value.code == "too_many_tokens"


async def test_its_last_use_is_written_every_few_minutes_and_not_at_every_call(
    database: Database, test_clock: TestClock
) -> None:
    sam = await person(database)
    _, token = await made(database, sam)

    async def used() -> object:
        await actor_of_token(database, token)
        async with database.read() as tx:
            return (await tokens_of(tx, sam))[0].last_used_at

    first = await used()
    await test_clock.advance(USED_EVERY - timedelta(seconds=30))
    assert await used() == first
    await test_clock.advance(timedelta(minutes=1))
    assert await used() != first
