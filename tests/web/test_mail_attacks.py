"""A thousand requests for sign-in mails, with made-up addresses and hosts, against the real server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from tests.web.conftest import Site, Visitor, World
from tests.web.test_intake import line_to

import lastcall.mail.limits as mail_limits
import lastcall.people.account as account
from lastcall.cli.server import bind, running_server
from lastcall.db.limits import Limit
from lastcall.people.limits import SIGN_IN_REQUESTS

Visit = Callable[..., Visitor]
OWNER = "owner@example.org"


async def asking(visitor: Visitor, forwarded_for: str, email: str) -> bytes:
    """One request for a mail, as bytes that only differ in the headers that a client makes up."""
    token = await visitor.token()
    cookies = "; ".join(f"{name}={value}" for name, value in visitor.client.cookies.items())
    body = f"form_token={token}&email={email}"
    return (
        f"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nCookie: {cookies}\r\n"
        f"X-Forwarded-For: {forwarded_for}\r\nForwarded: for={forwarded_for}\r\nX-Real-IP: {forwarded_for}\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


async def answers(site: Site, template: bytes, first: int, number: int) -> Counter[int]:
    """The statuses of that many such requests, each from another made-up address."""
    got: Counter[int] = Counter()
    async with line_to(site) as line:
        for one in range(first, first + number):
            made_up = f"10.{one // 250}.{one % 250}.7".encode()
            await line.send(template.replace(b"198.51.100.9", made_up))
            got[(await line.answer())[0]] += 1
    return got


async def test_of_a_thousand_sign_in_mails_the_limits_let_five_through(
    world: World, site: Site, visit: Visit
) -> None:
    """No header makes up a new source, and the thousandth refusal costs the database what the first did."""
    template = await asking(visit(), "198.51.100.9", OWNER)
    assert await answers(site, template, 0, SIGN_IN_REQUESTS.count) == {303: SIGN_IN_REQUESTS.count}
    costs = []
    for first in (100, 300, 670):
        before = site.database.statements
        assert await answers(site, template, first, 370) == {429: 370}
        costs.append(site.database.statements - before)
    await site.stop()  # what was asked for is sent, or was refused
    assert len(site.mail.received) == len(site.mail.to(OWNER)) == mail_limits.PER_ADDRESS.count
    assert site.mail.connections == mail_limits.PER_ADDRESS.count
    assert costs[1:] == [370, 370]  # during the first, mails were still refused in the background


async def test_behind_a_trusted_proxy_each_client_has_a_limit_of_its_own(
    world: World, site: Site, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "SIGN_IN_REQUESTS", Limit("one", 1, timedelta(hours=1)))
    taken = bind("127.0.0.1", 0)
    port = taken.getsockname()[1]
    trusting = replace(site.settings, port=port, trust_proxy=True)
    template = await asking(visit(), "198.51.100.9", "nobody@example.org")
    async with running_server(trusting, world.db, taken=taken) as server:
        behind = replace(site, settings=trusting, server=server, url=f"http://127.0.0.1:{port}")
        statuses = []
        async with line_to(behind) as line:
            # The client wrote the first hop, the proxy added the second.
            for hops in ("10.0.0.1, 203.0.113.5", "10.0.0.2, 203.0.113.5", "10.0.0.1, 203.0.113.6"):
                await line.send(template.replace(b"198.51.100.9", hops.encode()))
                statuses.append((await line.answer())[0])
    assert statuses == [303, 429, 303]


async def test_a_link_leads_to_the_public_address_whatever_the_request_says(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit()
    evil = {"X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example", "X-Forwarded-Proto": "evil"}
    visitor.client.headers.update(evil | {"Host": "localhost", "X-Original-Host": "evil.example"})
    fields = {"form_token": await visitor.token(), "email": OWNER}
    assert (await visitor.client.post("/sign-in", data=fields)).status_code == 303
    mail = await site.mail.mail_to(OWNER)
    assert mail.link.startswith(f"{site.url}/sign-in/")
    assert b"evil" not in mail.raw
    assert (
        await visitor.client.post("/sign-in", data=fields, headers={"Host": "evil.example"})
    ).status_code == 421
    assert urlsplit(mail.link).netloc == urlsplit(site.url).netloc
    await site.stop()
    assert len(site.mail.received) == 1
