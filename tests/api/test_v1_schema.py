"""Every call as the API's own description allows it, and as it does not: no failure of the server, and no answer
that the description does not know.

The calls go over real HTTP to the whole application in this process. Ids in addresses are real ones half of the
time, so that calls reach the services; who calls may do everything. The token is no part of what is made up: each
call carries the caller's, and a made-up one would be all that is wrong with most wrong calls.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.api.v1_kit import Api, serve_api
from tests.api.v1_things import CALENDAR, POST, WORLD_ID, things
from tests.web.conftest import user

from lastcall.api.v1.api import api_routes
from lastcall.api.v1.description import description
from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id

EXAMPLES = 4
"""Calls of each kind and mode: enough to meet every branch of reading a call, few enough for every run."""
SOME = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
Result = TypeVar("Result")


@dataclass
class Running:
    """The application on a loop of its own thread, so that a plain function can call it."""

    url: str
    token: str
    ids: dict[str, str]
    database: Database
    loop: asyncio.AbstractEventLoop

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)


@pytest.fixture(scope="module")
def running(shared_url: str) -> Iterator[Running]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    stack = AsyncExitStack()

    async def start() -> Running:
        database = await Database.open(shared_url)
        stack.push_async_callback(database.close)
        api: Api = await stack.enter_async_context(serve_api(database))
        await database.pool.execute("update people set is_operator = true where email = 'owner@example.org'")
        token = await api.token("owner", everything=True)
        return Running(api.url, token, await things(api), database, loop)

    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result(60)
    finally:
        asyncio.run_coroutine_threadsafe(stack.aclose(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def meant(ids: dict[str, str]) -> dict[str, Any]:
    """What fields must hold to mean something; no description can say it, so made-up ones would all be refused
    before a service does anything."""
    return {
        "name": f"Name {encode_id(new_id())}",
        "displayName": "Somebody",
        "slug": encode_id(new_id()),
        "zone": "Europe/Berlin",
        "email": f"{encode_id(new_id())}@example.org",
        "ownerEmail": f"{encode_id(new_id())}@example.org",
        "description": "",
        "note": None,
        "roleIds": [ids["role_id"]],
        "assignableRoleIds": [ids["role_id"]],
        "providerRoleIds": ["grol_1"],
        "payloads": [{"kind": "ban_member", "targetUserId": user(1)}],
        "payload": {"kind": "invite_member", "targetUserId": user(8)},
        "schedule": {"kind": "immediate"},
        "time": {"kind": "timed", "startsAt": "2030-01-01T20:00:00+01:00"},
        "title": "Night",
        "worldId": WORLD_ID,
        "content": CALENDAR,
        "url": "https://127.0.0.1/calendar.ics",
        "items": [ids["item_id"]],
        "userIds": [user(1)],
        "fields": POST,
        "operationIds": [],
        "confirmBanned": [],
    }


def described() -> dict[str, Any]:
    """A copy of the API's own description that says nothing of tokens."""
    made: dict[str, Any] = json.loads(json.dumps(description(api_routes())))
    del made["security"], made["components"]["securitySchemes"]
    return made


SCHEMA = schemathesis.openapi.from_dict(described())
OPERATIONS = {f"{one.ok().method.upper()} {one.ok().path}": one.ok() for one in SCHEMA.get_all_operations()}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_call_is_answered_as_described_whatever_is_sent(running: Running, name: str) -> None:
    operation = OPERATIONS[name]
    # All of these calls together are more than one token may make in a minute.
    running.run(running.database.pool.execute("delete from rate_limits"))
    real = {part: running.ids[part] for part in running.ids if f"{{{part}}}" in operation.path}
    ways = [operation.as_strategy(GenerationMode.POSITIVE, path_parameters=real)]
    if operation.query or operation.headers or operation.body:
        ways.append(operation.as_strategy(GenerationMode.NEGATIVE, path_parameters=real))
    if real:
        ways.append(operation.as_strategy(GenerationMode.NEGATIVE))
    answered: list[int] = []
    with requests.Session() as session:
        session.trust_env = False

        def call(case: schemathesis.Case) -> None:
            if (
                case.meta
                and case.meta.generation.mode is GenerationMode.POSITIVE
                and isinstance(case.body, dict)
            ):
                case.body |= {name: value for name, value in meant(running.ids).items() if name in case.body}
            headers = {"Authorization": f"Bearer {running.token}"}
            answer = case.call(base_url=running.url, session=session, headers=headers)
            case.validate_response(answer, checks=CHECKS)
            answered.append(answer.status_code)

        for way in ways:
            SOME(given(case=way)(call))()
    assert answered, "no call was made up"
    assert max(answered) < 500


def test_an_answer_that_the_description_does_not_know_is_found(running: Running) -> None:
    made = described()
    answers = made["paths"]["/api/v1/clubs/{club}/operations/{operation_id}"]["get"]["responses"]
    del answers["404"]
    silent = schemathesis.openapi.from_dict(made)["/api/v1/clubs/{club}/operations/{operation_id}"]["GET"]
    case = silent.Case(path_parameters={"club": "0" * 26, "operation_id": "0" * 26})
    answer = case.call(base_url=running.url, headers={"Authorization": f"Bearer {running.token}"})
    assert answer.status_code == 404
    with pytest.raises(FailureGroup):
        case.validate_response(answer, checks=CHECKS)


STRANGE = (
    b"GET /api/v1/clubs/\xff HTTP/1.1\r\n",
    b"GET /api/v1/clubs/%ff%00%ed%a0%80 HTTP/1.1\r\n",
    b"GET /api/v1/clubs/%2e%2e/%2e%2e HTTP/1.1\r\n",
    b"GET /api/v1/me?\xff=\xfe&%00 HTTP/1.1\r\n",
    b"GET //api//v1//me HTTP/1.1\r\n",
    b"GET http://elsewhere.example/api/v1/me HTTP/1.1\r\n",
    b"OPTIONS * HTTP/1.1\r\n",
    b"TRACE /api/v1/me HTTP/1.1\r\n",
    b"PROPFIND /api/v1/me HTTP/1.1\r\n",
    b"GET /api/v1/" + b"a" * 8000 + b" HTTP/1.1\r\n",
    b"GET /api/v1/me HTTP/1.1\r\nCookie: " + b"a=b; " * 2000 + b"\r\n",
    b"GET /api/v1/me HTTP/1.1\r\nAccept: ;;;q=x,\xff/\xfe;q=\r\n",
    b"POST /api/v1/operator/people HTTP/1.1\r\nContent-Type: application/json; charset=\xff\r\nContent-Length: 2\r\n",
    b"POST /api/v1/operator/people HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n",
)


def test_bytes_that_no_client_sends_are_no_failure_of_the_server(running: Running) -> None:
    host, _, port = running.url.removeprefix("http://").partition(":")
    for begin in STRANGE:
        head = f"Host: {host}:{port}\r\nAuthorization: Bearer {running.token}\r\nConnection: close\r\n\r\n"
        end = b"2\r\n{}\r\n0\r\n\r\n" if b"chunked" in begin else b"{}" if b"POST" in begin else b""
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(begin + head.encode() + end)
            answer = connection.makefile("rb").readline()
        status = int(answer.split()[1])
        assert 200 <= status < 500, (begin[:80], answer)
