"""One test walks every route of the API in every wrong way. A route without a line here fails it. Agents' own routes
are walked in ``test_agent_routes.py``.

The last case of each line is the right way, so that the others are refused for what they say and not for a slip.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from litestar.routes import HTTPRoute
from tests.api.v1_kit import Api, Program, check, open_api
from tests.api.v1_things import CALENDAR, POST, WORLD_ID, things
from tests.web.conftest import user

from lastcall.api.v1.api import PATH
from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id
from lastcall.people.scopes import Scope
from lastcall.testing.agents import let_in_agent

NOBODY = "0" * 26
PUBLIC = "GET /openapi.json"
OF_AGENTS = "/agent"


@dataclass(frozen=True)
class Line:
    """What one route answers, and to whom it says yes.

    ``needs`` is the scope. ``other``: somebody of another club; ``lacking``: staff of the club without any
    permission, or for operators' routes somebody who is none; ``unknown``: an id that nobody has. ``None``: the
    case cannot arise.
    """

    needs: Scope | None
    right: int
    lacking: int | None = 403
    other: int | None = 404
    unknown: int | None = 404
    who: str = "owner"
    body: Any = None
    query: str = ""


READ, ACCOUNT, STAFF = Scope.READ, Scope.ACCOUNT, Scope.STAFF
CLUBS, ACCESS, OPERATIONS, EVENTS = Scope.CLUBS, Scope.ACCESS, Scope.OPERATIONS, Scope.EVENTS
OWN: dict[str, Any] = {"lacking": None, "other": None}
OPERATOR: dict[str, Any] = {"needs": Scope.OPERATOR, "who": "operator", "other": 403}
ROLE = {"name": "Door", "description": "", "permissions": [], "assignableRoleIds": [], "providerRoleIds": []}
SETTINGS = {"name": "Night Shift", "slug": "night-shift", "zone": "UTC", "retentionDays": 90}
ONE_BAN = {"requestId": "walk-request-1", "payloads": [{"kind": "ban_member", "targetUserId": user(1)}]}
EVENT = {"title": "Night", "zone": "UTC", "time": {"kind": "date_only", "date": "2030-01-01"}}
ACCOUNT_LIMITS = {"requestsPerMinute": 6, "writesPerDay": 500, "capacity": 40, "reservedHeadroom": 4}
DECISIONS = Scope.DECISIONS
HIDDEN: dict[str, Any] = {"needs": DECISIONS, "lacking": 404}
NEW_APPROVAL = {"type": "hire", "title": "Hire a host"}
NEW_DECISION = {"title": "Which?", "options": [{"key": "a", "label": "A"}, {"key": "b", "label": "B"}]}
KEEP_ONE = {"items": [{"kind": "join_request", "id": "{join_request_id}", "version": 0}]}
DISMISS_ONE = {"items": [{"kind": "join_request", "id": "{join_request_id}"}]}
SEEN = "{seen}"
"""The ``updatedAt`` of the thing in the address, as the walk reads it just before."""

LINES: dict[str, Line] = {
    "GET /me": Line(None, 200, unknown=None, **OWN),
    "GET /me/sessions": Line(READ, 200, unknown=None, **OWN),
    "DELETE /me/sessions/{session_id}": Line(ACCOUNT, 204, **OWN),
    "DELETE /me/sessions": Line(ACCOUNT, 200, unknown=None, **OWN),
    "GET /me/tokens": Line(READ, 200, unknown=None, **OWN),
    "DELETE /me/tokens/{token_id}": Line(ACCOUNT, 204, **OWN),
    "GET /me/export": Line(ACCOUNT, 200, unknown=None, **OWN),
    "GET /clock": Line(READ, 200, unknown=None, query=f"?nonce={'n' * 16}", **OWN),
    "GET /clubs": Line(READ, 200, unknown=None, **OWN),
    "GET /clubs/{club}": Line(READ, 200, lacking=200),
    "GET /clubs/{club}/settings": Line(READ, 200),
    "PUT /clubs/{club}/settings": Line(CLUBS, 200, body={**SETTINGS, "seen": SEEN}),
    "POST /clubs/{club}/pause": Line(CLUBS, 200),
    "POST /clubs/{club}/resume": Line(CLUBS, 200),
    "POST /clubs/{club}/unarchive": Line(CLUBS, 409),
    "GET /clubs/{club}/export": Line(CLUBS, 200),
    "GET /clubs/{club}/roles": Line(READ, 200),
    "GET /clubs/{club}/roles/{role_id}": Line(READ, 200),
    "POST /clubs/{club}/roles": Line(STAFF, 201, body=ROLE),
    "PUT /clubs/{club}/roles/{role_id}": Line(STAFF, 200, body={**ROLE, "seen": SEEN}),
    "GET /clubs/{club}/staff": Line(READ, 200),
    "PUT /clubs/{club}/staff/{person_id}/roles/{role_id}": Line(STAFF, 204),
    "DELETE /clubs/{club}/staff/{person_id}/roles/{role_id}": Line(STAFF, 204),
    "GET /clubs/{club}/invites": Line(READ, 200),
    "POST /clubs/{club}/invites": Line(ACCESS, 201, body={"roleIds": ["{role_id}"]}),
    "GET /clubs/{club}/invites/{invite_id}": Line(READ, 200),
    "GET /clubs/{club}/invites/{invite_id}/uses": Line(READ, 200),
    "POST /clubs/{club}/invites/{invite_id}/renew": Line(ACCESS, 201),
    "DELETE /clubs/{club}/invites/{invite_id}": Line(ACCESS, 204),
    "POST /invites/accept": Line(
        ACCESS, 200, unknown=None, who="operator", body={"token": "{invite_token}"}, **OWN
    ),
    "POST /clubs/{club}/invites/revoke": Line(ACCESS, 200),
    "GET /me/join-requests": Line(READ, 200, unknown=None, **OWN),
    "GET /clubs/{club}/join-requests": Line(READ, 200, lacking=404),
    "GET /clubs/{club}/join-requests/{join_request_id}": Line(READ, 200, lacking=404),
    "POST /clubs/{club}/join-requests/{join_request_id}/approve": Line(ACCESS, 204, lacking=404, body={}),
    "POST /clubs/{club}/join-requests/{join_request_id}/reject": Line(ACCESS, 409, lacking=404, body={}),
    "POST /clubs/{club}/join-requests/decide": Line(
        ACCESS, 200, lacking=404, body={"verdict": "reject", "ids": ["{join_request_id}"]}
    ),
    # It was approved, and stays as the record of that.
    "DELETE /clubs/{club}/join-requests/{join_request_id}": Line(ACCESS, 409, lacking=404),
    "POST /clubs/{club}/join-requests/{join_request_id}/withdraw": Line(
        ACCESS, 409, lacking=404, who="guest"
    ),
    "GET /inbox": Line(READ, 200, unknown=None, **OWN),
    "GET /clubs/{club}/inbox": Line(READ, 200, lacking=200),
    "POST /clubs/{club}/inbox/{sight}": Line(ACCESS, 200, lacking=200, body=DISMISS_ONE),
    "GET /clubs/{club}/retention/{item_kind}/{retained_id}": Line(READ, 200, lacking=404),
    "POST /clubs/{club}/retention/{control}": Line(ACCESS, 200, lacking=200, body=KEEP_ONE),
    "GET /clubs/{club}/approvals": Line(READ, 200, lacking=404),
    "POST /clubs/{club}/approvals": Line(DECISIONS, 201, lacking=201, body=NEW_APPROVAL),
    "GET /clubs/{club}/approvals/{approval_id}": Line(READ, 200, lacking=404),
    "POST /clubs/{club}/approvals/{approval_id}/request-revision": Line(
        right=204, body={"seenRevision": 1, "note": "Say more."}, **HIDDEN
    ),
    "POST /clubs/{club}/approvals/{approval_id}/comments": Line(right=201, body={"body": "Why?"}, **HIDDEN),
    "POST /clubs/{club}/approvals/{approval_id}/approve": Line(right=200, body={"seenRevision": 1}, **HIDDEN),
    "POST /clubs/{club}/approvals/{approval_id}/reject": Line(right=409, body={"seenRevision": 1}, **HIDDEN),
    # What somebody else asked for is unknown to whoever would change it or take it back.
    "POST /clubs/{club}/approvals/{approval_id}/resubmit": Line(
        right=404, body={"seenRevision": 1, "title": "Hire two"}, **HIDDEN
    ),
    "POST /clubs/{club}/approvals/{approval_id}/withdraw": Line(right=404, **HIDDEN),
    "GET /clubs/{club}/decisions": Line(READ, 200, lacking=404),
    "POST /clubs/{club}/decisions": Line(DECISIONS, 201, lacking=201, body=NEW_DECISION),
    "GET /clubs/{club}/decisions/{decision_id}": Line(READ, 200, lacking=404),
    "POST /clubs/{club}/decisions/{decision_id}/decide": Line(right=200, body={"option": "a"}, **HIDDEN),
    "POST /clubs/{club}/decisions/{decision_id}/cancel": Line(right=404, **HIDDEN),
    "GET /clubs/{club}/runs": Line(READ, 200),
    "GET /clubs/{club}/visibility": Line(READ, 200),
    "PUT /clubs/{club}/visibility/{category}": Line(CLUBS, 200, body={"audience": "owner", "seen": None}),
    "GET /clubs/{club}/activity": Line(READ, 200),
    "GET /clubs/{club}/activity.jsonl": Line(READ, 200),
    "GET /clubs/{club}/activity.csv": Line(READ, 200),
    "GET /clubs/{club}/operations": Line(READ, 200, lacking=200),
    "GET /clubs/{club}/operations/history": Line(READ, 200, lacking=200),
    "GET /clubs/{club}/operations/{operation_id}": Line(READ, 200, lacking=404),
    "GET /clubs/{club}/requests/{request_id}": Line(READ, 200, lacking=404),
    "POST /clubs/{club}/requests": Line(OPERATIONS, 201, body=ONE_BAN),
    "GET /clubs/{club}/forecast": Line(READ, 200, query="?kind=invite_member&count=2"),
    "GET /clubs/{club}/operations/{operation_id}/revisions": Line(READ, 200, lacking=404),
    "GET /clubs/{club}/operations/{operation_id}/timeline": Line(READ, 200, lacking=404),
    "GET /clubs/{club}/operations/{operation_id}/explanation": Line(READ, 200, lacking=404),
    "PUT /clubs/{club}/operations/{operation_id}": Line(
        OPERATIONS,
        200,
        lacking=404,
        body={
            "revision": 1,
            "payload": {"kind": "invite_member", "targetUserId": user(9)},
            "schedule": {"kind": "immediate"},
        },
    ),
    "POST /clubs/{club}/operations/{operation_id}/cancel": Line(
        OPERATIONS, 200, lacking=404, body={"revision": 2}
    ),
    "POST /clubs/{club}/requests/{request_id}/cancel": Line(OPERATIONS, 200, lacking=404),
    "GET /local-time": Line(
        None, 200, unknown=None, query="?local=2026-10-25T02:30&zone=Europe/Berlin", **OWN
    ),
    "GET /clubs/{club}/events": Line(READ, 200, lacking=200),
    "GET /clubs/{club}/events/timed": Line(READ, 200, lacking=200),
    "GET /clubs/{club}/events/{event_id}": Line(READ, 200, lacking=200),
    "POST /clubs/{club}/events": Line(EVENTS, 201, body=EVENT),
    "PUT /clubs/{club}/events/{event_id}": Line(EVENTS, 200, body={**EVENT, "description": "", "seen": 2}),
    "POST /clubs/{club}/events/{event_id}/cancel": Line(EVENTS, 200),
    "POST /clubs/{club}/events/{event_id}/reinstate": Line(EVENTS, 200),
    "POST /clubs/{club}/events/{event_id}/unpublish": Line(EVENTS, 200),
    "POST /clubs/{club}/events/{event_id}/publish": Line(EVENTS, 200),
    "POST /clubs/{club}/events/{event_id}/worlds": Line(EVENTS, 200, body={"worldId": WORLD_ID}),
    "POST /clubs/{club}/events/{event_id}/worlds/{link_id}/confirm": Line(EVENTS, 200),
    "DELETE /clubs/{club}/events/{event_id}/worlds/{link_id}": Line(EVENTS, 200),
    "DELETE /clubs/{club}/events/{event_id}": Line(EVENTS, 204),
    "GET /clubs/{club}/imports": Line(READ, 200, lacking=404),
    "GET /clubs/{club}/imports/{import_id}": Line(READ, 200, lacking=404),
    "POST /clubs/{club}/imports/file": Line(EVENTS, 201, body={"name": "a.ics", "content": CALENDAR}),
    "POST /clubs/{club}/imports/feed": Line(EVENTS, 422, body={"url": "https://127.0.0.1/a.ics"}),
    "POST /clubs/{club}/imports/{import_id}/apply": Line(
        EVENTS, 200, body={"items": ["{item_id}"], "seen": 1}
    ),
    "POST /clubs/{club}/imports/{import_id}/skip": Line(
        EVENTS, 409, body={"items": ["{item_id}"], "seen": 1}
    ),
    "POST /clubs/{club}/reads": Line(OPERATIONS, 202, body={"kind": "bans"}),
    "GET /clubs/{club}/reads/{read_id}": Line(READ, 200, lacking=404),
    "GET /clubs/{club}/messages": Line(READ, 200, lacking=200),
    "POST /clubs/{club}/messages/dismiss": Line(Scope.DECISIONS, 204, lacking=204, body={"ids": []}),
    "GET /clubs/{club}/messages/undelivered": Line(READ, 200),
    "POST /clubs/{club}/messages/{message_id}/retry": Line(CLUBS, 204),
    "GET /operator/messages/undelivered": Line(right=200, unknown=None, **OPERATOR),
    "GET /clubs/{club}/notices": Line(READ, 200, lacking=200),
    "POST /clubs/{club}/notices/dismiss": Line(OPERATIONS, 204, lacking=204, body={"operationIds": []}),
    "GET /clubs/{club}/operations/{operation_id}/findings": Line(READ, 200, lacking=404),
    "POST /clubs/{club}/operations/{operation_id}/findings": Line(
        OPERATIONS, 409, lacking=404, body={"verdict": "happened", "note": "Seen."}
    ),
    "GET /clubs/{club}/recipient-lists": Line(READ, 200),
    "GET /clubs/{club}/recipient-lists/{list_id}": Line(READ, 200),
    "POST /clubs/{club}/recipient-lists": Line(OPERATIONS, 201, body={"name": "All", "userIds": [user(3)]}),
    "PUT /clubs/{club}/recipient-lists/{list_id}": Line(
        OPERATIONS, 200, body={"name": "All", "userIds": [user(3)], "seen": 1}
    ),
    "DELETE /clubs/{club}/recipient-lists/{list_id}": Line(OPERATIONS, 204, query="?seen=2"),
    "GET /clubs/{club}/post-drafts": Line(READ, 200),
    "GET /clubs/{club}/post-drafts/{draft_id}": Line(READ, 200),
    "PUT /clubs/{club}/post-drafts/{draft_id}": Line(OPERATIONS, 200, body={"fields": POST, "seen": 1}),
    "POST /clubs/{club}/post-drafts/{draft_id}/queue": Line(OPERATIONS, 201, body={"revision": 1}),
    "DELETE /clubs/{club}/post-drafts/{draft_id}": Line(OPERATIONS, 409, query="?seen=1"),
    "PUT /clubs/{club}/connections/{connection_id}/stop": Line(
        Scope.CONNECTION, 204, body={"isStopped": True}
    ),
    # Its account works, so that it keeps the connection.
    "PUT /clubs/{club}/connections/{connection_id}/account": Line(right=409, body={}, **OPERATOR),
    "PUT /clubs/{club}/connections/{connection_id}/limit": Line(
        right=204, body={"requestsPerMinute": 5}, **OPERATOR
    ),
    # Before the account is taken out of work, which the connect needs.
    "GET /clubs/{club}/connection": Line(READ, 200, unknown=404),
    "POST /clubs/{club}/connections/{connection_id}/check": Line(Scope.CONNECTION, 204),
    "POST /clubs/{club}/connections/{connection_id}/rejoin": Line(Scope.CONNECTION, 409),
    "PUT /clubs/{club}/connections/{connection_id}/features/{feature}": Line(
        Scope.CONNECTION, 204, body={"isOn": False}
    ),
    "POST /clubs/{club}/connections/{connection_id}/disconnect": Line(Scope.CONNECTION, 204),
    "POST /clubs/{club}/connections/{connection_id}/abandon": Line(Scope.CONNECTION, 204),
    "POST /clubs/{club}/connections": Line(
        Scope.CONNECTION, 201, body={"groupId": "grp_walked", "features": ["posts"]}
    ),
    "GET /operator/fleet": Line(right=200, unknown=None, **OPERATOR),
    "PUT /operator/fleet/stop": Line(right=204, unknown=None, body={"isStopped": True}, **OPERATOR),
    "PUT /operator/fleet/limit": Line(right=204, unknown=None, body={"requestsPerMinute": 60}, **OPERATOR),
    "PUT /operator/accounts/{account_id}/stop": Line(right=204, body={"isStopped": True}, **OPERATOR),
    "PUT /operator/accounts/{account_id}/limits": Line(right=204, body=ACCOUNT_LIMITS, **OPERATOR),
    "PUT /operator/accounts/{account_id}/state": Line(right=204, body={"state": "degraded"}, **OPERATOR),
    "GET /operator/clubs": Line(right=200, unknown=None, **OPERATOR),
    "POST /operator/clubs": Line(
        right=201,
        unknown=None,
        body={"name": "New", "slug": "new", "zone": "UTC", "ownerEmail": "new@example.org"},
        **OPERATOR,
    ),
    "GET /operator/people": Line(right=200, unknown=None, **OPERATOR),
    "GET /operator/people/{person_id}": Line(right=200, **OPERATOR),
    "POST /operator/people": Line(
        right=201, unknown=None, body={"email": "a@example.org", "displayName": "A"}, **OPERATOR
    ),
    "GET /operator/audit": Line(right=200, unknown=None, **OPERATOR),
    "GET /clubs/{club}/spending": Line(READ, 200),
    "GET /clubs/{club}/costs": Line(READ, 200),
    "PUT /clubs/{club}/budgets": Line(
        Scope.CLUBS, 200, body={"agentId": None, "period": "month", "cents": "5000"}
    ),
    # There is none of these yet; an id that is none is as unknown.
    "DELETE /clubs/{club}/budgets/{budget_id}": Line(Scope.CLUBS, 404, query="?seen=2026-01-01T00:00:00Z"),
    "POST /clubs/{club}/budget-incidents/{incident_id}/leave": Line(Scope.CLUBS, 404),
    "GET /clubs/{club}/agents": Line(READ, 200),
    "GET /clubs/{club}/agents/{agent_id}": Line(READ, 200),
    "PUT /clubs/{club}/agents/{agent_id}": Line(
        ACCESS, 200, body={"name": "Robot", "description": None, "grants": ["ask"], "seen": SEEN}
    ),
    "POST /clubs/{club}/agents/{agent_id}/claim": Line(ACCESS, 409),
    "POST /clubs/{club}/agents/{agent_id}/responsible": Line(ACCESS, 200),
    "POST /clubs/{club}/agents/{agent_id}/pause": Line(ACCESS, 200),
    "POST /clubs/{club}/agents/{agent_id}/resume": Line(ACCESS, 200),
    "GET /clubs/{club}/agents/{agent_id}/keys": Line(READ, 200),
    "POST /clubs/{club}/agents/{agent_id}/keys": Line(ACCESS, 201, body={}),
    "DELETE /clubs/{club}/agents/{agent_id}/keys": Line(ACCESS, 200),
    "POST /clubs/{club}/agents/{agent_id}/block": Line(ACCESS, 200),
    "POST /clubs/{club}/agents/{agent_id}/unblock": Line(ACCESS, 200),
    # The last line, because the lines above need the role.
    "DELETE /clubs/{club}/roles/{role_id}": Line(STAFF, 200, query="?seen={seen}"),
}


def routes_of(api: Api) -> set[str]:
    found = set()
    for route in api.app.routes:
        if isinstance(route, HTTPRoute) and route.path.startswith(PATH):
            path = route.path_format.removeprefix(PATH)
            if path == OF_AGENTS or path.startswith(f"{OF_AGENTS}/"):
                continue
            found |= {f"{method} {path}" for method in route.methods - {"OPTIONS"}}
    return found


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    async with open_api(database) as api:
        yield api


class Walk:
    """Calls a line's route and collects what is not as the line says."""

    def __init__(self, owner: Program, ids: dict[str, str]) -> None:
        self.owner = owner
        self.ids = ids
        self.wrong: list[str] = []

    async def call(
        self, key: str, line: Line, program: Program, expected: int | None, case: str, **changed: Any
    ) -> None:
        if expected is None:
            return
        method, pattern = key.split(" ", 1)
        ids = {**self.ids, **changed.get("ids", {})}
        if SEEN in f"{line.body}{line.query}":
            ids["seen"] = await self._seen(pattern)
        body = changed.get("body", _filled(line.body, ids))
        sent = {} if line.body is None else {"json": body}
        answer = await program(method, (pattern + line.query).format(**ids), **sent)
        if answer.status_code != expected:
            self.wrong.append(
                f"{key}: {case} answers {answer.status_code}, its line says {expected}: {answer.text[:200]}"
            )
        elif answer.status_code >= 400:
            check(answer, expected, answer.json()["code"])

    async def _seen(self, pattern: str) -> str:
        return str((await self.owner("GET", pattern.format(**self.ids))).json()["updatedAt"]).replace(
            "+", "%2B"
        )


def _filled(value: Any, ids: dict[str, str]) -> Any:
    match value:
        case str():
            return value.format(**ids)
        case list():
            return [_filled(each, ids) for each in value]
        case dict():
            return {name: _filled(each, ids) for name, each in value.items()}
        case _:
            return value


async def ended_tokens(api: Api) -> dict[str, Program]:
    """A token for each way in which one is worth nothing."""
    pool = api.world.db.pool
    programs = {name: await api.program("owner") for name in ("expired", "revoked")}
    programs["blocked"] = await api.program("stranger")
    hashed = [token.token.encode() for token in programs.values()]
    await pool.execute(
        "update api_tokens set expires_at = created_at where token_hash = sha256($1)", hashed[0]
    )
    await pool.execute(
        "update api_tokens set revoked_at = created_at where token_hash = sha256($1)", hashed[1]
    )
    await pool.execute("update people set blocked_at = lastcall_now() where email = 'stranger@example.org'")
    programs["no token"] = await api.program(None)
    programs["wrong token"] = Program(api.client, "lc_" + "x" * 43)
    _, key = await let_in_agent(api.world.db, api.world.club_id, api.world.actors["owner"].person_id)
    programs["agent's key"] = Program(api.client, key)
    return programs


async def test_no_route_takes_a_token_that_is_worth_nothing(api: Api) -> None:
    assert routes_of(api) == set(LINES) | {PUBLIC}, "a route without a line, or a line without a route"
    walk = Walk(await api.program("owner"), await things(api))
    walk.ids["seen"] = "2026-01-01T00:00:00Z"
    for case, program in (await ended_tokens(api)).items():
        for key, line in LINES.items():
            still = Line(line.needs, line.right, body=line.body and {}, query="?seen=2026-01-01T00:00:00Z")
            await walk.call(key, still, program, 401, case)
    assert not walk.wrong, "\n".join(walk.wrong)


async def test_every_route_answers_every_wrong_way_as_its_line_says(api: Api) -> None:
    walk = Walk(await api.program("owner"), await things(api))
    staff, stranger = await api.program("staff"), await api.program("stranger")
    people = {line.who for line in LINES.values()}
    everything = {who: await api.program(who) for who in people}
    one_scope = {(who, scope): await api.program(who, [scope]) for who in people for scope in (READ, STAFF)}
    for key, line in LINES.items():
        right = everything[line.who]
        narrow = one_scope[line.who, STAFF if line.needs is READ else READ]
        await walk.call(key, line, narrow, 403 if line.needs else 200, "missing scope")
        await walk.call(key, line, stranger, line.other, "other club")
        await walk.call(key, line, staff, line.lacking, "lacking permission")
        ids = [name for name in walk.ids if f"{{{name}}}" in key]
        if ids:
            await walk.call(key, line, right, line.unknown, "unknown id", ids={ids[-1]: NOBODY})
            await walk.call(key, line, right, line.unknown, "malformed id", ids={ids[-1]: "x%00'"})
        if "club" in ids:
            await walk.call(key, line, right, 404, "unknown club", ids={"club": encode_id(new_id())})
        if line.body is not None:
            await walk.call(key, line, right, 422, "malformed body", body={"nobodyKnows": 1})
        await walk.call(key, line, right, line.right, "done rightly")
    assert not walk.wrong, "\n".join(walk.wrong)
