"""A creating call that is sent again: by a client that lost the answer, at the same time, after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from tests.api.v1_kit import Api, Program, check, open_api

import lastcall.api.v1.idempotency as idempotency
from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id
from lastcall.testing.locks import wait_until_blocked

_ROLES = "select count(*) from staff_roles where name = $1"


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    async with open_api(database) as api:
        yield api


async def create(program: Program, api: Api, name: str, key: str | None, **more: Any) -> httpx2.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return await program("POST", f"/clubs/{api.club}/roles", json={"name": name, **more}, headers=headers)


async def test_the_same_call_under_the_same_key_creates_once_and_is_answered_the_same(api: Api) -> None:
    owner, pool = await api.program("owner"), api.world.db.pool
    key = encode_id(new_id())
    first = await create(owner, api, "Doors", key, permissions=["view_members"])
    assert first.status_code == 201
    # Another token of the same person, and another order of the fields: still the same call.
    again = await (await api.program("owner"))(
        "POST",
        f"/clubs/{api.club}/roles",
        json={"permissions": ["view_members"], "name": "Doors"},
        headers={"Idempotency-Key": key},
    )
    assert (again.status_code, again.json()) == (201, first.json())
    assert await pool.fetchval(_ROLES, "Doors") == 1
    check(await create(owner, api, "Windows", key), 409, "idempotency_key_used")
    invite = {"roleIds": [await api.role()]}
    other_address = await owner(
        "POST", f"/clubs/{api.club}/invites", json=invite, headers={"Idempotency-Key": key}
    )
    check(other_address, 409, "idempotency_key_used")
    # Nobody else's key, and without one each call is its own.
    operator = await api.program("operator")
    person = {"email": "new@example.org", "displayName": "New"}
    made = await operator("POST", "/operator/people", json=person, headers={"Idempotency-Key": key})
    assert made.status_code == 201
    assert [(await create(owner, api, "Twice", None)).status_code for _ in range(2)] == [201, 201]
    for wrong in ("short", "x" * 129, "with space", "semi;colon"):
        answer = await create(owner, api, "Never", wrong)
        assert check(answer, 422, "malformed_request")["field"]
    assert await pool.fetchval(_ROLES, "Never") == 0


async def test_what_was_refused_leaves_no_key_and_is_judged_anew(api: Api) -> None:
    owner, pool = await api.program("owner"), api.world.db.pool
    key = encode_id(new_id())
    check(await create(owner, api, " ", key), 422, "name_malformed")
    assert await pool.fetchval("select count(*) from idempotency_keys") == 0
    assert (await create(owner, api, "Right now", key)).status_code == 201


async def test_a_token_shown_once_is_kept_nowhere_and_null_when_the_call_is_repeated(api: Api) -> None:
    owner, pool = await api.program("owner"), api.world.db.pool
    sent = {"json": {"roleIds": [await api.role()]}, "headers": {"Idempotency-Key": encode_id(new_id())}}
    first = (await owner("POST", f"/clubs/{api.club}/invites", **sent)).json()
    assert len(first["token"]) > 40
    again = (await owner("POST", f"/clubs/{api.club}/invites", **sent)).json()
    assert again == {"id": first["id"], "token": None}
    kept = await pool.fetchval("select convert_from(answer, 'UTF8') from idempotency_keys")
    assert first["token"] not in kept
    assert await pool.fetchval("select count(*) from invites") == 1


async def race(api: Api, program: Program, key: str, first: str, second: str) -> list[httpx2.Response]:
    """Two calls, of which the second waits for the first one's transaction; both are held up by a lock on the
    club's gate until the second is seen waiting."""
    db = api.world.db
    async with db.transaction() as tx:
        await tx.raw.execute("select from club_gates where club_id = $1 for update", api.world.club_id)
        holder = await tx.raw.fetchval("select pg_backend_pid()")
        one = asyncio.create_task(create(program, api, first, key))
        writer = await wait_until_blocked(db, "club_gates", by=holder)
        two = asyncio.create_task(create(program, api, second, key))
        await wait_until_blocked(db, "insert into idempotency_keys", by=writer)
    return [await one, await two]


async def test_of_two_same_calls_at_once_one_creates_and_the_other_waits_and_gets_its_answer(
    api: Api,
) -> None:
    owner = await api.program("owner")
    one, two = await race(api, owner, encode_id(new_id()), "Both", "Both")
    assert (one.status_code, two.status_code) == (201, 201)
    assert one.json() == two.json()
    assert await api.world.db.pool.fetchval(_ROLES, "Both") == 1


async def test_of_two_different_calls_at_once_under_one_key_the_second_is_refused(api: Api) -> None:
    owner = await api.program("owner")
    one, two = await race(api, owner, encode_id(new_id()), "One", "Two")
    assert one.status_code == 201
    check(two, 409, "idempotency_key_used")


async def test_without_the_key_taken_first_two_same_calls_create_twice(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: the guard is the row that the first call inserts before it does anything."""

    async def take_nothing(*_: object) -> None:
        return None

    monkeypatch.setattr(idempotency, "_begin", take_nothing)
    owner = await api.program("owner")
    key = encode_id(new_id())
    await asyncio.gather(create(owner, api, "Both", key), create(owner, api, "Both", key))
    assert await api.world.db.pool.fetchval(_ROLES, "Both") == 2


async def test_a_crash_in_between_leaves_nothing_and_the_next_try_creates(api: Api) -> None:
    owner, db = await api.program("owner"), api.world.db
    key = encode_id(new_id())
    async with db.transaction() as tx:
        await tx.raw.execute("select from club_gates where club_id = $1 for update", api.world.club_id)
        holder = await tx.raw.fetchval("select pg_backend_pid()")
        one = asyncio.create_task(create(owner, api, "Crashed", key))
        writer = await wait_until_blocked(db, "club_gates", by=holder)
        await tx.raw.execute("select pg_terminate_backend($1)", writer)
        check(await one, 503, "database_lost")
    assert await db.pool.fetchval("select count(*) from idempotency_keys") == 0
    assert await db.pool.fetchval(_ROLES, "Crashed") == 0
    assert (await create(owner, api, "Crashed", key)).status_code == 201


async def test_a_key_is_known_for_a_day_and_then_removed_by_those_that_come_after(
    api: Api,
) -> None:
    owner, pool = await api.program("owner"), api.world.db.pool
    keys = [encode_id(new_id()) for _ in range(3)]
    for key in keys:
        await create(owner, api, "Kept", key)
    await pool.execute("update idempotency_keys set created_at = lastcall_now() - interval '23 h 59 min'")
    await create(owner, api, "Kept", keys[0])
    assert await pool.fetchval(_ROLES, "Kept") == 3
    await pool.execute("update idempotency_keys set created_at = lastcall_now() - interval '24 h'")
    assert (await create(owner, api, "Other", keys[0])).status_code == 201
    assert [row["key"] for row in await pool.fetch("select key from idempotency_keys")] == [keys[0]]
