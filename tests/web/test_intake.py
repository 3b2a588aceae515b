"""Before every route: made-up hosts and addresses, bodies too large and requests too slow."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import structlog
from tests.web.conftest import Site

import lastcall.api.intake as intake
import lastcall.cli.connections as connections
from lastcall.api.client import right_most
from lastcall.api.intake import BODY_LIMIT, Intake, true_client
from lastcall.cli.connections import Connection
from lastcall.testing.waiting import eventually

SOON = timedelta(seconds=0.4)


class Line:
    """One raw connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, bytes]:
        """Status and the rest of the answer, headers included."""
        async with asyncio.timeout(20):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(x[15:]) for x in head.lower().split(b"\r\n") if x[:15] == b"content-length:"), 0
            )
            return int(head.split(b" ", 2)[1]), head + await self.reader.readexactly(length)


@asynccontextmanager
async def line_to(site: Site) -> AsyncIterator[Line]:
    parts = urlsplit(site.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        yield Line(reader, writer)
    finally:
        writer.transport.abort()


async def ask(site: Site, head: str) -> tuple[int, bytes]:
    async with line_to(site) as line:
        await line.send(head.replace("\n", "\r\n").encode() + b"\r\n\r\n")
        return await line.answer()


async def test_no_page_answers_to_a_made_up_host_and_none_repeats_one(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A made-up host would otherwise come back in links and mails, or open a local server to a foreign page."""
    for host in ("evil.example", "localhost.evil.example", "evil.example:8420", "[::2]", "@", ""):
        for path in ("/sign-in", "/", "/nowhere", "/api/v1/nowhere"):
            status, answer = await ask(site, f"GET {path} HTTP/1.1\nHost: {host}")
            assert (status, b"evil" in answer) == (421, False), (host, path)
            assert b"frame-ancestors 'none'" in answer
    assert (await ask(site, "GET /sign-in HTTP/1.0"))[0] == 421
    assert (await ask(site, "GET /sign-in HTTP/1.1\nHost: localhost\nHost: evil.example"))[0] == 400
    for host in ("localhost", "127.0.0.1:1", "[::1]:8420", "LOCALHOST"):
        assert (await ask(site, f"GET /sign-in HTTP/1.1\nHost: {host}"))[0] == 200
    assert (await ask(site, "GET /ops/health HTTP/1.1\nHost: 10.0.0.7"))[0] == 200
    forwarded = "X-Forwarded-Host: evil.example\nForwarded: host=evil.example\nX-Forwarded-Proto: evil"
    for path in ("/sign-in", "/", "/nowhere", "/sign-in/abc"):
        _, answer = await ask(site, f"GET {path} HTTP/1.1\nHost: localhost\n{forwarded}")
        assert b"evil" not in answer
    absolute = await ask(site, "GET http://evil.example/sign-in HTTP/1.1\nHost: localhost")
    assert b"evil" not in absolute[1]
    monkeypatch.setattr(Intake, "_check_host", lambda *_: None)  # the twin: without the check it is served
    assert (await ask(site, "GET /sign-in HTTP/1.1\nHost: evil.example"))[0] == 200


def scope(*forwarded: str) -> Any:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    return {"client": ("192.0.2.1", 4711), "headers": [*headers, (b"forwarded", b"for=198.51.100.9")]}


def test_without_a_trusted_proxy_no_header_changes_who_asks() -> None:
    for forged in (["198.51.100.9"], ["198.51.100.9, 203.0.113.5"], ["a"], []):
        assert true_client(scope(*forged), trust_proxy=False) == ("192.0.2.1", 4711)


@pytest.mark.parametrize(
    ("forwarded", "seen"),
    [
        (["203.0.113.5"], "203.0.113.5"),
        (["198.51.100.9, 203.0.113.5"], "203.0.113.5"),
        (["198.51.100.9", "203.0.113.5"], "203.0.113.5"),
        (["198.51.100.9, 203.0.113.5:8443"], "203.0.113.5"),
        (["198.51.100.9, [2001:db8::5]:8443"], "2001:db8::5"),
        (["2001:DB8::5"], "2001:db8::5"),
        (["203.0.113.5, not an address"], "192.0.2.1"),
        (["203.0.113.5,"], "192.0.2.1"),
        ([], "192.0.2.1"),
    ],
)
def test_with_one_only_the_hop_that_the_proxy_added_counts(forwarded: list[str], seen: str) -> None:
    client = true_client(scope(*forwarded), trust_proxy=True)
    assert client is not None
    assert client[0] == seen


def test_the_left_most_hop_would_be_whatever_the_client_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of the above."""
    monkeypatch.setattr(intake, "right_most", lambda values: right_most([b",".join(values).split(b",")[0]]))
    assert true_client(scope("198.51.100.9, 203.0.113.5"), trust_proxy=True) == ("198.51.100.9", 0)


async def test_the_log_names_the_true_client_and_neither_tokens_nor_queries() -> None:
    async def inner(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})

    async def nothing(*_: Any) -> None: ...

    layer = Intake(inner, public_url="http://localhost", trust_proxy=False, headers=[], logs_requests=True)
    asked = scope("198.51.100.9") | {"type": "http", "method": "GET", "query_string": b"code=abc"}
    asked["headers"].append((b"host", b"localhost"))
    with structlog.testing.capture_logs() as lines:
        await layer(asked | {"path": "/sign-in/q8Zs_short-token-of-1"}, nothing, nothing)
        await layer(asked | {"path": "/c/night-shift/scheduled"}, nothing, nothing)
    assert [(x["path"], x["client"], x["status"]) for x in lines] == [
        ("/sign-in/…", "192.0.2.1", 204),
        ("/c/night-shift/scheduled", "192.0.2.1", 204),
    ]
    assert "code" not in str(lines)


async def test_an_address_with_other_letters_is_known_by_its_name_in_dns() -> None:
    async def inner(*_: Any) -> None:
        passed.append(True)

    async def nothing(*_: Any) -> None: ...

    passed: list[bool] = []
    layer = Intake(
        inner, public_url="https://bücher.example", trust_proxy=False, headers=[], logs_requests=False
    )
    asked = {"type": "http", "method": "GET", "path": "/", "client": None}
    for host in (b"xn--bcher-kva.example", b"XN--BCHER-KVA.example:443"):
        await layer(asked | {"headers": [(b"host", host)]}, nothing, nothing)
    assert passed == [True, True]


FORM = "POST /sign-in/abc HTTP/1.1\nHost: localhost\nContent-Type: application/x-www-form-urlencoded\n"


async def test_a_body_too_large_is_refused_before_or_while_it_comes(site: Site) -> None:
    for length in (BODY_LIMIT + 1, 10**15):
        status, answer = await ask(site, f"{FORM}Content-Length: {length}")
        assert status == 413
        assert b"1024 KiB" in answer
    worker = await ask(site, f"POST /worker/v1/hello HTTP/1.1\nHost: x\nContent-Length: {BODY_LIMIT + 1}")
    assert worker[0] == 413
    assert b'"code":"body_too_large"' in worker[1]
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with line_to(site) as line:
        await line.send(f"{FORM}Transfer-Encoding: chunked\n\n".replace("\n", "\r\n").encode())
        for _ in range(1024):  # 64 MiB
            await line.send(chunk)
        status, answer = await line.answer()
        assert status == 413
        assert b"Too large" in answer
        # What came after the answer was thrown away, and the connection still works.
        await line.send(b"0\r\n\r\nGET /ops/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await line.answer())[0] == 200
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024  # KiB


async def test_a_form_with_as_much_as_is_allowed_is_read(site: Site) -> None:
    async with line_to(site) as line:
        await line.send(f"{FORM}Content-Length: {BODY_LIMIT}\n\n".replace("\n", "\r\n").encode())
        await line.send(b"a=" + b"x" * (BODY_LIMIT - 2))
        assert (await line.answer())[0] == 403


async def test_a_body_that_does_not_come_ends_the_request(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "BODY_TIMEOUT", SOON)
    for way in ("Content-Length: 100\n\na=", "Transfer-Encoding: chunked\n\n2\na="):
        async with line_to(site) as line:
            await line.send((FORM + way).replace("\n", "\r\n").encode())
            status, answer = await line.answer()
            assert status == 408
            assert b"Too slow" in answer


async def slowly(line: Line, request: bytes, over: timedelta) -> bool:
    """Send byte by byte over that time; whether the server still listened at the end."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number, byte in enumerate(request):
        due = began + over.total_seconds() * number / len(request)
        await eventually(lambda due=due: loop.time() >= due)
        if line.reader.at_eof():
            return False
        try:
            await line.send(bytes([byte]))
        except ConnectionError:
            return False
    return True


async def test_a_head_that_comes_byte_by_byte_is_cut_off(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start of a connection, and after an answer, when each byte would begin uvicorn's own wait anew."""
    monkeypatch.setattr(connections, "HEAD_TIMEOUT", SOON)
    request = b"GET /ops/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with line_to(site) as line:
        assert not await slowly(line, request, 3 * SOON)
    async with line_to(site) as line:
        await line.send(request)
        assert (await line.answer())[0] == 200
        assert not await slowly(line, request, 3 * SOON)
    async with line_to(site) as line:
        await line.send(b"GET /ops/health HTTP/1.1\r\nHost: " + b"x" * connections.HEAD_LIMIT)
        await line.send(b"x" * 100_000)
        assert (await line.answer())[0] == 400
    monkeypatch.setattr(Connection, "_give_up", lambda _: None)  # the twin: it would be waited for
    async with line_to(site) as line:
        assert await slowly(line, request, 3 * SOON)
        assert (await line.answer())[0] == 200
