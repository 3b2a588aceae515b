"""Passkeys and accounts at providers over real HTTP: each form, each wrong way in, and where one ends up."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from urllib.parse import parse_qs, unquote, urlsplit

import httpx2
import pytest
from tests.people.authenticator import Authenticator
from tests.people.openid_provider import OpenIdProvider, openid_provider
from tests.web.conftest import PLAIN, Site, Visitor, World

from lastcall.cli.server import bind, running_server
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.settings import Settings
from lastcall.testing.mail import MailSink

ADDRESS = re.compile(r'http-equiv="refresh" content="0; url=([^"]+)"')


@pytest.fixture
async def provider() -> AsyncIterator[OpenIdProvider]:
    async with openid_provider() as provider:
        yield provider


@pytest.fixture
async def site(database: Database, provider: OpenIdProvider) -> AsyncIterator[Site]:
    """The server under a name, which passkeys need, and with a provider."""
    taken = bind("127.0.0.1", 0)
    url = f"http://localhost:{taken.getsockname()[1]}"
    async with MailSink() as sink:
        settings = Settings(
            port=taken.getsockname()[1],
            public_url=url,
            providers=(provider.settings(),),
            mail_url=sink.url,
            mail_from="Lastcall <lastcall@club.example>",
        )
        async with running_server(settings, database, taken=taken) as server:
            yield Site(settings, database, server, url, sink, _never, _never)


async def _never() -> None:
    raise AssertionError("This server is not stopped by its tests.")


def device(site: Site, **other: int) -> Authenticator:
    return Authenticator(origin=site.url, **other)


async def options(visitor: Visitor, path: str, token: str) -> dict[str, object]:
    answer = await visitor.client.post(path, headers={"x-form-token": token})
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    found: dict[str, object] = answer.json()
    return found


async def add_passkey(visitor: Visitor, phone: Authenticator, name: str = "Phone") -> httpx2.Response:
    token = await visitor.token("/me/sign-in")
    answer = phone.create(await options(visitor, "/me/passkeys/options", token))
    return await visitor.post("/me/passkeys", {"credential": answer, "name": name}, token=token)


async def leave(visitor: Visitor, path: str, page: str, fields: dict[str, str] | None = None) -> str:
    """Press the button that leads to the provider; the address that the browser goes to."""
    answer = await visitor.post(path, fields, token=await visitor.token(page))
    assert answer.status_code == 201 or answer.status_code == 200, answer.text
    found = ADDRESS.search(answer.text)
    assert found is not None
    return found[1].replace("&amp;", "&")


async def link(visitor: Visitor, provider: OpenIdProvider) -> httpx2.Response:
    back = provider.approve(await leave(visitor, "/me/link/local", "/me/sign-in"))
    return await visitor.client.get("/sign-in/with/local/back", params=back)


async def test_a_passkey_is_added_signs_in_confirms_and_is_removed(
    site: Site, world: World, visit: Callable[..., Visitor]
) -> None:
    owner, phone = visit("owner"), device(site)
    added = await add_passkey(owner, phone, "<b>Phone</b>")
    assert (added.status_code, added.headers["location"]) == (303, "/me/sign-in#passkeys")
    page = (await owner.get("/me/sign-in")).text
    assert "&lt;b&gt;Phone&lt;/b&gt;" in page
    assert "<b>Phone</b></b>" not in page

    nobody = visit()
    await nobody.get("/sign-in?next=/c/night-shift/scheduled")
    token = await nobody.token("/sign-in")
    before = dict(nobody.client.cookies)
    answer = phone.get(await options(nobody, "/sign-in/passkey/options", token))
    arrived = await nobody.post("/sign-in/passkey", {"credential": answer}, token=token)
    assert (arrived.status_code, arrived.headers["location"]) == (303, "/c/night-shift/scheduled")
    assert "lastcall" in nobody.client.cookies
    assert "lastcall-form" in before
    assert "lastcall-form" not in nobody.client.cookies, "what it was known by before is forgotten"
    again = await nobody.post(
        "/sign-in/passkey", {"credential": answer}, token=await nobody.token("/me/sign-in")
    )
    assert again.status_code == 401
    assert "not begun in this browser, or it is over" in again.text

    stale = "update sessions set authenticated_at = authenticated_at - interval '11 min'"
    await world.db.pool.execute(stale)
    page = (await nobody.get("/me/sign-in")).text
    assert "Confirm that it is you" in page
    assert "Remove it" not in page
    await comes_back_to_the_form(nobody, world)
    token = await nobody.token("/sign-in/confirm?next=/me/sign-in")
    answer = phone.get(await options(nobody, "/sign-in/confirm/passkey/options", token))
    fields = {"credential": answer, "next": "/me/sign-in"}
    confirmed = await nobody.post("/sign-in/confirm/passkey", fields, token=token)
    assert (confirmed.status_code, confirmed.headers["location"]) == (303, "/me/sign-in")
    assert "Remove it" in (await nobody.get("/me/sign-in")).text

    passkey = encode_id(await world.db.pool.fetchval("select id from passkeys"))
    gone = await nobody.post(f"/me/passkeys/{passkey}/remove", token=await nobody.token("/me/sign-in"))
    assert gone.status_code == 303
    assert "None yet. A passkey" in (await nobody.get("/me/sign-in")).text


async def comes_back_to_the_form(visitor: Visitor, world: World) -> None:
    """A form that was open when the confirmation ran out leads, once confirmed again, to where forms are."""
    passkey = encode_id(await world.db.pool.fetchval("select id from passkeys"))
    token = await visitor.token("/sign-in/confirm")
    for path in (f"/me/passkeys/{passkey}/remove", f"/me/identities/{passkey}/remove", "/me/link/local"):
        late = await visitor.post(path, token=token)
        assert late.status_code == 303, path
        where = parse_qs(urlsplit(late.headers["location"]).query)["next"][0]
        assert where.partition("#")[0] == "/me/sign-in", path
    broken = await visitor.post("/sign-in/confirm/passkey", {"credential": "{}", "next": "/me"}, token=token)
    assert broken.status_code == 422
    assert 'href="/sign-in/confirm?next=%2Fme"' in broken.text


async def test_a_linked_account_signs_in_and_confirms_from_the_page_that_was_asked_for(
    site: Site, world: World, visit: Callable[..., Visitor], provider: OpenIdProvider
) -> None:
    owner = visit("owner")
    linked = await link(owner, provider)
    assert (linked.status_code, linked.headers["location"]) == (303, "/me/sign-in#identities")
    assert "<bdi>robin</bdi>" in (await owner.get("/me/sign-in")).text

    nobody = visit()
    await nobody.get("/c/night-shift/scheduled")
    back = provider.approve(await leave(nobody, "/sign-in/with/local", "/sign-in"))
    arrived = await nobody.client.get("/sign-in/with/local/back", params=back)
    assert (arrived.status_code, arrived.headers["location"]) == (303, "/c/night-shift/scheduled")
    assert (await nobody.get("/me/sign-in")).status_code == 200

    await world.db.pool.execute("update sessions set authenticated_at = authenticated_at - interval '11 min'")
    where = {"next": "/me/sign-in"}
    address = await leave(nobody, "/sign-in/confirm/with/local", "/sign-in/confirm", where)
    confirmed = await nobody.client.get("/sign-in/with/local/back", params=provider.approve(address))
    assert (confirmed.status_code, confirmed.headers["location"]) == (303, "/me/sign-in")

    identity = encode_id(await world.db.pool.fetchval("select id from identities"))
    gone = await nobody.post(f"/me/identities/{identity}/remove", token=await nobody.token("/me/sign-in"))
    assert gone.status_code == 303
    back = provider.approve(await leave(visit(), "/sign-in/with/local", "/sign-in"))
    assert await world.db.pool.fetchval("select count(*) from identities") == 0


async def test_an_answer_that_another_browser_began_signs_nobody_in(
    site: Site, world: World, visit: Callable[..., Visitor], provider: OpenIdProvider
) -> None:
    """Login CSRF: a link with somebody else's answer, opened by a victim, signed in or not."""
    await link(visit("owner"), provider)
    for victim in (visit(), visit("staff")):
        back = provider.approve(await leave(visit(), "/sign-in/with/local", "/sign-in"))
        before = dict(victim.client.cookies)
        answer = await victim.client.get("/sign-in/with/local/back", params=back)
        assert answer.status_code == 401
        assert "lastcall=" not in answer.headers.get("set-cookie", "")
        assert victim.client.cookies.get("lastcall") == before.get("lastcall")
    assert await world.db.pool.fetchval("select count(*) from sessions where signed_in_by = 'provider'") == 0


ELSEWHERE = (
    "//evil.example.org",
    "/\\evil.example.org",
    "https://evil.example.org",
    "/\t/evil.example.org",
    "javascript:alert(1)",
    "/" + "x" * 5000,
)


async def test_nobody_is_led_to_another_host_after_confirming(
    site: Site, world: World, visit: Callable[..., Visitor], provider: OpenIdProvider
) -> None:
    owner, phone = visit("owner"), device(site)
    await add_passkey(owner, phone)
    await link(owner, provider)
    token = await owner.token("/me/sign-in")
    for where in ELSEWHERE[:-1]:
        answer = phone.get(await options(owner, "/sign-in/confirm/passkey/options", token))
        fields = {"credential": answer, "next": where}
        confirmed = await owner.post("/sign-in/confirm/passkey", fields, token=token)
        assert (confirmed.status_code, confirmed.headers["location"]) == (303, "/"), where
    for where in ELSEWHERE:
        address = await leave(owner, "/sign-in/confirm/with/local", "/me/sign-in", {"next": where})
        confirmed = await owner.client.get("/sign-in/with/local/back", params=provider.approve(address))
        assert (confirmed.status_code, confirmed.headers["location"]) == (303, "/"), where


async def test_every_form_wants_its_token_and_every_answer_its_question(
    site: Site, world: World, visit: Callable[..., Visitor], provider: OpenIdProvider
) -> None:
    owner = visit("owner")
    forms = (
        "/sign-in/passkey/options",
        "/sign-in/passkey",
        "/sign-in/confirm/passkey/options",
        "/sign-in/confirm/passkey",
        "/me/passkeys/options",
        "/me/passkeys",
        "/sign-in/with/local",
        "/sign-in/confirm/with/local",
        "/me/link/local",
    )
    for form in forms:
        assert (await owner.post(form, token="0" * 64)).status_code == 403, form
    assert await world.db.pool.fetchval("select count(*) from sign_in_flows") == 0
    for query in ("", "?state=", "?state=x&code=y", "?code=y", "?error=access_denied&state=%F0%9F%98%80"):
        answer = await owner.get(f"/sign-in/with/local/back{query}")
        assert answer.status_code == 401, query
    assert (await owner.get("/sign-in/with/nowhere/back?state=x&code=y")).status_code == 404
    assert (
        await owner.post("/sign-in/with/nowhere", token=await owner.token("/me/sign-in"))
    ).status_code == 404


async def test_a_no_at_the_provider_and_a_provider_that_lies_are_said_in_a_sentence(
    site: Site, world: World, visit: Callable[..., Visitor], provider: OpenIdProvider
) -> None:
    nobody = visit()
    back = provider.approve(await leave(nobody, "/sign-in/with/local", "/sign-in"))
    no = {"state": back["state"], "error": "access_denied", "error_description": "<script>alert(1)</script>"}
    answer = await nobody.client.get("/sign-in/with/local/back", params=no)
    assert answer.status_code == 422
    assert "Local ID did not confirm it" in answer.text
    assert "alert(1)" not in answer.text
    provider.claims = {"aud": "somebody else"}
    back = provider.approve(await leave(nobody, "/sign-in/with/local", "/sign-in"))
    answer = await nobody.client.get("/sign-in/with/local/back", params=back)
    assert answer.status_code == 503
    assert "did not answer as it must" in answer.text
    provider.claims = {}
    back = provider.approve(await leave(nobody, "/sign-in/with/local", "/sign-in"))
    answer = await nobody.client.get("/sign-in/with/local/back", params=back)
    assert answer.status_code == 401
    assert "does not sign anybody in here" in answer.text


async def test_the_page_in_between_leads_to_the_provider_and_nowhere_else(
    site: Site, world: World, visit: Callable[..., Visitor], provider: OpenIdProvider
) -> None:
    provider.metadata = {
        "authorization_endpoint": f'{provider.issuer}/authorize?x="><script>alert(1)</script>'
    }
    nobody = visit()
    answer = await nobody.post("/sign-in/with/local", token=await nobody.token("/sign-in"))
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    assert "form-action 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["referrer-policy"] == "no-referrer"
    address = ADDRESS.search(answer.text)
    assert address is not None
    assert unquote(address[1]).startswith(f"{provider.issuer}/authorize?")


async def test_where_browsers_have_no_passkeys_none_are_offered(database: Database, world: World) -> None:
    taken = bind("127.0.0.1", 0)
    url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    settings = Settings(port=taken.getsockname()[1], public_url=url)
    async with running_server(settings, database, taken=taken):
        cookies = {"lastcall": world.sessions["owner"]}
        async with httpx2.AsyncClient(base_url=url, cookies=cookies, trust_env=False, verify=PLAIN) as client:
            owner = Visitor(client)
            page = (await owner.get("/me/sign-in")).text
            assert "cannot have passkeys" in page
            assert "Linked accounts" not in page
            token = await owner.token("/me/sign-in")
            for path in ("/me/passkeys/options", "/sign-in/passkey/options", "/sign-in/passkey"):
                assert (await owner.post(path, token=token)).status_code == 404
            assert "passkey" not in (await owner.get("/sign-in")).text


async def test_neither_the_log_nor_the_database_holds_a_secret_of_a_flow(
    site: Site,
    world: World,
    visit: Callable[..., Visitor],
    provider: OpenIdProvider,
    capfd: pytest.CaptureFixture[str],
) -> None:
    owner, phone = visit("owner"), device(site)
    await add_passkey(owner, phone)
    back = provider.approve(await leave(owner, "/me/link/local", "/me/sign-in"))
    nonce = provider.codes[back["code"]]["nonce"]
    await owner.client.get("/sign-in/with/local/back", params=back)
    await owner.client.get("/sign-in/with/local/back", params=back)
    token = await owner.token("/me/sign-in")
    answer = phone.get(await options(owner, "/sign-in/passkey/options", token), party="evil.example.org")
    await owner.post("/sign-in/passkey", {"credential": answer}, token=token)
    secrets = [
        back["code"],
        back["state"],
        nonce,
        "not a real secret",
        *json.loads(answer)["response"].values(),
    ]
    tables = ("sign_in_flows", "identities", "passkeys", "audit_log", "outgoing_mail")
    stored = [
        await world.db.pool.fetchval(f"select coalesce(string_agg(t::text, ' '), '') from {table} t")
        for table in tables
    ]
    out = capfd.readouterr()
    for secret in secrets:
        assert secret
        assert secret not in out.out + out.err
        assert not [table for table, text in zip(tables, stored, strict=True) if secret in text]
    assert replace(phone).credential_id.hex() in stored[2]
