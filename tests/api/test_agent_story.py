"""An agent from its invitation to its first calls, over the API and over MCP, as its program makes them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from tests.api.v1_kit import Api, Program, check, open_api, serve_api

from lastcall.access.invites import InviteKind, create_invite
from lastcall.access.limits import AGENT_CLAIMS, AGENT_JOINS
from lastcall.api.mcp.server import AGENT_TOOLS
from lastcall.db.database import Database
from lastcall.events.fields import EventFields
from lastcall.events.queries import Publication
from lastcall.events.services.write import create_event
from lastcall.events.times import TimeTba
from lastcall.people.agent_grants import AgentGrant
from lastcall.testing.agents import let_in_agent


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    async with open_api(database) as api:
        yield api


async def joined(api: Api) -> dict[str, Any]:
    world = api.world
    invite = await create_invite(
        world.db,
        world.actors["owner"],
        world.club_id,
        (),
        kind=InviteKind.AGENT,
        agent_grants=[AgentGrant.READ_EVENTS, AgentGrant.ASK],
    )
    nobody = Program(api.client, None)
    answer = await nobody("POST", "/agent/join", json={"token": invite.token, "name": "Robot"})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    # Once more, with the secret: the same request.
    again = {"token": invite.token, "name": "Robot", "claimSecret": found["claimSecret"]}
    assert (await nobody("POST", "/agent/join", json=again)).json() == {**found, "claimSecret": None}
    return found


async def test_an_agent_asks_is_let_in_claims_its_key_and_reads_what_it_may(api: Api) -> None:
    asked = await joined(api)
    nobody, owner = Program(api.client, None), await api.program("owner")
    claim = {name: asked[name] for name in ("clubId", "joinRequestId", "claimSecret")}
    check(await nobody("POST", "/agent/claim", json=claim), 409, "request_pending")
    approve = f"/clubs/{api.club}/join-requests/{asked['joinRequestId']}/approve"
    assert (await owner("POST", approve, json={"agentGrants": ["read_events"]})).status_code == 204
    wrong = claim | {"claimSecret": "lcc_" + "x" * 43}
    check(await nobody("POST", "/agent/claim", json=wrong), 403, "claim_secret_wrong")
    made = await nobody("POST", "/agent/claim", json=claim)
    assert made.status_code == 200, made.text
    check(await nobody("POST", "/agent/claim", json=claim), 409, "key_claimed")

    robot = Program(api.client, made.json()["key"])
    own = (await robot("GET", "/agent")).json()
    assert (own["name"], own["clubId"], own["grants"]) == ("Robot", api.club, ["read_events"])
    assert own["budgets"] == []
    much = {"agentId": None, "period": "month", "cents": "9999999999"}
    refused = await owner("PUT", f"/clubs/{api.club}/budgets", json=much)
    check(refused, 422, "amount_malformed")
    assert refused.json()["field"] in much
    budget = {"agentId": own["id"], "period": "month", "cents": "12.5", "hardStop": True}
    assert (await owner("PUT", f"/clubs/{api.club}/budgets", json=budget)).status_code == 200
    assert (await robot("GET", "/agent")).json()["budgets"] == [
        {"period": "month", "cents": "12.5", "spent": "0", "hardStop": True}
    ]
    for title, publication in (("Opening", Publication.PUBLISHED), ("Secret", Publication.DRAFT)):
        fields = EventFields(title, TimeTba(), "UTC")
        await create_event(
            api.world.db, api.world.actors["owner"], api.world.club_id, fields, publication=publication
        )
    shown = (await robot("GET", "/agent/events")).json()
    assert [event["title"] for event in shown["items"]] == ["Opening"]
    check(await robot("GET", f"/clubs/{api.club}/events"), 401, "token_missing")
    check(await owner("GET", "/agent"), 401, "agent_key_missing")
    agents = (await owner("GET", f"/clubs/{api.club}/agents")).json()["items"]
    assert [(one["id"], one["responsible"]) for one in agents] == [(own["id"], "Owner")]


async def test_joining_and_claiming_are_limited_by_source(api: Api) -> None:
    nobody = Program(api.client, None)
    join = {"token": "x" * 43, "name": "Robot"}
    claim = {"clubId": api.club, "joinRequestId": api.club, "claimSecret": "lcc_" + "x" * 43}
    for path, body, limit, code in (
        ("/agent/join", join, AGENT_JOINS, "invite_unknown"),
        ("/agent/claim", claim, AGENT_CLAIMS, "join_request_unknown"),
    ):
        check(await nobody("POST", path, json=body), 404, code)
        await api.world.db.pool.execute(
            "update rate_limits set count = $1 where name = $2", limit.count, limit.name
        )
        answer = await nobody("POST", path, json=body)
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) > 0


async def test_mcp_tells_an_agent_only_of_what_it_was_given(database: Database) -> None:
    async with serve_api(database) as api:
        owner = api.world.actors["owner"].person_id
        for grants in ([], [AgentGrant.READ_EVENTS], list(AgentGrant)):
            _, key = await let_in_agent(api.world.db, api.world.club_id, owner, grants)
            headers = {"Authorization": f"Bearer {key}"}
            async with (
                httpx2.AsyncClient(headers=headers, trust_env=False, timeout=30) as http,
                Client(streamable_http_client(f"{api.url}/mcp", http_client=http)) as client,
            ):
                told = {tool.name for tool in (await client.list_tools()).tools}
                assert told == {
                    name for name, tool in AGENT_TOOLS.items() if tool.grant is None or tool.grant in grants
                }
                answer = await client.call_tool("who_am_i", {})
                assert answer.structured_content is not None
                assert answer.structured_content["grants"] == [
                    one.value for one in AgentGrant if one in grants
                ]
                # What is a person's, and what it was not given, is not there.
                for name in ("enqueue", *(set(AGENT_TOOLS) - told)):
                    with pytest.raises(MCPError, match="no tool"):
                        await client.call_tool(name, {})
