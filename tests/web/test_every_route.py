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
from tests.web.conftest import ROLE, Site, Visitor, World, user

from lastcall.clubs.queries import read_settings, roles_of
from lastcall.connections.accounts import add_account, rotate_key
from lastcall.db.ids import encode_id, new_id
from lastcall.mail.mailer import Mailer
from lastcall.people.api_tokens import create_token
from lastcall.people.scopes import Scope
from lastcall.people.sign_in import make_sign_in_link, redeem_sign_in_link
from lastcall.web.assets import Assets

NOBODY = "0" * 26
MAIL = "owner@example.org"


@dataclass(frozen=True)
class Line:
    """What one route answers. ``None``: the case cannot arise for it.

    ``lacking`` is staff of the club without any permission (for an operator's page: somebody who is none);
    ``unknown`` has an id in its address that nobody has; ``right`` is who may, done rightly.
    """

    signed_out: int
    expired: int
    wrong_club: int | None
    lacking: int | None
    bad_form: int | None
    unknown: int | None
    right: int
    who: str = "owner"
    path: Callable[[World, dict[str, str]], str] | None = None
    unknown_path: str | None = None
    fields: Callable[[World, dict[str, str]], dict[str, str]] = lambda _world, _ids: {}


STAFF_PAGE = Line(401, 401, 404, 200, None, 404, 200, unknown_path="/c/no-such-club")
MANAGERS_PAGE = Line(401, 401, 404, 403, None, 404, 200, unknown_path="/c/no-such-club")
OWNERS_PAGE = MANAGERS_PAGE
CLUB = {"name": "Night Shift", "slug": "night-shift", "zone": "UTC", "retention_days": "30"}
ACCOUNT_PAGE = Line(401, 401, None, None, None, None, 200)
OPERATORS_PAGE = Line(401, 401, 404, 404, None, None, 200, who="operator")
COMPOSE = {"role": ROLE, "people": user(1), "when": "now", "zone": "UTC"}


def at(template: str) -> Callable[[World, dict[str, str]], str]:
    return lambda _world, ids: template.format(**ids)


LINES: dict[str, Line] = {
    "GET /static/{name:str}": Line(200, 200, None, None, None, 404, 200, path=at("/static/{style}")),
    "GET /ops/health": Line(200, 200, None, None, None, None, 200),
    "GET /sign-in": Line(200, 200, None, None, None, None, 200),
    "GET /sign-in/{token:str}": Line(200, 200, None, None, None, 401, 200, path=at("/sign-in/{link}")),
    "POST /sign-in": Line(303, 303, None, None, 403, None, 303, fields=lambda *_: {"email": MAIL}),
    "GET /sign-in/code": Line(200, 200, None, None, None, None, 200),
    # A code that nobody was sent; that the right one signs in is test_sign_in_pages' business.
    "POST /sign-in/code": Line(401, 401, None, None, 403, None, 401, fields=lambda *_: {"code": "ab12cd34"}),
    "GET /sign-in/confirm": Line(401, 401, None, None, None, None, 303),
    "POST /sign-in/confirm/mail": Line(401, 401, None, None, 403, None, 303),
    "POST /sign-in/confirm": Line(401, 401, None, None, 403, None, 422, fields=lambda *_: {"code": "x"}),
    # The other tests' server has an address without passkeys and no provider: test_ways has one with both.
    "POST /sign-in/passkey/options": Line(404, 404, None, None, 403, None, 404),
    "POST /sign-in/passkey": Line(404, 404, None, None, 403, None, 404),
    "POST /sign-in/confirm/passkey/options": Line(401, 401, None, None, 403, None, 404),
    "POST /sign-in/confirm/passkey": Line(401, 401, None, None, 403, None, 404),
    "POST /sign-in/with/{provider:str}": Line(404, 404, None, None, 403, 404, 404),
    "GET /sign-in/with/{provider:str}/back": Line(404, 404, None, None, None, 404, 404),
    "POST /sign-in/confirm/with/{provider:str}": Line(401, 401, None, None, 403, 404, 404),
    "GET /me/sign-in": ACCOUNT_PAGE,
    "POST /me/passkeys/options": Line(401, 401, None, None, 403, None, 404),
    "POST /me/passkeys": Line(401, 401, None, None, 403, None, 404),
    "POST /me/passkeys/{passkey_id:str}/remove": Line(
        401, 401, 404, 404, 403, 404, 303, path=at("/me/passkeys/{passkey}/remove")
    ),
    "POST /me/link/{provider:str}": Line(401, 401, None, None, 403, 404, 404),
    "POST /me/identities/{identity_id:str}/remove": Line(
        401, 401, 404, 404, 403, 404, 303, path=at("/me/identities/{identity}/remove")
    ),
    "GET /": Line(401, 401, None, None, None, None, 200),
    "GET /c/{slug:str}/scheduled": STAFF_PAGE,
    "GET /c/{slug:str}/scheduled/history": STAFF_PAGE,
    "GET /c/{slug:str}/requests/{request_id:str}": Line(
        401, 401, 404, 404, None, 404, 200, path=at("/c/night-shift/requests/{request}")
    ),
    "GET /c/{slug:str}/scheduled/{operation_id:str}/cancel": Line(
        401, 401, 404, 404, None, 404, 200, path=at("/c/night-shift/scheduled/{operation}/cancel?revision=1")
    ),
    "POST /c/{slug:str}/scheduled/{operation_id:str}/cancel": Line(
        401,
        401,
        404,
        404,
        403,
        404,
        303,
        path=at("/c/night-shift/scheduled/{operation}/cancel"),
        fields=lambda _world, _ids: {"revision": "1"},
    ),
    "GET /c/{slug:str}/live/scheduled": STAFF_PAGE,
    "GET /c/{slug:str}/new": STAFF_PAGE,
    "GET /c/{slug:str}/new/{kind:str}": Line(
        401, 401, 404, 403, None, 404, 200, path=at("/c/night-shift/new/ban_member")
    ),
    "POST /c/{slug:str}/new/{kind:str}/review": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        200,
        path=at("/c/night-shift/new/assign_role/review"),
        fields=lambda *_: COMPOSE,
    ),
    "POST /c/{slug:str}/new/{kind:str}": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        303,
        path=at("/c/night-shift/new/assign_role"),
        fields=lambda *_: COMPOSE | {"request_key": encode_id(new_id())},
    ),
    "GET /c/{slug:str}/start": OWNERS_PAGE,
    "GET /c/{slug:str}/staff": MANAGERS_PAGE,
    "POST /c/{slug:str}/staff/{person_id:str}/roles": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        303,
        path=at("/c/night-shift/staff/{member}/roles"),
        fields=lambda _world, ids: {"role_id": ids["role"]},
    ),
    "GET /c/{slug:str}/staff/{person_id:str}/roles/{role_id:str}": Line(
        401, 401, 404, 403, None, 404, 200, path=at("/c/night-shift/staff/{member}/roles/{role}")
    ),
    "POST /c/{slug:str}/staff/{person_id:str}/roles/{role_id:str}": Line(
        401, 401, 404, 403, 403, 404, 303, path=at("/c/night-shift/staff/{member}/roles/{role}")
    ),
    "GET /c/{slug:str}/roles": MANAGERS_PAGE,
    "GET /c/{slug:str}/roles/new": OWNERS_PAGE,
    "POST /c/{slug:str}/roles/new": Line(
        401,
        401,
        404,
        403,
        403,
        None,
        303,
        fields=lambda *_: {"name": "Greeter", "permission": "view_members"},
    ),
    "GET /c/{slug:str}/roles/{role_id:str}": Line(
        401, 401, 404, 403, None, 404, 200, path=at("/c/night-shift/roles/{role}")
    ),
    "POST /c/{slug:str}/roles/{role_id:str}": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        303,
        path=at("/c/night-shift/roles/{spare_role}"),
        fields=lambda _world, ids: {"name": "Helpers", "seen": ids["role_seen"]},
    ),
    "GET /c/{slug:str}/roles/{role_id:str}/delete": Line(
        401, 401, 404, 403, None, 404, 200, path=at("/c/night-shift/roles/{other_role}/delete")
    ),
    "POST /c/{slug:str}/roles/{role_id:str}/delete": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        303,
        path=at("/c/night-shift/roles/{other_role}/delete"),
        fields=lambda _world, ids: {"seen": ids["role_seen"]},
    ),
    "GET /c/{slug:str}/log": MANAGERS_PAGE,
    "GET /c/{slug:str}/log/{form:str}": Line(
        401, 401, 404, 403, None, 404, 200, path=at("/c/night-shift/log/csv")
    ),
    "GET /c/{slug:str}/visibility": OWNERS_PAGE,
    "POST /c/{slug:str}/visibility/{category:str}": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        303,
        path=at("/c/night-shift/visibility/group_size"),
        fields=lambda *_: {"audience": "owner", "seen": ""},
    ),
    "GET /c/{slug:str}/settings": OWNERS_PAGE,
    "POST /c/{slug:str}/settings": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        303,
        unknown_path="/c/no-such-club",
        fields=lambda _world, ids: CLUB | {"seen": ids["club_seen"]},
    ),
    "GET /c/{slug:str}/settings/{act:str}": Line(
        401, 401, 404, 403, None, 404, 200, path=at("/c/night-shift/settings/pause")
    ),
    "POST /c/{slug:str}/settings/{act:str}": Line(
        401, 401, 404, 403, 403, 404, 303, path=at("/c/night-shift/settings/pause")
    ),
    "GET /c/{slug:str}/settings/transfer": OWNERS_PAGE,
    "GET /c/{slug:str}/settings/delete": OWNERS_PAGE,
    "GET /operator/clubs": OPERATORS_PAGE,
    "POST /operator/clubs": Line(
        401,
        401,
        404,
        404,
        403,
        None,
        303,
        who="operator",
        fields=lambda *_: CLUB | {"slug": "new-club", "owner_email": "new-owner@example.org"},
    ),
    "GET /me": ACCOUNT_PAGE,
    "POST /me/name": Line(401, 401, None, None, 403, None, 303, fields=lambda *_: {"display_name": "Owner"}),
    "GET /me/email": ACCOUNT_PAGE,
    "POST /me/email": Line(
        401, 401, None, None, 403, None, 303, fields=lambda *_: {"email": "o@example.org"}
    ),
    "GET /me/email/confirm": ACCOUNT_PAGE,
    "POST /me/email/confirm": Line(401, 401, None, None, 403, None, 422, fields=lambda *_: {"code": "x"}),
    "POST /me/mails": Line(401, 401, None, None, 403, None, 303),
    "POST /me/sessions/{session_id:str}": Line(
        401, 401, 404, 404, 403, 404, 303, path=at("/me/sessions/{session}")
    ),
    "POST /me/sessions": Line(401, 401, None, None, 403, None, 303),
    "GET /me/tokens/new": ACCOUNT_PAGE,
    "POST /me/tokens/new": Line(
        401, 401, None, None, 403, None, 200, fields=lambda *_: {"name": "Bot", "scope": "read", "days": "7"}
    ),
    "GET /me/tokens/{token_id:str}": Line(401, 401, 404, 404, None, 404, 200, path=at("/me/tokens/{token}")),
    "POST /me/tokens/{token_id:str}": Line(401, 401, 404, 404, 403, 404, 303, path=at("/me/tokens/{token}")),
    "GET /operator/people": OPERATORS_PAGE,
    "POST /operator/people": Line(
        401, 401, 404, 404, 403, None, 303, who="operator", fields=lambda *_: {"email": "new@example.org"}
    ),
    "GET /operator/people/{person_id:str}": Line(
        401, 401, 404, 404, None, 404, 200, who="operator", path=at("/operator/people/{person}")
    ),
    "GET /operator/people/{person_id:str}/{act:str}": Line(
        401, 401, 404, 404, None, 404, 200, who="operator", path=at("/operator/people/{person}/unblock")
    ),
    "POST /operator/people/{person_id:str}/{act:str}": Line(
        401, 401, 404, 404, 403, 404, 303, who="operator", path=at("/operator/people/{person}/unblock")
    ),
    "GET /operator/audit": OPERATORS_PAGE,
    "GET /operator": Line(401, 401, 404, 404, None, None, 200, who="operator"),
    "GET /operator/live": Line(401, 401, 404, 404, None, None, 200, who="operator"),
    "GET /operator/mail": Line(401, 401, 404, 404, None, None, 200, who="operator"),
    "GET /operator/{what:str}/{key:str}": Line(
        401, 401, 404, 404, None, 404, 200, who="operator", path=at("/operator/account/{account}")
    ),
    "POST /operator/{what:str}/{key:str}": Line(
        401,
        401,
        404,
        404,
        403,
        404,
        303,
        who="operator",
        path=at("/operator/account/{account}"),
        fields=lambda *_: {"on": "yes"},
    ),
    # The last lines, because they end what the others need: the session, the club, the owner.
    "POST /c/{slug:str}/settings/delete": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        422,  # It is not its short name; that the right one deletes is test_club_pages' business.
        unknown_path="/c/no-such-club",
        fields=lambda *_: {"confirm_slug": "another"},
    ),
    "POST /c/{slug:str}/settings/transfer": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        303,
        unknown_path="/c/no-such-club",
        fields=lambda _world, ids: {"new_owner_id": ids["member"]},
    ),
    "POST /sign-in/{token:str}": Line(
        303, 303, None, None, 403, 401, 303, who="staff", path=at("/sign-in/{link}")
    ),
    "POST /sign-out": Line(401, 401, None, None, 403, None, 303),
}
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
IDS = (
    "{session_id:str}",
    "{token_id:str}",
    "{person_id:str}",
    "{passkey_id:str}",
    "{identity_id:str}",
    "{role_id:str}",
)
WORKER = "/worker/v1/"
"""Worker calls have no cookies and no forms: what they answer to wrong keys, other clubs' connections
and a disabled account is the second test's.
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
    owner = world.actors["owner"]
    _, other = await redeem_sign_in_link(world.db, await make_sign_in_link(world.db, MAIL))
    unsent = Mailer(world.db, None, site.url)
    token_id, _ = await create_token(world.db, unsent, owner, "Old", [Scope.READ], timedelta(days=1))
    async with world.db.read() as tx:
        settings = await read_settings(tx, world.club_id)
        other_role, role, spare_role = await roles_of(tx, world.club_id)
    # "spare_role" is the one that the staff hold; its fixed moment lets two forms be made from it and another.
    await world.db.pool.execute("update staff_roles set updated_at = $1", settings.created_at)
    return {
        "member": encode_id(world.actors["staff"].person_id),
        "role": encode_id(role.id),
        "other_role": encode_id(other_role.id),
        "spare_role": encode_id(spare_role.id),
        "role_seen": settings.created_at.isoformat(),
        "club_seen": settings.updated_at.isoformat(),
        "style": Assets().address("style.css").rsplit("/", 1)[1],
        "link": "",
        "request": encode_id(queued.request_id),
        "operation": encode_id(queued.operation_ids[0]),
        "account": encode_id(world.key.account_id),
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
        "{form:str}": "pdf",
        "{category:str}": "secrets",
        "{what:str}": "account",
        "{key:str}": NOBODY,
    }
    for name, value in parts.items():
        method_path = method_path.replace(name, value)
    for name in ("{name:str}", "{token:str}", "{request_id:str}", "{operation_id:str}", *IDS):
        method_path = method_path.replace(name, NOBODY)
    return method_path + ("?revision=1" if key.startswith("GET") and "cancel" in key else "")


async def test_every_route_answers_every_wrong_way_as_its_line_says(
    world: World, site: Site, visit: Callable[..., Visitor], ids: dict[str, str]
) -> None:
    app = site.server.config.app
    assert isinstance(app, Litestar)
    pages = {route for route in routes_of(app) if not route.split(" ", 1)[1].startswith((WORKER, API))}
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
            ids["link"] = await make_sign_in_link(world.db, "owner@example.org")
            where = path or (
                line.path(world, ids) if line.path else pattern.replace("{slug:str}", "night-shift")
            )
            if method == "POST" and token is None:
                token = await visitor.token(f"/sign-in/{ids['link']}")
            got = await ask(visitor, method, where, line.fields(world, ids), token)
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
    other = await add_account(world.db, None, "other", "usr_2")
    client = visit().client

    async def status(call: str, worker_key: str | None) -> int:
        headers = {"Lastcall-Account": encode_id(key.account_id), "Lastcall-Protocol": "1"}
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
