"""The server asks a provider nothing but what may be asked: not its own network, not twice, not for ever."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from tests.people.openid_provider import OpenIdProvider, openid_provider

from lastcall.clock import SYSTEM_CLOCK
from lastcall.outgoing import addresses, exchange
from lastcall.outgoing.addresses import is_public
from lastcall.people.providers.discovery import Discovery
from lastcall.people.providers.transport import BODY_CAP, ProviderClient, ProviderFault

PRIVATE = [
    "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1",
    "169.254.169.254", "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::ffff:a9fe:a9fe", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1",
    "ff02::1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:c0a8:101::", "2001:0:7f00:1::",
    "2001:db8::1", "localhost", "2130706433", "0x7f.1",
]  # fmt: skip
PUBLIC = [
    "8.8.8.8",
    "93.184.215.14",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::",
]


@pytest.fixture
async def local() -> AsyncIterator[OpenIdProvider]:
    async with openid_provider() as provider:
        yield provider


def test_an_address_of_ones_own_network_is_none_in_every_spelling() -> None:
    assert [address for address in PRIVATE if is_public(address)] == []
    assert [address for address in PUBLIC if not is_public(address)] == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "localhost", "2130706433", "169.254.169.254"]
)
async def test_no_spelling_of_loopback_reaches_it(host: str) -> None:
    with pytest.raises(ProviderFault, match="not on the public internet"):
        await ProviderClient(private=False).get(f"https://{host}:9/")


@pytest.mark.parametrize(
    "url",
    [
        "http://id.example.org/",
        "file:///etc/passwd",
        "gopher://id.example.org/",
        "https:///nowhere",
        "https://user@id.example.org/",
        "https://id.example.org:99999/",
        "https://id.example.org/\r\nHost: other",
        "https://id.example.org\\@127.0.0.1/",
        "https://id.example.org/#part",
        None,
        7,
    ],
)
def test_an_address_in_a_document_is_plain_https_or_none(url: object) -> None:
    with pytest.raises(ProviderFault):
        ProviderClient(private=False).checked(url)


def port_of(provider: OpenIdProvider) -> int:
    return int(provider.issuer.rsplit(":", 1)[1])


def loopback_client(monkeypatch: pytest.MonkeyPatch, answers: list[list[str]]) -> ProviderClient:
    """A client to which 127.0.0.1 is the public internet and every other address is not."""
    monkeypatch.setattr(addresses, "is_public", lambda address: address == "127.0.0.1")

    async def look_up(host: str, port: int) -> list[str]:
        return answers.pop(0)

    client = ProviderClient(private=False, look_up=look_up)
    monkeypatch.setattr(client, "checked", lambda url: url)  # loopback speaks plain http
    return client


async def test_the_address_that_was_judged_is_the_one_that_is_asked(
    local: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that tells a public address first and a private one afterwards is asked once."""
    answers = [["127.0.0.1"], ["127.0.0.2"]]
    client = loopback_client(monkeypatch, answers)
    document = await client.get(f"http://id.example.org:{port_of(local)}/.well-known/openid-configuration")
    assert document["issuer"] == local.issuer
    assert answers == [["127.0.0.2"]]
    with pytest.raises(ProviderFault, match="public internet"):
        await client.get(f"http://id.example.org:{port_of(local)}/keys")
    assert local.asked == ["GET /.well-known/openid-configuration"]


async def test_one_private_address_among_public_ones_refuses_the_name(
    local: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = loopback_client(monkeypatch, [["127.0.0.1", "127.0.0.2"]])
    with pytest.raises(ProviderFault, match="public internet"):
        await client.get(f"http://id.example.org:{port_of(local)}/keys")
    assert local.asked == []


async def test_twin_without_the_guard_a_document_leads_into_ones_own_network(
    local: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look_up(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    client = ProviderClient(private=False, look_up=look_up)
    monkeypatch.setattr(client, "checked", lambda url: url)
    with pytest.raises(ProviderFault, match="public internet"):
        await client.get(f"http://id.example.org:{port_of(local)}/keys")
    monkeypatch.setattr(addresses, "is_public", lambda _: True)
    assert await client.get(f"http://id.example.org:{port_of(local)}/keys")


async def test_a_name_with_an_address_that_is_not_reached_is_asked_at_the_next(
    local: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "is_public", lambda _: True)
    client = loopback_client(monkeypatch, [["127.0.0.3", "127.0.0.1"]])
    monkeypatch.setattr(addresses, "is_public", lambda _: True)
    assert "keys" in await client.get(f"http://id.example.org:{port_of(local)}/keys")


async def test_a_redirect_is_not_followed(local: OpenIdProvider) -> None:
    local.answers["/moved"] = b"HTTP/1.1 302 -\r\nLocation: /keys\r\nContent-Length: 0\r\n\r\n"
    with pytest.raises(ProviderFault, match="status 302"):
        await ProviderClient(private=True).get(f"{local.issuer}/moved")
    assert local.asked == ["GET /moved"]


async def test_an_over_long_answer_is_not_read_to_its_end(local: OpenIdProvider) -> None:
    local.answers["/long"] = b"HTTP/1.1 200 -\r\n\r\n" + b'"' + b"x" * (BODY_CAP * 4) + b'"'
    with pytest.raises(ProviderFault, match="longer than any expected"):
        await ProviderClient(private=True).get(f"{local.issuer}/long")


async def test_an_answer_that_never_ends_is_left_after_one_total_time(local: OpenIdProvider) -> None:
    local.answers["/slow"] = b""
    begun = SYSTEM_CLOCK.boot()
    with pytest.raises(ProviderFault, match="in time"):
        await ProviderClient(private=True, total=timedelta(seconds=0.2)).get(f"{local.issuer}/slow")
    assert SYSTEM_CLOCK.boot() - begun < 5


@pytest.mark.parametrize("body", [b"", b"[1]", b"null", b"<html>", b'{"a": ', b"[" * 100_000])
async def test_what_is_no_object_is_no_answer(local: OpenIdProvider, body: bytes) -> None:
    head = f"HTTP/1.1 200 -\r\nContent-Length: {len(body)}\r\n\r\n"
    local.answers["/odd"] = head.encode() + body
    with pytest.raises(ProviderFault, match="no JSON object"):
        await ProviderClient(private=True).get(f"{local.issuer}/odd")


async def test_a_proxy_of_the_environment_is_not_used(
    local: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert "keys" in await ProviderClient(private=True).get(f"{local.issuer}/keys")


async def test_a_discovery_document_may_not_name_private_addresses(local: OpenIdProvider) -> None:
    """The document itself may come from anywhere; what it names is judged when it is asked."""
    public = ProviderClient(private=False)
    for name in ("token_endpoint", "jwks_uri"):
        with pytest.raises(ProviderFault):
            await public.post(f"https://127.0.0.1:{port_of(local)}/{name}", {})
    assert local.asked == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "https://other.example.org"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"token_endpoint": None},
        {"jwks_uri": ["https://id.example.org/keys"]},
        {"token_endpoint_auth_methods_supported": ["private_key_jwt"]},
        {"token_endpoint_auth_methods_supported": 7},
    ],
)
async def test_a_discovery_document_that_does_not_hold_is_not_used(
    local: OpenIdProvider, wrong: dict[str, object]
) -> None:
    local.metadata = wrong
    with pytest.raises(ProviderFault):
        await Discovery(local.issuer, ProviderClient(private=True), SYSTEM_CLOCK).endpoints()


async def test_documents_are_asked_for_once_and_keys_again_at_most_once_a_minute(
    local: OpenIdProvider,
) -> None:
    discovery = Discovery(local.issuer, ProviderClient(private=True), SYSTEM_CLOCK)
    for _ in range(3):
        await discovery.keys()
        await discovery.keys(again=True)
    assert local.asked == ["GET /.well-known/openid-configuration", "GET /keys"]


async def test_the_certificate_is_checked_against_the_name_and_not_the_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is sent to the pinned address first is a TLS greeting that names the provider."""
    greeting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeting.set_result(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0, family=socket.AF_INET)
    client = loopback_client(monkeypatch, [["127.0.0.1"]])
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(ProviderFault):
        await client.get(f"https://id.example.org:{port}/keys")
    assert b"id.example.org" in await greeting
    server.close()
    await server.wait_closed()
    assert exchange.ADDRESSES_TRIED > 1
