"""A club's door by API and by MCP: invites of every kind, who used them, and decisions one by one and many at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.api.test_mcp import served  # the application on a port, for an official client
from tests.api.v1_kit import Api, check, open_api

from lastcall.access.acceptance import accept_invite_as_agent
from lastcall.access.requests import AgentSubject
from lastcall.db.database import Database

__all__ = ["served"]


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    async with open_api(database) as api:
        yield api


async def test_an_invite_says_whom_it_is_for_how_long_and_how_often(api: Api) -> None:
    owner, guest = await api.program("owner"), await api.program("stranger")
    invites = f"/clubs/{api.club}/invites"
    role = await api.role()
    several = {"roleIds": [role], "maxUses": 3, "lifeHours": 24, "approves": False}
    made = (await owner("POST", invites, json=several)).json()
    for wrong in (
        {**several, "maxUses": 101},
        {**several, "lifeHours": 721},
        {**several, "email": "x@example.org"},
        {"roleIds": []},
    ):
        assert (await owner("POST", invites, json=wrong)).status_code == 422, wrong
    accepted = [
        (await guest("POST", "/invites/accept", json={"token": made["token"]})).json() for _ in range(2)
    ]
    assert accepted[0] == accepted[1]
    one = (await owner("GET", f"{invites}/{made['id']}")).json()
    assert (one["kind"], one["state"], one["uses"], one["maxUses"]) == ("person", "open", 1, 3)
    (use,) = (await owner("GET", f"{invites}/{made['id']}/uses")).json()["items"]
    assert (use["name"], use["status"]) == ("Stranger", "pending_approval")
    assert use["joinRequestId"] == accepted[0]["joinRequestId"]
    again = (await owner("POST", f"{invites}/{made['id']}/renew")).json()
    assert again["token"] not in {None, made["token"]}
    listed = {
        state: [row["id"] for row in (await owner("GET", f"{invites}?state={state}")).json()["items"]]
        for state in ("open", "revoked", "used_up", "expired")
    }
    assert listed == {"open": [again["id"]], "revoked": [made["id"]], "used_up": [], "expired": []}
    assert (await owner("POST", f"{invites}/revoke")).json() == {"revoked": 1}
    assert (await owner("GET", f"{invites}?state=old")).status_code == 422


async def test_requests_are_decided_many_at_once_shown_and_deleted(api: Api) -> None:
    owner, guest = await api.program("owner"), await api.program("stranger")
    requests = f"/clubs/{api.club}/join-requests"
    agents = {"kind": "agent", "agentGrants": ["ask", "report_runs"], "maxUses": 5}
    made = (await owner("POST", f"/clubs/{api.club}/invites", json=agents)).json()
    for name in ("A", "B", "C"):
        await accept_invite_as_agent(api.world.db, made["token"], AgentSubject(name))
    rows = (await owner("GET", f"{requests}?status=pending_approval")).json()["items"]
    ids = [row["id"] for row in rows]
    assert [(row["agentName"], row["agentGrants"]) for row in rows][-1] == ("A", ["ask", "report_runs"])
    beyond = {"agentGrants": ["report_costs"]}
    check(await owner("POST", f"{requests}/{ids[0]}/approve", json=beyond), 422, "grants_beyond_invite")
    approval = {"agentGrants": ["ask"], "note": "Welcome."}
    assert (await owner("POST", f"{requests}/{ids[0]}/approve", json=approval)).status_code == 204
    decided = await owner("POST", f"{requests}/decide", json={"verdict": "reject", "ids": ids})
    codes = [one["refusal"] and one["refusal"]["code"] for one in decided.json()["items"]]
    assert codes == ["request_decided", None, None]
    check(await owner("DELETE", f"{requests}/{ids[0]}"), 409, "request_approved")
    assert (await owner("DELETE", f"{requests}/{ids[1]}")).status_code == 204
    check(await owner("GET", f"{requests}/{ids[1]}"), 404, "join_request_unknown")
    asked = {"roleIds": [await api.role()], "approves": False}
    token = (await owner("POST", f"/clubs/{api.club}/invites", json=asked)).json()["token"]
    await guest("POST", "/invites/accept", json={"token": token})
    (own,) = (await guest("GET", "/me/join-requests")).json()["items"]
    assert (own["clubName"], own["status"]) == ("Night Shift", "pending_approval")
    assert (await owner("GET", "/me/join-requests")).json() == {"items": [], "next": None}


async def test_an_agents_program_decides_what_its_person_may_decide(served: Any) -> None:
    owner = await served.api.program("owner")
    agents = {"kind": "agent", "agentGrants": ["ask", "report_runs"], "maxUses": 5}
    made = (await owner("POST", f"/clubs/{served.api.club}/invites", json=agents)).json()
    for name in ("A", "B", "C"):
        await accept_invite_as_agent(served.api.world.db, made["token"], AgentSubject(name))
    async with served.agent("owner") as tools:
        waiting = (await tools("list_join_requests"))["items"]
        first, *others = [row["id"] for row in waiting]
        approved = await tools("approve_join_request", requestId=first, agentGrants=["ask"])
        assert (approved["id"], approved["status"]) == (first, "approved")
        refused = await tools.refused("approve_join_request", requestId=first)
        assert refused["code"] == "request_decided"
        outcomes = (await tools("reject_join_requests", requestIds=[first, *others], note="Not now."))[
            "items"
        ]
        assert [one["refusal"] is None for one in outcomes] == [False, True, True]
        assert (await tools("list_join_requests"))["items"] == []
    async with served.agent("staff") as tools:
        assert (await tools.refused("list_join_requests"))["code"] == "join_request_unknown"
    granted = await served.api.world.db.pool.fetch("select grants from agents")
    assert [row["grants"] for row in granted] == [["ask"]]
