"""What a call must look like, whatever it is about: identity, form, sizes, methods."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from tests.api.v1_kit import Api, check, open_api
from tests.web.conftest import user

from lastcall.api.v1.requests import BODY_BYTES_MOST, read_body
from lastcall.api.v1.shapes import Input
from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id
from lastcall.errors import Invalid
from lastcall.people.scopes import Scope
from lastcall.settings import Settings


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    async with open_api(database) as api:
        yield api


async def test_only_a_token_is_an_identity_and_all_that_are_none_are_told_alike(api: Api) -> None:
    world, nobody = api.world, await api.program(None)
    body = check(await nobody("GET", "/me"), 401, "token_missing")
    assert "lc_" in body["advice"]
    cookie = {"Cookie": f"lastcall={world.sessions['owner']}"}
    check(await nobody("GET", "/me", headers=cookie), 401, "token_missing")
    for authorization in ("Basic bGNfOg==", "Bearer", "Bearer  ", "lc_x", "\xff"):
        sent = {"Authorization": authorization.encode("latin-1")}
        check(await nobody("GET", "/me", headers=sent), 401, "token_missing")
    good = await api.program("owner", [Scope.READ])
    assert (await good("GET", "/me")).json() == {
        "id": encode_id(world.actors["owner"].person_id),
        "displayName": "Owner",
        "isOperator": False,
        "scopes": ["read"],
    }
    # A session's token is none of the API's either.
    for wrong in ("lc_" + "x" * 43, good.token + "x", good.token.swapcase(), world.sessions["owner"], "\xe9"):
        answer = await nobody("GET", "/me", headers={"Authorization": f"Bearer {wrong}".encode("latin-1")})
        check(answer, 401, "token_refused")
        assert answer.headers["www-authenticate"] == "Bearer"
    for ended in (
        "update api_tokens set expires_at = lastcall_now() where revoked_at is null",
        "update people set blocked_at = lastcall_now()",
    ):
        program = await api.program("owner")
        await world.db.pool.execute(ended)
        check(await program("GET", "/me"), 401, "token_refused")


async def test_a_method_a_form_or_a_size_that_an_address_does_not_take_is_told_as_such(api: Api) -> None:
    owner = await api.program("owner")
    requests = f"/clubs/{api.club}/requests"
    wrong = await owner("PUT", "/me")
    check(wrong, 405, "method_not_allowed")
    assert wrong.headers["allow"] == "GET, HEAD, OPTIONS"
    options = await (await api.program(None))("OPTIONS", "/me")
    assert (options.status_code, options.content) == (204, b"")
    get, head = await owner("GET", "/me"), await owner("HEAD", "/me")
    assert (head.status_code, head.content) == (200, b"")
    assert dict(head.headers) == dict(get.headers)
    check(await owner("GET", "/nowhere"), 404, "not_found")
    check(await owner("GET", "/me", headers={"Accept": "text/html"}), 406, "not_acceptable")
    for accepted in ("*/*", "application/*", "text/html, */*;q=0.1", ""):
        assert (await owner("GET", "/me", headers={"Accept": accepted})).status_code == 200
    for form in ("text/plain", "application/x-www-form-urlencoded", "application/msgpack", "", "\xff"):
        answer = await owner(
            "POST", requests, content=b"{}", headers={"Content-Type": form.encode("latin-1")}
        )
        check(answer, 415, "not_json")
    check(await owner("POST", requests), 422, "body_missing")
    large = b'{"requestId": "' + b"x" * BODY_BYTES_MOST + b'"}'
    check(
        await owner("POST", requests, content=large, headers={"Content-Type": "application/json"}),
        413,
        "body_too_large",
    )
    for path, field in (
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("limit=1e3", "limit"),
    ):
        body = check(await owner("GET", f"/clubs/{api.club}/operations?{path}"), 422, "malformed_request")
        assert body["field"] == field
        assert body["errors"][0]["field"] == field
    several = check(
        await owner("GET", f"/clubs/{api.club}/operations?limit=0&cursor={'x' * 200}"),
        422,
        "malformed_request",
    )
    assert {each["field"] for each in several["errors"]} == {"limit", "cursor"}
    for path in ("kind=%00", "kind=a%00b", "%00=1"):
        check(await owner("GET", f"/clubs/{api.club}/operations?{path}"), 422, "zero_character")
    check(await owner("GET", f"/clubs/{api.club}/operations?kind=%ed%a0%80"), 422, "kind_unknown")
    for club in ("%00", "%ed%a0%80", "a" * 10_000, "..%2f..", "💥", encode_id(new_id())):
        assert (await owner("GET", f"/clubs/{club}/operations")).status_code == 404


async def test_a_token_that_calls_too_fast_is_told_when_to_come_again_and_no_other_is_held_up(
    api: Api,
) -> None:
    pool = api.world.db.pool
    fast, other = await api.program("owner"), await api.program("owner")
    assert (await fast("GET", "/me")).status_code == 200
    await pool.execute("update rate_limits set count = 600, ends_at = lastcall_now() + interval '42.5 s'")
    answer = await fast("GET", "/me")
    check(answer, 429, "too_fast")
    assert 40 <= int(answer.headers["retry-after"]) <= 43
    assert (await other("GET", "/me")).status_code == 200
    await pool.execute("update rate_limits set ends_at = lastcall_now() where count = 600")
    assert (await fast("GET", "/me")).status_code == 200
    assert (
        await pool.fetchval(
            "select count(*) from rate_limits where key_hash = sha256($1)", fast.token.encode()
        )
        == 0
    )


class Sent(Input, frozen=True):
    name: str
    number: int = 0
    more: dict[str, Any] = msgspec.field(default_factory=dict)


MALFORMED: list[tuple[bytes, str, str | None]] = [
    (b"", "malformed_request", None),
    (b"{", "malformed_request", None),
    (b"[]", "malformed_request", None),
    (b"null", "malformed_request", None),
    (b'\xef\xbb\xbf{"name": "bom"}', "malformed_request", None),
    (b'{"name": "\xff"}', "malformed_request", None),
    (b'{"name": "\xed\xa0\x80"}', "malformed_request", None),
    (b'{"name": "\\ud800"}', "malformed_request", None),
    (b'{"name": "a", "number": NaN}', "malformed_request", None),
    (b'{"name": "a", "number": 1e400}', "malformed_request", "number"),
    (b'{"name": "a", "number": ' + b"9" * 5000 + b"}", "malformed_request", "number"),
    (b'{"name": "a", "number": "1"}', "malformed_request", "number"),
    (b'{"name": "a", "number": true}', "malformed_request", "number"),
    (b'{"name": 1}', "malformed_request", "name"),
    (b'{"number": 1}', "malformed_request", None),
    (b'{"name": "a", "nmae": "b"}', "malformed_request", "nmae"),
    (b'{"name": "a", "more": {"deep": ' + b"[" * 5000 + b"]" * 5000 + b"}}", "malformed_request", None),
    (b'{"name": "a", "name": "b"}', "field_repeated", "name"),
    (b'{"name": "a", "more": {"x": 1, "x": 2}}', "field_repeated", "x"),
    (b'{"name": "a\\u0000b"}', "zero_character", "name"),
    (b'{"name": "a", "more": {"x": ["\\u0000"]}}', "zero_character", "more.x.0"),
    (b'{"name": "a", "more": {"\\u0000": 1}}', "zero_character", "more"),
]


@pytest.mark.parametrize(("body", "code", "field"), MALFORMED)
def test_a_body_is_read_strictly_and_what_is_wrong_with_it_is_named(body, code, field) -> None:
    with pytest.raises(Invalid) as caught:
        read_body(body, Sent)
    assert (caught.value.code, caught.value.field) == (code, field)
    assert caught.value.sentence.endswith(".")


def test_a_body_that_fits_is_read_whatever_it_says() -> None:
    read = read_body('{"name": "\\\\u0000 \\ud83d\\ude00 é", "number": -5}'.encode(), Sent)
    assert (read.name, read.number) == ("\\u0000 😀 é", -5)


async def test_pages_tile_a_list_whose_rows_share_a_moment_and_differ_by_a_microsecond(api: Api) -> None:
    world, owner = api.world, await api.program("owner")
    queued = await world.queue("invite_member", range(1, 12))
    await world.db.pool.execute(
        "update operations set due_at = timestamptz '2030-01-01' + (position / 3) * interval '1 us',"
        " ready_at = timestamptz '2030-01-01' + (position / 3) * interval '1 us'"
    )
    seen: list[str] = []
    cursor = ""
    for _ in range(20):
        path = f"/clubs/{api.club}/operations?limit=2{cursor}"
        page = (await owner("GET", path)).json()
        seen += [item["id"] for item in page["items"]]
        assert len(page["items"]) <= 2
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert seen == [encode_id(each) for each in queued.operation_ids]
    first = (await owner("GET", f"/clubs/{api.club}/operations?limit=4")).json()
    assert first["items"][3]["dueAt"] == "2030-01-01T00:00:00.000001Z"
    other = check(
        await owner("GET", f"/clubs/{api.club}/operations/history?cursor={first['next']}"),
        422,
        "cursor_invalid",
    )
    assert other["field"] == "cursor"


async def test_the_last_page_of_invites_says_that_it_is_the_last_also_when_it_is_full(api: Api) -> None:
    owner, invites = await api.program("owner"), f"/clubs/{api.club}/invites"
    made = [
        (await owner("POST", invites, json={"roleIds": [await api.role()]})).json()["id"] for _ in range(2)
    ]
    first = (await owner("GET", f"{invites}?limit=1")).json()
    last = (await owner("GET", f"{invites}?limit=1&cursor={first['next']}")).json()
    assert [page["items"][0]["id"] for page in (first, last)] == made[::-1]
    assert last["next"] is None


async def test_what_was_queued_over_the_api_is_seen_and_cancelled_and_a_conflict_shows_the_fresh_row(
    api: Api,
) -> None:
    owner = await api.program("owner")
    sent = {
        "requestId": encode_id(new_id()),
        "payloads": [{"kind": "ban_member", "targetUserId": user(3)}],
        "schedule": {"kind": "fixed", "dueAt": "2099-01-01T00:00:00Z"},
    }
    requests = f"/clubs/{api.club}/requests"
    far = check(await owner("POST", requests, json=sent), 422, "time_too_far")
    assert far["field"] == "schedule.dueAt"
    for beyond in ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999-23:59", "2026-01-01T00:00:00"):
        schedule = {"kind": "fixed", "dueAt": beyond}
        assert (await owner("POST", requests, json={**sent, "schedule": schedule})).status_code == 422
    sent["schedule"] = {"kind": "immediate"}
    made = (await owner("POST", requests, json=sent)).json()
    assert (await owner("POST", requests, json=sent)).json() == {**made, "isReplay": True}
    reader = await api.program("owner", [Scope.READ])
    check(await reader("POST", requests, json=sent), 403, "scope_missing")
    shown = (await reader("GET", f"/clubs/{api.club}/requests/{made['id']}")).json()
    assert [each["id"] for each in shown["operations"]] == made["operationIds"]
    path = f"/clubs/{api.club}/operations/{made['operationIds'][0]}"
    assert (await reader("GET", path)).json() == shown["operations"][0]
    body = check(await owner("POST", f"{path}/cancel", json={"revision": 2}), 409, "revision_stale")
    assert body["fresh"] == shown["operations"][0]
    assert (await owner("POST", f"{path}/cancel", json={"revision": 1})).json()["state"] == "cancelled"
    assert [
        each["id"] for each in (await reader("GET", f"/clubs/{api.club}/operations/history")).json()["items"]
    ]


async def test_of_two_who_edit_one_role_one_wins_and_the_other_is_shown_the_fresh_row(api: Api) -> None:
    owner, other = await api.program("owner"), await api.program("owner")
    path = f"/clubs/{api.club}/roles/{await api.role()}"
    role = (await owner("GET", path)).json()
    edit = {
        name: role[name] for name in ("description", "permissions", "assignableRoleIds", "providerRoleIds")
    }
    edit["seen"] = role["updatedAt"]
    one, two = await asyncio.gather(
        owner("PUT", path, json={**edit, "name": "One"}), other("PUT", path, json={**edit, "name": "Two"})
    )
    won, lost = (one, two) if one.status_code == 200 else (two, one)
    fresh = check(lost, 409, "role_moved")["fresh"]
    assert fresh == won.json() == (await owner("GET", path)).json()
    assert fresh["updatedAt"] > role["updatedAt"]


async def test_what_needs_the_person_themself_is_refused_to_every_token(api: Api) -> None:
    """A stop is thrown with a token and lifted by a person in a browser."""
    operator, pool = await api.program("operator"), api.world.db.pool
    assert (await operator("PUT", "/operator/fleet/stop", json={"isStopped": True})).status_code == 204
    account = f"/operator/accounts/{encode_id(api.world.key.account_id)}/stop"
    connection = f"/clubs/{api.club}/connections/{encode_id(api.world.connection_id)}/stop"
    for path in ("/operator/fleet/stop", account, connection):
        check(await operator("PUT", path, json={"isStopped": False}), 403, "browser_needed")
    assert await pool.fetchval("select kill_switch from fleet_settings")


async def test_an_export_begins_only_for_those_who_may_and_is_whole(api: Api) -> None:
    owner, staff = await api.program("owner"), await api.program("staff")
    check(await staff("GET", f"/clubs/{api.club}/export"), 403, "owner_only")
    check(await staff("GET", f"/clubs/{api.club}/activity.csv"), 403, "permission_missing")
    lines = (await owner("GET", f"/clubs/{api.club}/export")).text.splitlines()
    assert {"clubs", "staff_roles", "connections"} <= {json.loads(line)["table"] for line in lines}
    own = await owner("GET", "/me/export")
    assert own.headers["content-type"].startswith("application/x-ndjson")
    assert "owner@example.org" in own.text
    assert owner.token not in own.text
    log = await owner("GET", f"/clubs/{api.club}/activity.csv?family=club")
    assert log.headers["content-type"].startswith("text/csv")
    shown = (await owner("GET", f"/clubs/{api.club}/activity?family=club&limit=100")).json()["items"]
    assert len(log.text.splitlines()) == len(shown) + 1


async def test_an_invite_over_the_api_is_mailed_and_its_maker_hears_that_it_was_accepted(
    database: Database,
) -> None:
    # Nothing sends in this process: a mail's row is written with what it tells of.
    settings = Settings(mail_url="smtp://localhost", mail_from="Lastcall <lastcall@club.example>")
    async with open_api(database, settings) as api:
        owner, operator = await api.program("owner"), await api.program("operator")
        invite = {"roleIds": [await api.role()], "email": "operator@example.org"}
        await database.pool.execute("update people set email_verified_at = lastcall_now()")
        made = (await owner("POST", f"/clubs/{api.club}/invites", json=invite)).json()
        accepted = await operator("POST", "/invites/accept", json={"token": made["token"]})
        assert accepted.json()["status"] == "approved", accepted.text
        sent = await database.pool.fetch("select kind, address from outgoing_mail order by id")
    assert [tuple(row) for row in sent if row["kind"] != "api_token_created"] == [
        ("invite", "operator@example.org"),
        ("invite_accepted", "owner@example.org"),
    ]
