"""The MCP server over real HTTP, called by the official client as an agent's program does."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from tests.api.v1_kit import Api, check, serve_api
from tests.web.conftest import user

from lastcall.api.intake import BODY_LIMIT
from lastcall.api.mcp import endpoint
from lastcall.api.mcp.endpoint import McpEndpoint
from lastcall.api.mcp.server import TOOLS
from lastcall.cli.server import bind, running_server
from lastcall.db.database import Database
from lastcall.db.ids import decode_id, encode_id, new_id
from lastcall.events.listeners import EventChange, _listeners, on_event_change
from lastcall.people.scopes import Scope
from lastcall.settings import Settings

MODES = ["2026-07-28", "legacy"]
"""Both ways in which clients of today speak: each call for itself, and with a handshake before."""
NEXT_WEEK = (datetime.now(UTC) + timedelta(days=7)).replace(microsecond=0)
NIGHT = {
    "title": "Night",
    "zone": "Europe/Berlin",
    "time": {"kind": "timed", "startsAt": NEXT_WEEK.isoformat()},
}


@dataclass
class Served:
    """The whole application on a port, and agents of the world's people."""

    api: Api
    url: str
    http: httpx2.AsyncClient

    @contextlib.asynccontextmanager
    async def agent(
        self, name: str, scopes: list[Scope] | None = None, mode: str = MODES[0]
    ) -> AsyncIterator[Agent]:
        token = await self.api.token(name, scopes)
        async with httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=30
        ) as http:
            transport = streamable_http_client(f"{self.url}/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                yield Agent(client, self.api.club)

    async def post(self, token: str | None, **headers: str) -> httpx2.Response:
        """A call without the client: what stands before the tools answers it."""
        sent = {"Accept": "application/json, text/event-stream", **headers}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        return await self.http.post(f"{self.url}/mcp", json=call, headers=sent)


@dataclass
class Agent:
    client: Client
    club: str

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The answer of a call that works."""
        answer = await self.client.call_tool(tool, {"club": self.club} | arguments)
        assert not answer.is_error, answer.content
        found: dict[str, Any] = answer.structured_content
        return found

    async def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The problem document of a call that does not, whose sentence stands in the text as well."""
        answer = await self.client.call_tool(tool, {"club": self.club} | arguments)
        assert answer.is_error, answer.structured_content
        problem: dict[str, Any] = answer.structured_content
        assert problem["detail"] in answer.content[0].text
        assert problem["code"] in answer.content[0].text
        return problem


@pytest.fixture
async def served(database: Database) -> AsyncIterator[Served]:
    async with serve_api(database) as api:
        yield Served(api, api.url, api.client)


@pytest.mark.parametrize("mode", MODES)
async def test_an_agent_finds_its_way_from_the_clubs_to_a_queued_edited_and_cancelled_action(
    served: Served, mode: str
) -> None:
    async with served.agent("owner", mode=mode) as agent:
        listed = {tool.name for tool in (await agent.client.list_tools()).tools}
        assert listed == set(TOOLS)
        club = (await agent.client.call_tool("list_clubs", {})).structured_content["items"][0]["id"]
        assert club == agent.club
        told = await agent("forecast", kind="invite_member", count=2)
        assert (told["inTime"], told["missed"]) == (2, 0)
        payloads = [{"kind": "invite_member", "targetUserId": user(n)} for n in (1, 2)]
        asked: dict[str, Any] = {"requestId": "agent-request-1", "payloads": payloads}
        queued = await agent("enqueue", **asked)
        assert await agent("enqueue", **asked) == {**queued, "isReplay": True}
        found = await agent("list_operations", requestId=queued["id"])
        assert [one["id"] for one in found["items"]] == queued["operationIds"]
        first, second = queued["operationIds"]
        edited = await agent(
            "edit_operation",
            operationId=first,
            revision=1,
            payload={"kind": "invite_member", "targetUserId": user(3)},
            schedule={"kind": "fixed", "dueAt": NEXT_WEEK.isoformat()},
        )
        assert (edited["revision"], edited["payload"]["targetUserId"]) == (2, user(3))
        stale = await agent.refused("cancel_operation", operationId=first, revision=1)
        assert (stale["code"], stale["fresh"]["revision"]) == ("revision_stale", 2)
        assert (await agent("cancel_operation", operationId=second, revision=1))["state"] == "cancelled"
        assert await agent("cancel_request", requestId=queued["id"]) == {
            "id": queued["id"],
            "cancelled": 1,
            "left": 0,
        }
        told = await agent("explain_operation", operationId=first)
        assert (told["operation"]["state"], told["why"]) == ("cancelled", "Cancelled by staff")
        assert [one["what"] for one in told["timeline"]] == ["queued", "edited", "ended"]


@pytest.mark.clause("EVT-01")
async def test_events_that_agents_write_tell_the_same_listeners_as_pages_do(served: Served) -> None:
    changes: list[EventChange] = []

    async def heard(_: Any, change: EventChange) -> None:
        changes.append(change)

    on_event_change(heard)
    try:
        async with served.agent("owner") as agent:
            keyed = {**NIGHT, "idempotencyKey": "agent-event-1"}
            event = await agent("create_event", **keyed)
            assert await agent("create_event", **keyed) == event
            later = (NEXT_WEEK + timedelta(hours=1)).isoformat()
            moved = {**NIGHT, "description": "Later.", "time": {"kind": "timed", "startsAt": later}}
            edited = await agent("edit_event", eventId=event["id"], seen=event["revision"], **moved)
            stale = await agent.refused("edit_event", eventId=event["id"], seen=event["revision"], **moved)
            assert (stale["code"], stale["fresh"]["revision"]) == ("event_changed", edited["revision"])
            assert (await agent("cancel_event", eventId=event["id"]))["status"] == "cancelled"
            assert [one["id"] for one in (await agent("list_events"))["items"]] == [event["id"]]
    finally:
        _listeners.remove(heard)
    assert {change.event_id for change in changes} == {decode_id(event["id"])}
    assert [(change.is_moved, change.is_cancelled) for change in changes] == [
        (False, False),
        (True, False),
        (False, True),
    ]


async def test_a_tool_does_what_the_token_and_its_person_may_and_tells_nothing_of_other_clubs(
    served: Served,
) -> None:
    ban: dict[str, Any] = {
        "requestId": "agent-request-2",
        "payloads": [{"kind": "ban_member", "targetUserId": user(1)}],
    }
    async with served.agent("owner", [Scope.READ]) as reader:
        assert (await reader.refused("enqueue", **ban))["code"] == "scope_missing"
        assert (await reader.refused("create_event", **NIGHT))["code"] == "scope_missing"
        assert (await reader("list_operations"))["items"] == []
        assert (await reader.refused("list_operations", club=encode_id(new_id())))["status"] == 404
    async with served.agent("stranger") as stranger:
        for tool, arguments in (("list_operations", {}), ("enqueue", ban), ("create_event", NIGHT)):
            assert (await stranger.refused(tool, **arguments))["code"] == "club_unknown"
    async with served.agent("staff") as staff:
        for tool, arguments in (("enqueue", ban), ("create_event", NIGHT)):
            problem = await staff.refused(tool, **arguments)
            assert (problem["status"], problem["code"]) == (403, "permission_missing")


async def test_arguments_are_read_strictly_and_what_is_wrong_with_them_is_named(served: Served) -> None:
    async with served.agent("owner") as agent:
        for arguments, field in (
            ({"nobodyKnows": 1}, "nobodyKnows"),
            ({"limit": 0}, "limit"),
            ({"limit": "20"}, "limit"),
            ({"state": "asleep"}, "state"),
            ({"search": "a\0b"}, "search"),
            ({"club": None}, "club"),
        ):
            problem = await agent.refused("list_operations", **arguments)
            assert (problem["status"], problem["field"]) == (422, field)
        wrong = [{"kind": "ban_member", "targetUserId": "nobody"}]
        problem = await agent.refused("enqueue", requestId="agent-request-3", payloads=wrong)
        assert problem["field"] == "payloads.0.targetUserId"
        with pytest.raises(MCPError, match="no tool"):
            await agent.client.call_tool("dance", {})


def test_the_arguments_of_enqueue_say_what_each_kind_takes() -> None:
    schema = TOOLS["enqueue"].schema()
    kinds = {
        one["properties"]["kind"]["const"]: one for one in schema["properties"]["payloads"]["items"]["anyOf"]
    }
    assert len(kinds) == 16
    assert kinds["assign_role"]["required"] == ["kind", "targetUserId", "roleId"]
    assert schema["additionalProperties"] is False
    assert all(tool.schema()["type"] == "object" for tool in TOOLS.values())


async def test_only_a_token_is_an_identity_and_pages_of_other_sites_are_refused(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await served.api.token("owner", [Scope.READ])
    check(await served.post(None), 401, "token_missing")
    check(
        await served.post(None, Cookie=f"lastcall={served.api.world.sessions['owner']}"), 401, "token_missing"
    )
    refused = await served.post("lc_" + "x" * 43)
    check(refused, 401, "token_refused")
    assert refused.headers["www-authenticate"] == "Bearer"
    for origin in ("https://elsewhere.example", "null", f"{served.url}0"):
        check(await served.post(token, Origin=origin), 403, "origin_refused")
    for allowed in ({}, {"Origin": served.url}):
        answer = await served.post(token, **allowed)
        assert answer.status_code == 200, answer.text
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
    with monkeypatch.context() as twin:
        twin.setattr(McpEndpoint, "_check_origin", lambda *_: None)
        assert (await served.post(token, Origin="https://elsewhere.example")).status_code == 200
    pool = served.api.world.db.pool
    await pool.execute("update rate_limits set count = 600, ends_at = lastcall_now() + interval '42.5 s'")
    check(await served.post(token), 429, "too_fast")


async def test_a_method_a_form_or_a_size_that_it_does_not_take_is_told_as_such(served: Served) -> None:
    token = await served.api.token("owner", [Scope.READ])
    sent = {"Authorization": f"Bearer {token}"}
    for method in ("GET", "DELETE", "PUT"):
        answer = await served.http.request(method, f"{served.url}/mcp", headers=sent)
        check(answer, 405, "method_not_allowed")
        assert answer.headers["allow"] == "POST"
    large = b'{"a": "' + b"x" * BODY_LIMIT + b'"}'
    check(await served.http.post(f"{served.url}/mcp", content=large, headers=sent), 413, "body_too_large")

    async def unannounced() -> AsyncIterator[bytes]:
        yield large

    streamed = await served.http.post(
        f"{served.url}/mcp",
        content=unannounced(),
        headers={**sent, "Content-Type": "application/json", "Accept": "application/json"},
    )
    assert streamed.status_code == 413
    for body in (b"", b"{", b"[]", b"null", b'{"jsonrpc": "2.0", "id": 1, "method": 5}', b"[" * 100_000):
        answer = await served.http.post(
            f"{served.url}/mcp",
            content=body,
            headers={**sent, "Content-Type": "application/json", "Accept": "application/json"},
        )
        assert answer.status_code == 400, (body[:20], answer.text)


async def test_without_the_extra_the_server_starts_and_says_what_is_missing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "find_spec", lambda _: None)
    taken = bind("127.0.0.1", 0)
    url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    async with (
        running_server(Settings(public_url=url), database, taken=taken),
        httpx2.AsyncClient(trust_env=False, timeout=30) as http,
    ):
        told = check(await http.post(f"{url}/mcp", json={}), 501, "mcp_not_installed")
        assert "“mcp”" in told["advice"]
        assert (await http.get(f"{url}/sign-in")).status_code == 200
