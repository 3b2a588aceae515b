"""Logs, rows, exports and the mail ledger of a full run hold nothing that lets their reader act as somebody else."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.api.bodies import BODIES
from tests.kill.kill_house import free_port
from tests.people.authenticator import Authenticator
from tests.secrets.forms import forms_of, seen
from tests.secrets.house import SESSION_COOKIE, House, running_house
from tests.web.conftest import Visitor, World, build_world
from tests.web.test_ways import add_passkey, leave, options

from lastcall.clubs.queries import roles_of
from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id
from lastcall.people.flows import derived
from lastcall.people.sessions import Browser

MADE_TOKEN = re.compile(r'id="token" class="id" value="(lc_[^"]+)"')
MADE_INVITE = re.compile(r'/invites/([A-Za-z0-9_-]{20,})" readonly')
PLANTED = "planted-word-7c1e"
"""In place of a secret, where one could stand, to see that it would be found there."""


async def sign_in_by_mail(house: House) -> None:
    here, elsewhere = await house.visitor(), await house.visitor()
    await house.form(here, "/sign-in", "/sign-in", email="staff@example.org")
    path = await house.mail("staff@example.org")
    await elsewhere.get(path)
    refused = await house.form(elsewhere, "/sign-in", path)
    assert refused.status_code == 403
    assert (await house.form(here, path, path)).status_code == 303
    assert (await here.get("/me")).status_code == 200


async def sign_in_by_code(house: House) -> None:
    here = await house.visitor()
    await house.form(here, "/sign-in", "/sign-in", email="stranger@example.org")
    await house.mail("stranger@example.org")
    code = house.sink.to("stranger@example.org")[0].code
    wrong = await house.form(here, "/sign-in/code", "/sign-in/code", code="zzzzzzzz")
    assert wrong.status_code == 401
    assert (await house.form(here, "/sign-in/code", "/sign-in/code", code=code)).status_code == 303
    changed = await house.form(here, "/me/email", "/me/email", email="strange@example.org")
    assert changed.status_code == 303
    await house.mail("strange@example.org")
    new = house.sink.to("strange@example.org")[0].code
    assert (await house.form(here, "/me/email/confirm", "/me/email/confirm", code=new)).status_code == 303


async def confirm_by_code(house: House, world: World) -> None:
    operator = await house.visitor(world.sessions["operator"])
    await house.form(operator, "/me", "/sign-in/confirm/mail", next="/me")
    await house.mail("operator@example.org")
    code = house.sink.to("operator@example.org")[0].code
    assert (await house.form(operator, "/me", "/sign-in/confirm", code=code)).status_code == 303


async def use_a_token(house: House, world: World, role: str) -> str:
    owner = await house.visitor(world.sessions["owner"])
    scopes = ["read", "account", "clubs", "staff", "access", "operations", "connection"]
    made = await house.form(owner, "/me/tokens/new", "/me/tokens/new", name="Bot", days="7", scope=scopes)
    found = MADE_TOKEN.search(made.text)
    assert found is not None
    token = house.keep("API token", found[1])
    api, club = await house.visitor(), encode_id(world.club_id)
    headers = {"Authorization": f"Bearer {token}"}

    async def call(method: str, path: str, status: int, **sent: Any) -> Any:
        answer = await api.client.request(
            method, f"/api/v1{path}", headers=headers | sent.pop("more", {}), **sent
        )
        assert answer.status_code == status, (path, answer.text)
        return answer.json() if answer.content else None

    await call("GET", "/me", 200)
    await call("GET", f"/clubs/{club}/staff", 200)
    await call("GET", f"/clubs/{'0' * 26}/staff", 404)
    await call("GET", "/operator/people", 403)
    await call("PATCH", "/me", 405)
    asked = {"json": {"roleIds": [role]}, "more": {"Idempotency-Key": "asked-for-once"}}
    invite = await call("POST", f"/clubs/{club}/invites", 201, **asked)
    house.keep("invite token", invite["token"])
    assert (await call("POST", f"/clubs/{club}/invites", 201, **asked))["token"] is None
    await call("POST", f"/clubs/{club}/invites", 415, content=token)
    await call("POST", f"/clubs/{club}/invites", 422, json={"roleIds": [role], token: invite["token"]})
    refused = await api.get("/api/v1/me", headers={"Authorization": f"Bearer {token[:-1]}"})
    assert refused.status_code == 401
    return token


async def invite_somebody(house: House, world: World, role: str) -> None:
    owner, guest = await house.visitor(world.sessions["owner"]), await house.visitor()
    place = "/c/night-shift/staff/invites/new"
    made = await house.form(owner, place, place, role=role, email="guest@example.org", note="Welcome")
    found = MADE_INVITE.search(made.text)
    assert found is not None, made.text
    path = await house.mail("guest@example.org")
    assert path == f"/invites/{house.keep('invite token', found[1])}"
    await house.form(guest, path, f"{path}/sign-in", email="guest@example.org")
    link = await house.mail("guest@example.org", 2)
    arrived = await house.form(guest, link, link)
    assert (arrived.status_code, arrived.headers["location"]) == (303, path)
    assert (await house.form(guest, path, path)).status_code == 303
    assert (await guest.get("/c/night-shift/scheduled")).status_code == 200


async def use_a_passkey(house: House, world: World) -> None:
    owner, phone = await house.visitor(world.sessions["owner"]), Authenticator(origin=house.url)
    assert (await add_passkey(owner, phone)).status_code == 303
    nobody = await house.visitor()
    token = await nobody.token("/sign-in")
    asked: Any = await options(nobody, "/sign-in/passkey/options", token)
    house.keep("challenge", asked["challenge"])
    house.keep_cookies(nobody)
    answer = phone.get(asked)
    assert (await nobody.post("/sign-in/passkey", {"credential": answer}, token=token)).status_code == 303
    house.keep_cookies(nobody)


async def use_a_provider(house: House, world: World) -> None:
    async def back(visitor: Visitor, address: str) -> int:
        key = visitor.client.cookies.get(SESSION_COOKIE) or visitor.client.cookies["lastcall-form"]
        house.keep_flow(address)
        given = house.provider.approve(address)
        house.keep("verifier", derived(Browser(key), b"verifier", given["state"]))
        house.keep("code of the provider", given["code"])
        return (await visitor.client.get("/sign-in/with/local/back", params=given)).status_code

    owner, nobody = await house.visitor(world.sessions["owner"]), await house.visitor()
    assert await back(owner, await leave(owner, "/me/link/local", "/me/sign-in")) < 400
    assert await back(nobody, await leave(nobody, "/sign-in/with/local", "/sign-in")) < 400
    house.keep_cookies(nobody)
    # An answer to nothing, and a provider that is wrong about itself.
    lost = await nobody.get("/sign-in/with/local/back?code=a-code-of-nobody&state=a-state-of-nobody")
    assert lost.status_code == 401
    house.keep("code of the provider", "a-code-of-nobody")
    house.keep("state", "a-state-of-nobody")
    other = await house.visitor()
    address = await leave(other, "/sign-in/with/local", "/sign-in")
    house.provider.claims = {"nonce": "another"}
    assert await back(other, address) == 503


async def work(house: House, world: World, key: str) -> None:
    worker = await house.visitor()
    for given, status in ((key, 200), (key[:-1], 401)):
        answer = await worker.client.post(
            "/worker/v1/hello",
            headers={
                "Authorization": f"Bearer {given}",
                "Lastcall-Account": encode_id(world.key.account_id),
                "Lastcall-Protocol": "2",
            },
            json=BODIES["hello"] | {"workerId": encode_id(new_id()), "vrchatUserId": "usr_1"},
        )
        assert answer.status_code == status, answer.text


@asynccontextmanager
async def broken(db: Database, table: str) -> AsyncIterator[None]:
    await db.pool.execute(f"alter table {table} rename to lost")
    try:
        yield
    finally:
        await db.pool.execute(f"alter table lost rename to {table}")


async def fail(house: House, world: World, token: str, key: str) -> None:
    """Errors of each kind, with a secret in the request each time."""
    session = world.sessions["owner"]
    owner, nobody = await house.visitor(session), await house.visitor()
    link = house.keep("token in a mail", "Ab3_-" * 8 + "xyz")
    for path, status in ((f"/sign-in/{link}", 401), (f"/invites/{link}", 404), (f"/{PLANTED}", 404)):
        assert (await nobody.get(path)).status_code == status
    assert (await nobody.client.post(f"/sign-in/{link}")).status_code == 403
    assert (await nobody.client.put(f"/sign-in/{link}")).status_code == 405
    large = await nobody.client.post("/sign-in", content=link.encode() * 30_000)
    assert large.status_code == 413
    async with broken(world.db, "sign_in_links"):
        assert (await nobody.get(f"/sign-in/{link}")).status_code == 500
    async with broken(world.db, "sessions"):
        assert (await owner.get("/me")).status_code == 500
    async with broken(world.db, "api_tokens"):
        answer = await nobody.get("/api/v1/me", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 500
    async with broken(world.db, "invites"):
        assert (await nobody.get(f"/invites/{link}")).status_code == 500
    await world.db.pool.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
        " and pid <> pg_backend_pid() and backend_type = 'client backend'"
    )
    for path in ("/me", f"/invites/{link}", f"/sign-in/{link}"):
        assert (await owner.get(path)).status_code in (200, 401, 404, 500, 503)


async def export(house: House, world: World) -> dict[str, str]:
    owner = await house.visitor(world.sessions["owner"])
    mine = await house.form(owner, "/me/privacy", "/me/privacy/export")
    club = await house.form(owner, "/c/night-shift/settings", "/c/night-shift/export")
    log = await owner.get("/c/night-shift/log/csv")
    for one in (mine, club, log):
        assert one.status_code == 200
    return {"one's own data": mine.text, "the club's data": club.text, "the activity log": log.text}


async def rows_of(db: Database) -> dict[str, str]:
    """Every row of every table as text, as a dump has them."""
    tables = await db.pool.fetch("select tablename from pg_tables where schemaname = 'public' order by 1")
    dumped = {}
    for (name,) in tables:
        rows = await db.pool.fetch(f'select row_to_json(t)::text || t::text from "{name}" t')
        dumped[name] = "\n".join(row[0] for row in rows)
    ledger = dumped.pop("outgoing_mail")
    return {
        "the database": "\n".join(f"{name} {text}" for name, text in dumped.items()),
        "the mail ledger": ledger,
    }


async def play(house: House, world: World) -> dict[str, str]:
    """The run; answers what it exported and what the commands logged."""
    async with world.db.read() as tx:
        role = encode_id((await roles_of(tx, world.club_id))[0].id)
    for name, session in world.sessions.items():
        house.keep(f"session of {name}", session)
    house.keep("worker key", world.key.key)
    shown, logged = await house.command("sign-in-link", "operator@example.org")
    path = re.search(r"/sign-in/([A-Za-z0-9_-]{40,})", shown)
    assert path is not None, shown
    house.keep("link of the command line", path[1])
    shown, more = await house.command("account", "rotate-key", "porter")
    found = re.search(r"LASTCALL_WORKER_KEY=(\S+)", shown)
    assert found is not None, shown
    key = house.keep("worker key", found[1])
    async with asyncio.TaskGroup() as group:
        group.create_task(sign_in_by_mail(house))
        group.create_task(sign_in_by_code(house))
        group.create_task(confirm_by_code(house, world))
        group.create_task(use_a_passkey(house, world))
        group.create_task(invite_somebody(house, world, role))
        group.create_task(work(house, world, key))
    token = await use_a_token(house, world, role)
    await use_a_provider(house, world)
    owner = await house.visitor(world.sessions["owner"])
    await house.form(owner, "/me", "/me/name", display_name=PLANTED)
    await world.db.pool.execute("update clubs set name = $2 where id = $1", world.club_id, PLANTED)
    address = f"{PLANTED}@example.org"
    place = "/c/night-shift/staff/invites/new"
    await house.form(owner, place, place, role=role, email=address)
    await house.mail(address)
    found_in = await export(house, world)
    await fail(house, world, token, key)
    return found_in | {"what the commands logged": logged + more}


async def test_a_full_run_leaves_no_secret_anywhere(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    world = await build_world(database)
    async with running_house(database_url, free_port(), tmp_path) as house:
        exported = await play(house, world)
    sinks = exported | house.logs() | await rows_of(database)
    assert len(house.secrets) > 60
    assert seen(house.secrets, sinks) == []

    # It would have been found: every one of them holds what was planted there.
    logged = sinks["what the server wrote"]
    assert logged.count('"level": "error"') + logged.count('"level":"error"') >= 4
    held = {place: text for place, text in sinks.items() if place != "what the commands logged"}
    places = [f"word in {place} (as it is)" for place in held]
    assert [one for one in seen({"word": PLANTED}, held) if one in places] == places


@pytest.mark.parametrize("secret", ["Ab3_-" * 8 + "xyz", "ab12cd34", "a mail password: %&=+"])
def test_a_secret_is_found_in_each_form(secret: str) -> None:
    said = secret.encode()
    for before in ("", "x", "xy", "{“"):
        for after in ("", "z", "zz", "”}"):
            text = before.encode() + said + after.encode()
            for written in (
                text.decode(),
                text.decode().upper() if "%" not in secret else text.decode(),
                text.hex().upper(),
                base64.b64encode(text).decode(),
                base64.urlsafe_b64encode(text).decode(),
                json.dumps({"it": text.decode()}),
            ):
                assert seen({"it": secret}, {"there": written}) != [], written
    assert seen({"it": secret}, {"there": base64.b64encode(b"something else").decode()}) == []
    assert len(forms_of(secret)) >= 10
