"""A read over the wire: asked for by a program of somebody's, made by a collector, looked at by who may see it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.bodies import BODIES
from tests.api.conftest import Caller

from lastcall.db.ids import encode_id
from lastcall.people.actor import Actor
from lastcall.protocol.reads import ReadClaimAnswer, ReadComplete, ReadFailed, ReadRecorded
from lastcall.reads.asking import request_read
from lastcall.reads.queries import Read, read_of
from lastcall.reads.states import READ_LIFE, ReadState

EVIDENCE = {**BODIES["read_complete"]["evidence"], "groupId": "grp_1", "userId": "usr_1"}
ROW = {"userId": "usr_00000000-0000-4000-8000-000000000001", "displayName": "Robin", "bannedAt": None}
PAGE = {"evidence": EVIDENCE, "ageMs": 0, "items": [ROW]}


async def asked(site: Any, kind: str = "bans") -> Read:
    return await request_read(site.db, owner(site), site.club_id, kind, {"n": 2})


def owner(site: Any) -> Actor:
    return Actor(site.owner_id, "Owner", is_operator=False)


async def claimed(caller: Caller) -> dict[str, Any]:
    """The reference to a read that this caller has claimed."""
    lease = await caller.lease()
    given = (await caller("read_claim", lease=lease)).json()["read"]
    return {**lease, "readId": given["readId"], "nonce": given["nonce"]}


async def test_a_read_goes_from_the_claim_to_the_screen(caller, site):
    read = await asked(site)
    lease = await caller.lease()
    given = (await caller("read_claim", lease=lease)).json()["read"]
    assert given == {
        "readId": encode_id(read.id),
        "nonce": given["nonce"],
        "kind": "bans",
        "params": {"n": 2, "offset": 0},
        "lifeMs": READ_LIFE.total_seconds() * 1000,
    }
    assert (await caller("read_claim", lease=lease)).json() == {"read": None}
    ref = {**lease, "readId": given["readId"], "nonce": given["nonce"]}
    answer = await caller("read_complete", read=ref, **PAGE, total=1)
    assert (answer.status_code, answer.json()) == (200, {"isRecorded": True})
    async with site.db.read() as tx:
        seen = await read_of(tx, owner(site), site.club_id, read.id)
    assert (seen.is_fresh, seen.total, seen.items[0].display_name) == (True, 1, "Robin")


@pytest.mark.clause("COL-07")
@pytest.mark.parametrize(
    ("call", "more"),
    [
        (call, {name: 429})
        for call in ("read_complete", "read_failed")
        for name in ("status", "httpStatus", "retryAfterMs", "retryAt", "providerStatus")
    ],
)
async def test_what_vrchat_said_of_status_and_timing_is_refused_in_a_read(caller, site, call, more):
    await asked(site)
    ref = await claimed(caller)
    body = PAGE if call == "read_complete" else {"code": "rate_limit"}
    refused = await caller(call, read=ref, **body, **more)
    assert (refused.status_code, refused.json()["code"]) == (422, "malformed_call")
    assert (await caller(call, read={**ref, **more}, **body)).status_code == 422
    assert await site.db.pool.fetchval("select state from provider_reads") == "running"
    assert (await caller(call, read=ref, **body)).json() == {"isRecorded": True}


@pytest.mark.clause("COL-07")
def test_no_message_of_a_read_has_a_place_for_status_or_timing():
    names = {
        name
        for one in (ReadComplete, ReadFailed, ReadRecorded, ReadClaimAnswer)
        for name in one.__struct_fields__
    }
    assert names == {
        *("worker_id", "vrchat_user_id", "read", "evidence", "age_ms", "items", "next_offset", "total"),
        *("code", "is_recorded"),
    }


async def test_a_page_that_was_not_asked_for_is_told_where_it_is_wrong(caller, site):
    read = await asked(site)
    ref = await claimed(caller)
    refused = await caller("read_complete", read=ref, **{**PAGE, "items": [ROW, ROW, ROW]})
    assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (
        422,
        "answer_refused",
        "items",
    )
    async with site.db.read() as tx:
        seen = await read_of(tx, owner(site), site.club_id, read.id)
    assert (seen.state, seen.code) == (ReadState.FAILED, "answer_refused")


async def test_items_beyond_a_page_do_not_even_reach_the_service(caller, site):
    await asked(site)
    ref = await claimed(caller)
    refused = await caller("read_complete", read=ref, **{**PAGE, "items": [ROW] * 101})
    assert (refused.status_code, refused.json()["field"]) == (422, "items")


@pytest.mark.parametrize("field", ["readId", "nonce", "fencingToken", "epoch", "connectionId", "clubId"])
async def test_a_claim_that_is_wrong_in_one_place_is_not_recorded(caller, site, field):
    await asked(site)
    ref = await claimed(caller)
    other = {"fencingToken": ref["fencingToken"] + 1, "epoch": "2020-01-01T00:00:00Z"}
    spoilt = {**ref, field: other.get(field, "0" * 25 + "1")}
    assert (await caller("read_complete", read=spoilt, **PAGE)).json() == {"isRecorded": False}
    assert (await caller("read_failed", read=spoilt, code="timeout")).json() == {"isRecorded": False}
    assert await site.db.pool.fetchval("select state from provider_reads") == "running"


async def test_another_worker_of_the_account_cannot_answer(caller, site):
    await asked(site)
    ref = await claimed(caller)
    other = Caller(caller.client, site)
    assert (await other("read_complete", read=ref, **PAGE)).json() == {"isRecorded": False}
    assert (await caller("read_complete", read=ref, **PAGE)).json() == {"isRecorded": True}


async def test_an_answer_after_the_lease_is_not_recorded(caller, site):
    await asked(site)
    ref = await claimed(caller)
    lease = {name: ref[name] for name in ("clubId", "connectionId", "epoch", "fencingToken")}
    await caller("release", lease=lease)
    assert (await caller("read_complete", read=ref, **PAGE)).json() == {"isRecorded": False}
    refused = await caller("read_claim", lease=lease)
    assert (refused.status_code, refused.json()["code"]) == (409, "stale_lease")


async def test_an_account_that_may_not_work_gets_no_read(caller, site):
    await asked(site)
    ref = await claimed(caller)
    await caller("failure", code="rate_limit", retryAfterMs=60_000)
    assert (await caller("read_complete", read=ref, **PAGE)).status_code == 423
    assert (await caller("read_claim", lease={k: ref[k] for k in list(ref)[:4]})).status_code == 423
