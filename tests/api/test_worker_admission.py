"""Who is let in, and the one clear sentence for whoever is not."""

from __future__ import annotations

import asyncio

import pytest
from tests.api.bodies import BODIES, spoilt_lease

from lastcall.connections.accounts import rotate_key, set_account_state
from lastcall.connections.states import AccountState
from lastcall.connections.switches import set_account_switch, set_fleet_switch
from lastcall.db.ids import encode_id, new_id
from lastcall.protocol.calls import CALLS
from lastcall.protocol.constants import BODY_BYTES_MOST

ID = encode_id(new_id())


def check_problem(response, status: int, code: str) -> dict:
    body = response.json()
    assert response.status_code == status, body
    assert response.headers["content-type"] == "application/problem+json"
    assert (body["status"], body["code"]) == (status, code)
    assert body["detail"].endswith(".")
    assert body["detail"].count(". ") == 0
    return body


def test_every_call_of_the_protocol_has_a_body_here():
    assert set(BODIES) == set(CALLS)


async def test_an_unknown_key_is_unauthorized_for_every_call(caller):
    for call in CALLS:
        for headers in (
            {"Authorization": None},
            {"Authorization": "Bearer"},
            {"Authorization": "Bearer lck_wrong"},
            {"Authorization": "Basic bGNrXw=="},
            {"Lastcall-Account": None},
            {"Lastcall-Account": "not an id"},
            {"Lastcall-Account": ID},
        ):
            check_problem(await caller(call, headers=headers, **BODIES[call]), 401, "worker_key_refused")


async def test_another_vrchat_user_is_unauthorized_for_every_call(caller):
    for call, body in BODIES.items():
        answer = await caller(call, **{**body, "vrchatUserId": "usr_other"})
        check_problem(answer, 401, "worker_key_refused")


async def test_a_superseded_key_is_unauthorized_for_every_call(caller, site):
    assert (await caller("hello", **BODIES["hello"])).status_code == 200
    await rotate_key(site.db, None, site.account.account_id)
    for call, body in BODIES.items():
        check_problem(await caller(call, **body), 401, "worker_key_refused")


@pytest.mark.parametrize("how", ["fleet_switch", "account_switch", "account_state"])
async def test_a_disabled_account_is_locked_out_of_all_but_complete(caller, site, how):
    match how:
        case "fleet_switch":
            await set_fleet_switch(site.db, None, is_on=True)
        case "account_switch":
            await set_account_switch(site.db, None, site.account.account_id, is_on=True)
        case _:
            await set_account_state(site.db, None, site.account.account_id, AccountState.QUARANTINED)
    for call, body in BODIES.items():
        answer = await caller(call, **body)
        if call == "complete":
            assert answer.status_code == 200, answer.text
        else:
            check_problem(answer, 423, how)


async def test_a_cooling_account_is_told_for_how_long(caller, site):
    await site.db.pool.execute(
        "update accounts set state = 'cooldown', cooldown_until = lastcall_now() + interval '90 seconds'"
    )
    answer = await caller("wait")
    check_problem(answer, 423, "account_state")
    assert 60 <= int(answer.headers["retry-after"]) <= 90


async def test_another_protocol_is_refused_with_both_numbers(caller):
    for spoken in ("1", "", None, "2.0"):
        answer = await caller("wait", headers={"Lastcall-Protocol": spoken})
        body = check_problem(answer, 422, "protocol_mismatch")
        assert "protocol 2" in body["detail"]
        assert body["advice"]


MALFORMED = [
    ("hello", {"workerId": ...}, None),
    ("hello", {"workerId": 5}, "workerId"),
    ("hello", {"workerId": "short"}, "workerId"),
    ("hello", {"journalId": "U" * 26}, "journalId"),
    ("hello", {"isJournalIntact": "yes"}, "isJournalIntact"),
    ("hello", {"release": ""}, "release"),
    ("hello", {"release": "x" * 201}, "release"),
    ("hello", {"submissions": [{"clubId": ID}]}, "submissions[0]"),
    ("hello", {"surprise": 1}, None),
    ("lease", {"clubId": "../../etc"}, "clubId"),
    ("lease", {"connectionId": None}, "connectionId"),
    ("renew", {"lease": {}}, "lease"),
    ("allowance", {"amount": 0}, "amount"),
    ("allowance", {"amount": 11}, "amount"),
    ("allowance", {"amount": 1.5}, "amount"),
    ("claim", {"journalId": ...}, None),
    ("authorize", {"kind": "Ban Member"}, "kind"),
    ("complete", {"outcome": "maybe"}, "outcome"),
    ("complete", {"result": {"worldId": "x" * 601}}, "result[...]"),
    ("reject", {"code": "NOT A CODE"}, "code"),
    ("defer", {"delayMs": -1}, "delayMs"),
    ("failure", {"retryAfterMs": "soon"}, "retryAfterMs"),
    ("failure", spoilt_lease(fencingToken=0), "lease.fencingToken"),
    ("failure", spoilt_lease(epoch="2026-01-01T00:00:00"), "lease.epoch"),
]


async def test_a_malformed_call_is_told_which_field_in_one_sentence_and_changes_nothing(caller, site):
    for call, changes, field in MALFORMED:
        body = check_problem(await caller(call, **{**BODIES[call], **changes}), 422, "malformed_call")
        assert body.get("field") == field, (call, changes, body)
        if field:
            assert f"“{field}”" in body["detail"]
    assert await site.db.pool.fetchval("select count(*) from collectors") == 0


async def test_a_body_that_is_no_object_is_told_so(caller):
    for raw in (b"", b"{", b"\xff\xfe", b"[]", b"null", b'"x"'):
        check_problem(await caller("wait", raw=raw), 422, "malformed_call")


async def test_a_body_above_the_limit_is_refused(caller):
    check_problem(await caller("wait", raw=b"x" * (BODY_BYTES_MOST + 1)), 413, "body_too_large")


@pytest.mark.parametrize("epoch", ["9999-12-31T23:59:59.999999-23:59", "0001-01-01T00:00:00+23:59"])
async def test_an_epoch_beyond_the_calendar_is_malformed(caller, epoch):
    body = check_problem(await caller("failure", **spoilt_lease(epoch=epoch)), 422, "malformed_call")
    assert body["field"] == "epoch"


async def test_a_client_that_leaves_in_mid_body_is_no_error_of_the_server(caller, capsys):
    sent = caller.client.base_url
    _, writer = await asyncio.open_connection(sent.host, sent.port)
    writer.write(
        b"POST /worker/v1/lease HTTP/1.1\r\nHost: x\r\nLastcall-Protocol: 2\r\nLastcall-Account: %b\r\n"
        b"Authorization: Bearer %b\r\nContent-Length: 500\r\n\r\n{"
        % (encode_id(caller.site.account.account_id).encode(), caller.site.account.key.encode())
    )
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await caller("hello", **BODIES["hello"])).status_code == 200
    assert "request_failed" not in "".join(capsys.readouterr())
