"""What a log line of an error shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
FAILING = """
import sys
sys.stderr.isatty = lambda: {readable}
import structlog
from lastcall.cli.logs import set_up_logs

def fail():
    key = "lck_" + "secret" * 5
    raise ValueError("the reason")

set_up_logs()
try:
    fail()
except ValueError as error:
    structlog.get_logger().error("request_failed", exc_info=error)
"""


@pytest.mark.parametrize("readable", [True, False])
def test_the_trace_of_an_error_shows_no_values_of_variables(readable: bool) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FAILING.format(readable=readable)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "request_failed" in ended.stderr
    assert "ValueError" in ended.stderr
    assert "the reason" in ended.stderr
    assert "lck_secret" not in ended.stderr


SECRETS = (
    "/sign-in/" + "qZ8" * 5,
    "/invites/" + "a-token" * 3,
    "lc_" + "Ab3" * 14 + "x",
    "lck_" + "Ab3" * 10,
    "Ab3_-" * 8 + "xyz",
    "Bearer " + "abcdef.ghi",
    "postgresql://lastcall:hunter2@db/lastcall",
    "smtps://us%40er:hun%2Fter@smtp.example.org",
    "/sign-in/discord/callback?code=abc.def&state=ghi",
)
HIDDEN = (
    "qZ8qZ8",
    "a-tokena-token",
    "Ab3Ab3",
    "Ab3_-Ab3",
    "abcdef.ghi",
    "hunter2",
    "hun%2Fter",
    "abc.def",
    "=ghi",
)
SAYING = """
import logging, sys
sys.stderr.isatty = lambda: {readable}
import structlog
from lastcall.cli import logs
{twin}
logs.set_up_logs()
for secret in {secrets!r}:
    structlog.get_logger().info("asked", path=secret, inside=[{{"deep": secret}}])
    logging.getLogger("uvicorn.error").warning("about %s", secret)
    try:
        raise ValueError("about " + secret)
    except ValueError as error:
        structlog.get_logger().error("request_failed", exc_info=error)
structlog.get_logger().info("asked", path="/sign-in/passkey", hash="{hash}", id="01kxy4c8sdfq5e2m3n4p5r6s7t")
"""


def said(readable: bool, twin: str = "") -> str:
    script = SAYING.format(readable=readable, secrets=SECRETS, twin=twin, hash="ab" * 32)
    return subprocess.run(
        [sys.executable, "-c", script],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    ).stderr


@pytest.mark.parametrize("readable", [True, False])
def test_no_line_shows_a_token_a_key_or_a_password_however_it_came_there(readable: bool) -> None:
    shown = said(readable)
    assert [secret for secret in HIDDEN if secret in shown] == []
    for kept in (
        "/sign-in/passkey",
        "ab" * 32,
        "01kxy4c8sdfq5e2m3n4p5r6s7t",
        "smtp.example.org",
        "ValueError",
    ):
        assert kept in shown


def test_without_taking_them_out_every_one_of_them_would_be_shown() -> None:
    """The twin."""
    shown = said(False, "logs.redact = lambda line: line")
    assert [secret for secret in HIDDEN if secret not in shown] == []


COOKIE = "authcookie_0a1b2c3d"
ASKING = """
import asyncio, logging
import httpx2
from lastcall.cli import logs
from lastcall.clock import SYSTEM_CLOCK
from lastcall.vrchat.cookies import Cookies
from lastcall.vrchat.transport import Transport

async def answer(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    writer.write(
        b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nSet-Cookie: auth={cookie}; Path=/; HttpOnly\\r\\n"
        b"Set-Cookie: other={cookie}; Path=/\\r\\n\\r\\n{{}}"
    )
    await writer.drain()

async def by_the_library(url):
    async with httpx2.AsyncClient(trust_env=False) as client:
        assert (await client.get(url)).cookies["auth"] == "{cookie}"

async def by_the_collector(url):
    cookies = Cookies()
    transport = Transport(url, "Lastcall/1 tester@example.org", cookies, SYSTEM_CLOCK)
    await transport.exchange("GET", "/config")
    await transport.close()
    assert cookies.header() == "auth={cookie}"

async def main():
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        await {way}("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1])

{twin}
logs.set_up_logs()
logging.getLogger({lowered!r}).setLevel(logging.DEBUG)
asyncio.run(main())
"""
UNGUARDED = "logs.QUIET = ()\nlogs.redact = lambda line: line"


def said_of_a_call(lowered: str, twin: str = "", *, way: str = "by_the_library") -> str:
    """What is written while an answer sets a session's cookie, with the level of that logger at DEBUG."""
    return subprocess.run(
        [sys.executable, "-c", ASKING.format(cookie=COOKIE, lowered=lowered, twin=twin, way=way)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    ).stderr


def test_a_lowered_level_shows_no_head_of_an_answer() -> None:
    shown = said_of_a_call("")
    assert "selector" in shown  # the level is lowered: asyncio says what it waits with
    assert "receive_response_headers" not in shown


@pytest.mark.parametrize("twin", ["", "logs.QUIET = ()"])
def test_no_lowered_level_shows_a_cookie(twin: str) -> None:
    """Not even that of the library's own logger, and not without the level that keeps the library quiet."""
    shown = said_of_a_call("httpcore2.http11", twin)
    assert "receive_response_headers" in shown
    assert COOKIE not in shown


def test_without_both_a_lowered_level_would_show_it() -> None:
    """The twin."""
    assert COOKIE in said_of_a_call("", UNGUARDED)


def test_a_call_to_vrchat_says_nothing_of_its_head_to_any_logger() -> None:
    shown = said_of_a_call("", UNGUARDED, way="by_the_collector")
    assert "selector" in shown
    assert COOKIE not in shown
