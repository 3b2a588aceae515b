"""Who may tell of a result: exactly that claim's account, process and token, under the account's newest key."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

import lastcall.api.worker.admission as admission
from lastcall.connections.accounts import rotate_key
from lastcall.connections.signals import key_drop
from lastcall.db.ids import encode_id, new_id
from lastcall.protocol.calls import CALLS
from lastcall.protocol.messages import Call
from lastcall.testing.fleet import ready_account
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.routines import replace_routine
from tests.acceptance.desk import Desk, told
from tests.api.bodies import BODIES

NOT_READY = (
    "provisioning", "degraded", "cooldown", "auth_required", "quarantined", "retiring", "retired",
)  # fmt: skip
WRONG = {
    "nonce": {"nonce": encode_id(new_id())},
    "token": {"fencingToken": 9},
    "epoch": {"epoch": "2020-01-01T00:00:00.000001Z"},
    "connection": {"connectionId": encode_id(new_id())},
    "operation": {"operationId": encode_id(new_id())},
    "club": {"clubId": encode_id(new_id())},
}


# --- every field of the claim ----------------------------------------------------------------------------------


async def test_a_result_with_one_wrong_field_of_the_claim_is_not_recorded(desk: Desk) -> None:
    sent = await desk.submitted()
    before = await desk.row(sent)
    for wrong, changes in WRONG.items():
        answer = told(await desk.collector.complete(sent, **changes))
        assert (answer["isRecorded"], answer["code"]) == (False, "claim_unavailable"), wrong
    stranger = desk.another_collector()
    assert not told(await stranger.complete(sent))["isRecorded"], "another process of the account"
    assert await desk.row(sent) == before
    assert told(await desk.collector.complete(sent))["isRecorded"]


async def test_another_account_another_vrchat_user_and_an_old_key_record_nothing(desk: Desk) -> None:
    sent = await desk.submitted()
    before = await desk.row(sent)
    other = desk.another_collector(await ready_account(desk.db, "another", "usr_2"), "usr_2")
    other.worker_id = desk.collector.worker_id
    assert not told(await other.complete(sent))["isRecorded"]
    desk.collector.vrchat_user_id = "usr_2"
    assert (await desk.collector.complete(sent)).status_code == 401
    desk.collector.vrchat_user_id = "usr_1"
    newer = await rotate_key(desk.db, None, desk.account_id)
    assert (await desk.collector.complete(sent)).status_code == 401
    assert await desk.row(sent) == before
    desk.collector.key = newer.key
    assert told(await desk.collector.complete(sent))["isRecorded"]


# --- accounts that may do nothing else -------------------------------------------------------------------------


async def put(desk: Desk, state: str) -> None:
    """The account is in that state, some of which no command reaches while it serves a club."""
    async with desk.db.transaction() as tx:
        await tx.raw.execute(
            "update accounts set state = $1::text,"
            " cooldown_until = case when $1 = 'cooldown' then lastcall_now() + interval '1 hour' end",
            state,
        )
        tx.publish(key_drop(desk.account_id))


@pytest.mark.clause("WRK-06", "WRK-07")
async def test_a_disabled_account_may_tell_of_its_results_and_nothing_else(desk: Desk) -> None:
    sent = [await desk.submitted(number) for number, _ in enumerate(NOT_READY, 1)]
    for state, one in zip(NOT_READY, sent, strict=True):
        await put(desk, state)
        for call in set(CALLS) - {"complete"}:
            assert (await desk.collector(call, **BODIES[call])).status_code == 423, (state, call)
        assert told(await desk.collector.complete(one))["isRecorded"], state
        assert await desk.state(one) == ("succeeded", None)


async def test_twin_without_the_exception_a_disabled_account_loses_its_results(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Nothing(Call):
        """No call is let in for a disabled account."""

    monkeypatch.setattr(admission, "Complete", Nothing)
    sent = await desk.submitted()
    await put(desk, "quarantined")
    assert (await desk.collector.complete(sent)).status_code == 423
    assert await desk.state(sent) == ("submitted", None)


# --- keys that change ------------------------------------------------------------------------------------------


@pytest.mark.clause("WRK-08")
async def test_the_newest_key_tells_of_what_an_older_one_claimed_but_goes_on_with_none_of_it(
    desk: Desk,
) -> None:
    sent, held = await desk.submitted(1), await desk.claimed(2)
    old = desk.collector.key
    desk.collector.key = (await rotate_key(desk.db, None, desk.account_id)).key
    answer = told(await desk.collector.authorize(held))
    assert (answer["isAuthorized"], answer["code"]) == (False, "claim_unavailable")
    assert told(await desk.collector.complete(sent))["isRecorded"]
    row = await desk.row(sent)
    assert (row["state"], row["claim_generation"]) == ("succeeded", 1)
    desk.collector.key = old
    assert (await desk.collector.complete(held)).status_code == 401


async def test_twin_a_claim_of_any_key_is_authorized_by_a_later_one(desk: Desk) -> None:
    await replace_routine(desk.db, "is_held_by", "and p_row.claim_generation = p_generation", "")
    held = await desk.claimed()
    desk.collector.key = (await rotate_key(desk.db, None, desk.account_id)).key
    assert told(await desk.collector.authorize(held))["isAuthorized"]


async def rotated_in_mid_body(desk: Desk, sent: dict[str, Any]) -> int:
    """The status of a result whose body ends after the key that it began with was superseded."""
    collector = desk.collector
    body = httpx2.Request(
        "POST",
        "http://localhost",
        json={
            "workerId": collector.worker_id,
            "vrchatUserId": collector.vrchat_user_id,
            "claim": sent["claim"],
            "outcome": "succeeded",
        },
    ).content
    url = collector.client.base_url
    reader, writer = await asyncio.open_connection(url.host, url.port)
    head = [
        "POST /worker/v1/complete HTTP/1.1",
        f"Host: {url.host}:{url.port}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in collector.headers().items()),
    ]
    try:
        writer.write("\r\n".join([*head, "", ""]).encode() + body[:20])
        await writer.drain()
        # Asked and answered on another connection, so the server has seen what came before.
        assert (await collector("renew", lease=collector.lease)).status_code == 200
        await rotate_key(desk.db, None, desk.account_id)
        writer.write(body[20:])
        await writer.drain()
        status = (await reader.readline()).split()[1]
    finally:
        writer.close()
    return int(status)


async def rotated_after_admission(desk: Desk, sent: dict[str, Any]) -> int:
    """The status of a result that was let in and then had to wait for the rotation of its key."""
    holder = await desk.db.connect()
    try:
        async with holder.transaction():
            await holder.fetch("select from accounts where id = $1 for update", desk.account_id)
            rotating = asyncio.ensure_future(rotate_key(desk.db, None, desk.account_id))
            await wait_until_blocked(desk.db, "accounts", by=holder.get_server_pid())
            telling = asyncio.ensure_future(desk.collector.complete(sent))
            await wait_until_blocked(desk.db, "complete_operation")
        await rotating
        return (await telling).status_code
    finally:
        await holder.close()


ROTATIONS = {"in mid body": rotated_in_mid_body, "after admission": rotated_after_admission}


@pytest.mark.clause("WRK-08")
@pytest.mark.parametrize("when", list(ROTATIONS))
async def test_a_key_that_is_superseded_under_way_records_nothing(desk: Desk, when: str) -> None:
    sent = await desk.submitted()
    assert await ROTATIONS[when](desk, sent) == 401
    assert await desk.state(sent) == ("submitted", None)


@pytest.mark.parametrize("when", list(ROTATIONS))
async def test_twin_a_complete_that_does_not_ask_for_the_key_again_believes_a_superseded_one(
    desk: Desk, when: str
) -> None:
    await replace_routine(
        desk.db,
        "complete_operation",
        "and exists (select from current_key(p_account, p_generation, judged_at))",
        "",
    )
    sent = await desk.submitted()
    assert await ROTATIONS[when](desk, sent) == 200
    assert await desk.state(sent) == ("succeeded", None)
