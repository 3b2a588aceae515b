"""The fleet over the API: what an operator's program may do with accounts, and what only a person may."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import date

import pytest
from tests.api.v1_kit import Api, check, open_api

from lastcall.connections.hello import Journal, say_hello
from lastcall.connections.worker import Worker
from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id
from lastcall.testing.fleet import ready_account

LIMITS = {"requestsPerMinute": 12, "writesPerDay": 40, "capacity": 3, "reservedHeadroom": 1}


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    async with open_api(database) as api:
        yield api


async def account_of(api: Api, alias: str) -> dict[str, object]:
    operator = await api.program("operator")
    fleet = (await operator("GET", "/operator/fleet")).json()
    (found,) = [one for one in fleet["accounts"] if one["alias"] == alias]
    return found


async def test_an_accounts_limits_are_set_together_and_shown_with_what_is_used(api: Api) -> None:
    operator = await api.program("operator")
    path = f"/operator/accounts/{encode_id(api.world.key.account_id)}/limits"
    assert (await operator("PUT", path, json=LIMITS)).status_code == 204
    shown = await account_of(api, "porter")
    assert {name: shown[name] for name in LIMITS} == LIMITS
    assert (shown["connections"], shown["writesToday"], shown["writesAllowed"]) == (1, 0, 40)
    check(await operator("PUT", path, json={**LIMITS, "reservedHeadroom": 4}), 422, "headroom_above_capacity")
    check(await operator("PUT", path, json={**LIMITS, "writesPerDay": 0}), 422, "malformed_request")
    shown = await account_of(api, "porter")
    assert {name: shown[name] for name in LIMITS} == LIMITS


async def test_a_collectors_hello_is_shown_with_its_release_and_the_accounts_age(api: Api) -> None:
    key = api.world.key
    worker = Worker(key.account_id, key.generation, new_id(), "usr_1")
    joined = await api.world.db.pool.fetchval("select (lastcall_now() at time zone 'UTC')::date - 10")
    assert isinstance(joined, date)
    await say_hello(api.world.db, worker, Journal(new_id(), True), "5.0.0", joined)
    shown = await account_of(api, "porter")
    assert shown["joinedOn"] == joined.isoformat()
    assert shown["writesAllowed"] == 200
    assert [(one["workerId"], one["release"]) for one in shown["collectors"]] == [
        (encode_id(worker.worker_id), "5.0.0")
    ]


async def test_a_program_takes_an_account_out_of_work_and_gives_its_club_to_another(api: Api) -> None:
    """Letting an account work is for a person."""
    operator = await api.program("operator")
    state = f"/operator/accounts/{encode_id(api.world.key.account_id)}/state"
    away = f"/clubs/{api.club}/connections/{encode_id(api.world.connection_id)}/account"
    check(await operator("PUT", away, json={}), 409, "account_not_leaving")
    assert (await operator("PUT", state, json={"state": "quarantined"})).status_code == 204
    check(await operator("PUT", state, json={"state": "ready"}), 403, "browser_needed")
    check(await operator("PUT", state, json={"state": "degraded"}), 409, "account_state_move")
    check(await operator("PUT", away, json={}), 409, "no_account_free")
    other = await ready_account(api.world.db, "other", "usr_2")
    answer = await operator("PUT", away, json={"accountId": None})
    assert answer.json() == {"accountId": encode_id(other.account_id)}
    assert (await account_of(api, "other"))["connections"] == 1
    assert (await operator("PUT", state, json={"state": "retired"})).status_code == 204


@pytest.mark.parametrize("state", ["cooldown", "auth_required", "provisioning", "asleep"])
async def test_no_program_sets_a_state_that_only_happens(api: Api, state: str) -> None:
    operator = await api.program("operator")
    path = f"/operator/accounts/{encode_id(api.world.key.account_id)}/state"
    check(await operator("PUT", path, json={"state": state}), 422, "malformed_request")
    assert (await account_of(api, "porter"))["state"] == "ready"
