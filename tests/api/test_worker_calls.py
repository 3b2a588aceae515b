"""What each call answers on the wire; what it means is tested in its own room."""

from __future__ import annotations

from datetime import UTC, date, datetime

from tests.api.bodies import BODIES
from tests.api.conftest import Caller
from tests.connections.conftest import FIRST_TOKEN

from lastcall.connections.switches import set_account_limits, set_connection_limit
from lastcall.db.ids import encode_id, new_id
from lastcall.protocol.constants import LEASE_LIFE


async def test_hello_answers_with_the_accounts_state_and_limit(caller, site):
    answer = await caller("hello", **BODIES["hello"])
    assert answer.json() == {
        "accountState": "ready",
        "requestsPerMinute": 30,
        "claimsReturned": 0,
        "notAttempted": [],
        "frozenConnections": [],
    }
    assert answer.headers["cache-control"] == "no-store"
    release = await site.db.pool.fetchval("select release from collectors")
    assert release == "0.1.0"


async def test_a_lease_carries_its_epoch_to_the_microsecond_and_its_life_as_a_duration(caller, site):
    answer = await caller("lease", clubId=encode_id(site.club_id), connectionId=encode_id(site.connection_id))
    given = answer.json()
    epoch = await site.db.pool.fetchval("select epoch from connections")
    assert datetime.fromisoformat(given["epoch"]).astimezone(UTC) == epoch
    assert given["fencingToken"] == FIRST_TOKEN
    assert given["lifeMs"] == LEASE_LIFE.total_seconds() * 1000
    assert given["groupId"] == "grp_1"
    assert given["requestsPerMinute"] == 4
    assert given["accountRequestsPerMinute"] == 30
    assert sorted(given["features"]) == ["analytics", "instances", "membership_management", "posts"]


async def test_a_lease_is_renewed_and_released_by_what_the_lease_call_gave(caller):
    lease = await caller.lease()
    renewed = await caller("renew", lease=lease)
    assert renewed.json()["lifeMs"] == LEASE_LIFE.total_seconds() * 1000
    assert (await caller("release", lease=lease)).json() == {}
    again = await caller("release", lease=lease)
    assert (again.status_code, again.json()["code"]) == (409, "stale_lease")


async def test_a_lease_of_another_epoch_is_stale(caller):
    lease = await caller.lease()
    answer = await caller("renew", lease={**lease, "epoch": "2020-01-01T00:00:00.000001Z"})
    assert (answer.status_code, answer.json()["code"]) == (409, "epoch")


async def test_a_connection_held_by_another_worker_is_a_conflict_and_an_unknown_one_not_found(caller, site):
    await caller.lease()
    other = Caller(caller.client, site, encode_id(new_id()))
    key = {"clubId": encode_id(site.club_id), "connectionId": encode_id(site.connection_id)}
    held = await other("lease", **key)
    assert (held.status_code, held.json()["code"]) == (409, "held")
    unknown = await other("lease", **{**key, "connectionId": encode_id(new_id())})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "connection_unknown")
    await site.end()
    gone = await other("lease", **key)
    assert gone.status_code == 404


async def test_an_allowance_tells_how_long_it_lasts_or_when_to_come_again(caller, site, test_clock):
    now = await test_clock.freeze()
    await test_clock.set(now.replace(second=20, microsecond=0))
    lease = await caller.lease()
    granted = (await caller("allowance", amount=3, lease=lease)).json()
    assert granted == {"isGranted": True, "limit": 4, "windowMs": 40_000, "retryMs": 0, "isDailyCap": False}
    denied = (await caller("allowance", amount=3, lease=lease)).json()
    assert (denied["isGranted"], denied["windowMs"]) == (False, 0)
    assert denied["retryMs"] > 40_000
    alone = (await caller("allowance", amount=1)).json()
    assert (alone["isGranted"], alone["limit"]) == (True, 30)


async def test_a_hopeless_allowance_names_the_limit_and_no_time(caller, site, test_clock):
    await test_clock.freeze()
    await set_connection_limit(site.db, None, site.club_id, site.connection_id, 1)
    answer = (await caller("allowance", amount=2, lease=await caller.lease())).json()
    assert (answer["isGranted"], answer["limit"], answer["retryMs"]) == (False, 1, 0)


async def test_the_days_writes_are_told_apart_from_the_minutes_requests(caller, site, test_clock):
    now = await test_clock.freeze()
    await test_clock.set(now.replace(hour=12, second=20, microsecond=0))
    await set_account_limits(site.db, None, site.account.account_id, writes_per_day=1)
    lease = await caller.lease()
    assert (await caller("allowance", amount=2, lease=lease, isWrite=True)).json()["isGranted"]
    denied = (await caller("allowance", amount=2, lease=lease, isWrite=True)).json()
    assert (denied["isGranted"], denied["isDailyCap"]) == (False, True)
    assert 11 * 3_600_000 < denied["retryMs"] < 13 * 3_600_000
    assert (await caller("allowance", amount=2, lease=lease)).json()["isGranted"]


async def test_the_day_on_which_the_account_was_made_is_taken_from_its_hello(caller, site):
    await caller("hello", **{**BODIES["hello"], "joinedOn": "2019-07-01"})
    assert await site.db.pool.fetchval("select joined_on from accounts") == date(2019, 7, 1)
    await caller("hello", **BODIES["hello"])
    assert await site.db.pool.fetchval("select joined_on from accounts") == date(2019, 7, 1)


async def test_nothing_due_is_an_empty_claim(caller):
    answer = await caller("claim", lease=await caller.lease(), journalId=encode_id(new_id()))
    assert answer.json() == {"operation": None}


async def test_a_failure_stops_the_account_and_the_next_call_says_so(caller, site):
    lease = await caller.lease()
    assert (await caller("failure", code="rate_limit", lease=lease, retryAfterMs=90_500)).json() == {}
    answer = await caller("wait")
    assert answer.status_code == 423
    assert 60 <= int(answer.headers["retry-after"]) <= 91
    assert await site.db.pool.fetchval("select state from accounts") == "cooldown"


async def test_a_submission_nobody_knows_is_not_recorded(caller):
    answer = await caller("complete", **BODIES["complete"])
    assert answer.status_code == 200
    assert answer.json()["isRecorded"] is False
