"""One test walks every route that agents call with their own key, in every wrong way. A route without a line here
fails it. The last case of each line is the right way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from litestar.routes import HTTPRoute
from tests.api.v1_kit import Api, Program, check, open_api

from lastcall.api.v1.api import PATH
from lastcall.db.database import Database
from lastcall.people.agent_grants import AgentGrant
from lastcall.testing.agents import let_in_agent


@dataclass(frozen=True)
class AgentLine:
    """What one route needs and answers. ``paused``: the answer while the agent or its club is paused."""

    grant: AgentGrant | None
    right: int
    paused: int = 409
    body: Any = None
    query: str = ""


NOBODY = "0" * 26
LINES: dict[str, AgentLine] = {
    "GET /agent": AgentLine(None, 200, paused=200),
    "POST /agent/costs": AgentLine(
        AgentGrant.REPORT_COSTS, 200, paused=200, body={"key": "call-1", "cents": "12.5"}
    ),
    "GET /agent/deliveries": AgentLine(None, 200),
    "POST /agent/deliveries/ack": AgentLine(None, 204, body={"ids": []}),
    "GET /agent/inbox": AgentLine(AgentGrant.READ_INBOX, 200),
    "GET /agent/events": AgentLine(AgentGrant.READ_EVENTS, 200),
    "GET /agent/approvals": AgentLine(AgentGrant.ASK, 200),
    "POST /agent/approvals": AgentLine(AgentGrant.ASK, 201, body={"type": "hire", "title": "Hire"}),
    "GET /agent/approvals/{approval_id}": AgentLine(AgentGrant.ASK, 404),
    "POST /agent/approvals/{approval_id}/resubmit": AgentLine(
        AgentGrant.ASK, 404, body={"seenRevision": 1, "title": "Hire two"}
    ),
    "POST /agent/approvals/{approval_id}/withdraw": AgentLine(AgentGrant.ASK, 404),
    "POST /agent/approvals/{approval_id}/comments": AgentLine(AgentGrant.ASK, 404, body={"body": "Please."}),
    "GET /agent/decisions": AgentLine(AgentGrant.ASK, 200),
    "POST /agent/decisions": AgentLine(
        AgentGrant.ASK,
        201,
        body={"title": "Which?", "options": [{"key": "a", "label": "A"}, {"key": "b", "label": "B"}]},
    ),
    "GET /agent/decisions/{decision_id}": AgentLine(AgentGrant.ASK, 404),
    "POST /agent/decisions/{decision_id}/cancel": AgentLine(AgentGrant.ASK, 404),
    "POST /agent/archive-proposals": AgentLine(
        AgentGrant.PROPOSE_ARCHIVE,
        404,
        body={"items": [{"kind": "join_request", "id": NOBODY, "retentionVersion": 0}]},
    ),
    "POST /agent/runs": AgentLine(
        AgentGrant.REPORT_RUNS,
        200,
        body={"key": "run-1", "thread": "door", "title": "Look", "status": "running"},
    ),
}
PUBLIC = {"POST /agent/join", "POST /agent/claim"}
"""Those that need no key yet: what an agent calls before it has one."""


def routes_of(api: Api) -> set[str]:
    found = set()
    for route in api.app.routes:
        path = route.path_format.removeprefix(PATH) if route.path_format.startswith(PATH) else ""
        if isinstance(route, HTTPRoute) and (path == "/agent" or path.startswith("/agent/")):
            found |= {f"{method} {path}" for method in route.methods - {"OPTIONS"}}
    return found


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    async with open_api(database) as api:
        yield api


async def agent(api: Api, *grants: AgentGrant) -> Program:
    _, key = await let_in_agent(api.world.db, api.world.club_id, api.world.actors["owner"].person_id, grants)
    return Program(api.client, key)


async def call(program: Program, key: str, line: AgentLine) -> Any:
    method, path = key.split(" ", 1)
    path = path.format(approval_id=NOBODY, decision_id=NOBODY)
    return await program(method, path + line.query, **({} if line.body is None else {"json": line.body}))


async def test_every_agent_route_answers_every_wrong_way_as_its_line_says(api: Api) -> None:
    assert routes_of(api) == set(LINES) | PUBLIC, "a route without a line, or a line without a route"
    pool, wrong = api.world.db.pool, []
    everything = await agent(api, *AgentGrant)
    others = {
        "no key": Program(api.client, None),
        "unknown key": Program(api.client, "lca_" + "x" * 43),
        "a person's token": await api.program("owner"),
    }
    ended = {name: await agent(api, *AgentGrant) for name in ("blocked", "revoked", "replaced")}
    bare, paused = await agent(api), await agent(api, *AgentGrant)
    agents = "from agent_keys k where k.key_hash = sha256($1) and (a.club_id, a.id) = (k.club_id, k.agent_id)"
    pause = "status = 'paused', pause_reason = 'manual', paused_at = lastcall_now()"
    for program, change in (
        (ended["blocked"], f"update agents a set status = 'blocked' {agents}"),
        (ended["revoked"], "update agent_keys set revoked_at = created_at where key_hash = sha256($1)"),
        (ended["replaced"], "update agent_keys set expires_at = created_at where key_hash = sha256($1)"),
        (paused, f"update agents a set {pause} {agents}"),
    ):
        await pool.execute(change, str(program.token).encode())
    for key, line in LINES.items():
        cases = {name: (program, 401) for name, program in (others | ended).items()}
        cases["paused"] = (paused, line.paused)
        if line.grant is not None:
            cases["without the grant"] = (bare, 403)
        cases["rightly"] = (everything, line.right)
        for name, (program, expected) in cases.items():
            answer = await call(program, key, line)
            if answer.status_code != expected:
                wrong.append(
                    f"{key}, {name}: {answer.status_code} instead of {expected}: {answer.text[:200]}"
                )
            elif expected >= 400:
                check(answer, expected, answer.json()["code"])
    assert not wrong, "\n".join(wrong)
