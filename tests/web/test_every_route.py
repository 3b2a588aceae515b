"""One test walks every route of the application in every wrong way. A route without a line here fails
it.

The last case of each line is the right way, so that the others are refused for what they say and not for a
slip.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from litestar import Litestar
from litestar.routes import HTTPRoute
from tests.api.bodies import BODIES
from tests.web.conftest import Site, Visitor, World, user
from tests.web.page_lines import LINES, MAIL
from tests.web.route_lines import Line

from lastcall.access.invites import InviteKind, create_invite
from lastcall.access.requests import AgentSubject, record_join_request
from lastcall.clubs.queries import read_settings, roles_of
from lastcall.connections.accounts import rotate_key
from lastcall.db.ids import decode_id, encode_id, new_id
from lastcall.decisions.approvals.asking import Ask, ask_approval
from lastcall.decisions.questions.asking import Option, Question, ask_decision
from lastcall.decisions.runs.service import Report, RunStatus, report_run
from lastcall.events.fields import EventFields
from lastcall.events.queries import Publication
from lastcall.events.services.importing import import_file
from lastcall.events.services.write import create_event, link_world
from lastcall.events.times import TimeTba
from lastcall.mail.mailer import Mailer
from lastcall.operations.schedules import Immediate
from lastcall.operations.services.drafts import save_draft
from lastcall.operations.services.lists import create_list
from lastcall.people.api_tokens import create_token
from lastcall.people.scopes import Scope
from lastcall.people.sign_in import make_sign_in_link, redeem_sign_in_link
from lastcall.testing.agents import let_in_agent
from lastcall.testing.fleet import ready_account
from lastcall.web.assets import Assets

NOBODY = "0" * 26


PASSKEY = """
    insert into passkeys (id, person_id, credential_id, public_key, sign_count, name, transports, is_backed_up)
    values (gen_random_uuid(), $1, 'c', 'k', 0, 'Phone', '{}', false) returning id
"""
IDENTITY = """
    insert into identities (id, person_id, provider, issuer, subject, label)
    values (gen_random_uuid(), $1, 'local', 'https://id.example.org', 's', 'robin') returning id
"""
API = "/api/v1/"
"""The API has no pages: tests/api/test_v1_every_route.py walks it."""
MCP = "/mcp"
"""Nor has the endpoint of programs that talk MCP: tests/api/test_mcp.py asks it."""
IDS = (
    "{session_id:str}",
    "{invite_id:str}",
    "{agent_id:str}",
    "{approval_id:str}",
    "{decision_id:str}",
    "{run_id:str}",
    "{token_id:str}",
    "{account_id:str}",
    "{person_id:str}",
    "{passkey_id:str}",
    "{identity_id:str}",
    "{role_id:str}",
    "{event_id:str}",
    "{link_id:str}",
    "{import_id:str}",
    "{list_id:str}",
    "{draft_id:str}",
)
WORKER = "/worker/v1/"
"""Worker calls have no cookies and no forms: what they answer to wrong keys, other clubs' connections
and a disabled account is the second test's.
"""
GIVEN_UP = """
    insert into deliveries (club_id, id, kind, channel, person_id, dedup, data, state, attempts, ended_at)
    values ($1, gen_random_uuid(), 'retention.digest', 'mail', $2, $3, '{}', 'dead', 8, lastcall_now()) returning id
"""


def routes_of(app: Litestar) -> set[str]:
    """Every route as ``METHOD /path``. The framework answers OPTIONS by itself, with the allowed methods
    alone.
    """
    found = set()
    for route in app.routes:
        methods = route.methods - {"OPTIONS"} if isinstance(route, HTTPRoute) else {"ASGI"}
        found |= {f"{method} {route.path}" for method in methods}
    return found


@pytest.fixture
async def ids(world: World, site: Site) -> dict[str, str]:
    """What the addresses need, all of it real."""
    queued = await world.queue("ban_member", [7])
    second = await world.queue("ban_member", [8])
    owner = world.actors["owner"]
    _, other = await redeem_sign_in_link(world.db, await make_sign_in_link(world.db, MAIL))
    agents = await create_invite(world.db, owner, world.club_id, (), kind=InviteKind.AGENT)
    waiting = await record_join_request(world.db, world.club_id, agents.id, AgentSubject("robot"))
    unsent = Mailer(world.db, None, site.url)
    token_id, _ = await create_token(world.db, unsent, owner, "Old", [Scope.READ], timedelta(days=1))
    async with world.db.read() as tx:
        settings = await read_settings(tx, world.club_id)
        other_role, role, spare_role = await roles_of(tx, world.club_id)
    # "spare_role" is the one that the staff hold; its fixed moment lets two forms be made from it and another.
    event = await create_event(
        world.db,
        owner,
        world.club_id,
        EventFields("Opening", TimeTba(), "UTC"),
        publication=Publication.PUBLISHED,
    )
    event = await link_world(world.db, owner, world.club_id, event.id, "wrld_2")
    calendar = await import_file(
        world.db, owner, world.club_id, "c.ics", b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"
    )
    kept = await create_list(world.db, owner, world.club_id, "Regulars", [user(1)])
    spare_list = await create_list(world.db, owner, world.club_id, "Newcomers", [user(1)])
    draft = await save_draft(world.db, owner, world.club_id, new_id(), {}, Immediate(), seen=0)
    given_up = [
        await world.db.pool.fetchval(GIVEN_UP, world.club_id, owner.person_id, dedup) for dedup in ("1", "2")
    ]
    await world.db.pool.execute("update staff_roles set updated_at = $1", settings.created_at)
    agent, _ = await let_in_agent(world.db, world.club_id, world.actors["staff"].person_id)
    seen = await world.db.pool.fetchval("select updated_at from agents where id = $1", agent.agent_id)
    question = Question("Which?", [Option("a", "A"), Option("b", "B")])
    return {
        "club": encode_id(world.club_id),
        "approval": encode_id(await ask_approval(world.db, agent, world.club_id, Ask("hire", "Hire"))),
        "decision": encode_id(await ask_decision(world.db, agent, world.club_id, question)),
        "run": encode_id(await report_run(world.db, agent, Report("1", "door", "Look", RunStatus.RUNNING))),
        "message": encode_id(given_up[0]),
        "spare_message": encode_id(given_up[1]),
        "member": encode_id(world.actors["staff"].person_id),
        "role": encode_id(role.id),
        "other_role": encode_id(other_role.id),
        "spare_role": encode_id(spare_role.id),
        "role_seen": settings.created_at.isoformat(),
        "club_seen": settings.updated_at.isoformat(),
        "style": Assets().address("style.css").rsplit("/", 1)[1],
        "link": "",
        "waiting": encode_id(waiting),
        "agent": encode_id(agent.agent_id),
        "agent_seen": seen.isoformat(),
        "request": encode_id(queued.request_id),
        "operation": encode_id(queued.operation_ids[0]),
        "event": encode_id(event.id),
        "event_seen": str(event.revision),
        "link_id": encode_id(event.worlds[0].id),
        "import": encode_id(calendar.id),
        "list": encode_id(kept.id),
        "spare_list": encode_id(spare_list.id),
        "draft": encode_id(draft.id),
        "second": encode_id(second.operation_ids[0]),
        "second_request": encode_id(second.request_id),
        "account": encode_id(world.key.account_id),
        "connection": f"{encode_id(world.club_id)}.{encode_id(world.connection_id)}",
        "person": encode_id(owner.person_id),
        "session": encode_id(other.session_id),
        "token": encode_id(token_id),
        "passkey": encode_id(await world.db.pool.fetchval(PASSKEY, owner.person_id)),
        "identity": encode_id(await world.db.pool.fetchval(IDENTITY, owner.person_id)),
    }


async def ask(visitor: Visitor, method: str, path: str, fields: dict[str, str], token: str | None) -> int:
    if method == "POST":
        return (await visitor.post(path, fields, token=token)).status_code
    async with visitor.client.stream("GET", path) as answer:  # an event stream never ends by itself
        got = answer.status_code
    head = await visitor.client.head(path)
    assert (head.status_code, head.content) == (got, b""), f"HEAD {path} is not GET {path} without a body"
    return got


def unknown_path(line: Line, key: str) -> str:
    method_path = key.split(" ", 1)[1]
    if line.unknown_path:
        return method_path.replace("/c/{slug:str}", line.unknown_path)
    parts = {
        "{slug:str}": "night-shift",
        "{act:str}": "block",
        "{kind:str}": "dance",
        "{tab:str}": "strangers",
        "{form:str}": "pdf",
        "{category:str}": "secrets",
        "{feature:str}": "dance",
        "{what:str}": "account",
        "{key:str}": NOBODY,
        "{to:str}": "degraded",
    }
    for name, value in parts.items():
        method_path = method_path.replace(name, value)
    for name in ("{name:str}", "{token:str}", "{request_id:str}", "{operation_id:str}", *IDS):
        method_path = method_path.replace(name, NOBODY)
    return method_path + ("?revision=1" if key.startswith("GET") and "cancel" in key else "")


@pytest.mark.timeout(300)  # one walk over all of the pages' routes
async def test_every_route_answers_every_wrong_way_as_its_line_says(
    world: World, site: Site, visit: Callable[..., Visitor], ids: dict[str, str]
) -> None:
    app = site.server.config.app
    assert isinstance(app, Litestar)
    pages = {route for route in routes_of(app) if not route.split(" ", 1)[1].startswith((WORKER, API, MCP))}
    assert pages == set(LINES), "a route without a line, or a line without a route"
    await world.db.pool.execute(
        "insert into sessions (id, person_id, token_hash, signed_in_by, created_at, expires_at)"
        " select gen_random_uuid(), person_id, sha256('expired'), 'link', now() - interval '2 d',"
        " now() - interval '1 d' from sessions where person_id = $1 limit 1",
        world.actors["owner"].person_id,
    )
    wrong: list[str] = []
    for key, line in LINES.items():
        method, pattern = key.split(" ", 1)

        async def answer(
            visitor: Visitor,
            expected: int | None,
            case: str,
            *,
            path: str | None = None,
            token: str | None = None,
            key: str = key,
            line: Line = line,
            method: str = method,
            pattern: str = pattern,
        ) -> None:
            if expected is None:
                return
            if "invite" in key:
                invite = await create_invite(
                    world.db, world.actors["owner"], world.club_id, [decode_id(ids["role"])], approves=False
                )
                ids.update(invite=invite.token, invite_id=encode_id(invite.id))
            if method == "POST" or "{link}" in f"{line.path}{line.fields}":
                ids["link"] = await make_sign_in_link(world.db, "owner@example.org")
            where = path or (
                line.path.format(**ids) if line.path else pattern.replace("{slug:str}", "night-shift")
            )
            fields = {name: value.format(**ids) for name, value in line.fields.items()}
            if method == "POST" and token is None:
                token = await visitor.token(f"/sign-in/{ids['link']}")
            got = await ask(visitor, method, where, fields, token)
            # Hundreds of visitors come, and most machines lend a user 1024 files.
            await visitor.client.aclose()
            if got != expected:
                wrong.append(f"{key}: {case} answers {got}, its line says {expected}")

        await answer(visit(), line.signed_out, "signed out")
        await answer(visit(session="expired"), line.expired, "expired session")
        await answer(visit("stranger"), line.wrong_club, "wrong club")
        await answer(visit("staff"), line.lacking, "lacking permission")
        await answer(visit(line.who), line.bad_form, "form of another", token="0" * 64)
        await answer(visit(line.who), line.unknown, "unknown id", path=unknown_path(line, key))
        await answer(visit(line.who), line.right, "done rightly")
    assert not wrong, "\n".join(wrong)


@dataclass(frozen=True)
class Call:
    """What one worker call answers about a connection that nobody has, and once its account is disabled."""

    unknown: int
    disabled: int = 423


CALLS: dict[str, Call] = {
    "hello": Call(200),
    "lease": Call(404),
    "renew": Call(409),
    "release": Call(409),
    "allowance": Call(200),
    "claim": Call(409),
    "authorize": Call(200),
    "complete": Call(200, disabled=200),
    "reject": Call(200),
    "defer": Call(200),
    "read_claim": Call(409),
    "read_complete": Call(200),
    "read_failed": Call(200),
    "sample": Call(409),
    "audit_claim": Call(409),
    "audit_page": Call(409),
    "membership": Call(409),
    "left": Call(409),
    "groups": Call(200),
    # The last one, because a rate limit stops the account.
    "failure": Call(200),
    "wait": Call(423),
}


async def test_every_worker_call_answers_every_wrong_way(
    world: World, site: Site, visit: Callable[..., Visitor]
) -> None:
    """Signed out, a superseded key, another account's key, a connection that nobody has, a disabled
    account.
    """
    app = site.server.config.app
    assert isinstance(app, Litestar)
    calls = {route for route in routes_of(app) if route.split(" ", 1)[1].startswith(WORKER)}
    assert calls == {f"POST {WORKER}{call}" for call in CALLS}, "a worker call without a line"
    old, key = world.key, await rotate_key(world.db, None, world.key.account_id)
    other = await ready_account(world.db, "other", "usr_2")
    client = visit().client

    async def status(call: str, worker_key: str | None) -> int:
        headers = {"Lastcall-Account": encode_id(key.account_id), "Lastcall-Protocol": "2"}
        if worker_key:
            headers["Authorization"] = f"Bearer {worker_key}"
        body = {"workerId": encode_id(new_id()), "vrchatUserId": "usr_1", **BODIES[call]}
        return (await client.post(f"{WORKER}{call}", headers=headers, json=body)).status_code

    wrong: list[str] = []

    async def expect(call: str, case: str, worker_key: str | None, expected: int) -> None:
        got = await status(call, worker_key)
        if got != expected:
            wrong.append(f"{call}: {case} answers {got}, its line says {expected}")

    for call, line in CALLS.items():
        await expect(call, "signed out", None, 401)
        await expect(call, "a superseded key", old.key, 401)
        await expect(call, "another account's key", other.key, 401)
        await expect(call, "a connection that nobody has", key.key, line.unknown)
    for call, line in CALLS.items():
        await expect(call, "a disabled account", key.key, line.disabled)
    assert not wrong, "\n".join(wrong)
