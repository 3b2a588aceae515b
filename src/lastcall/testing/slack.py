"""Slack on a loopback port: it takes calls whose tokens it gave, records them, and does wrong what a test tells it to.

async with SlackDouble() as slack:
    settings = Settings(**slack.settings)
    body, headers = slack.command("T1", "U1", "robin")
    ...
    assert slack.said == [("U1", "…")]
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qs, urlencode

CLIENT_ID = "1234567890.1234567890"
FORM = "application/x-www-form-urlencoded"


@dataclass
class SlackDouble:
    """One Slack. ``codes`` are what browsers may come back with, each for a workspace's id and name; ``tokens`` what it
    gave for them. ``fails`` answers the next calls with these words; while ``answers`` is cleared, calls get none.
    """

    codes: dict[str, tuple[str, str]] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    said: list[tuple[str, str]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    fails: list[str] = field(default_factory=list)
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    client_secret: str = field(default_factory=lambda: secrets.token_hex(16))
    signing_secret: str = field(default_factory=lambda: secrets.token_hex(16))
    url: str = ""

    async def __aenter__(self) -> Self:
        self.answers.set()
        self._open: set[asyncio.StreamWriter] = set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._open:
            writer.close()
        await self._server.wait_closed()

    @property
    def settings(self) -> dict[str, Any]:
        """What makes a server use it."""
        return {
            "slack_client_id": CLIENT_ID,
            "slack_client_secret": self.client_secret,
            "slack_signing_secret": self.signing_secret,
            "slack_url": self.url,
        }

    def code(self, team_id: str, team_name: str = "Workspace") -> str:
        """A code as Slack gives it to a browser that put the app into that workspace."""
        made = secrets.token_hex(8)
        self.codes[made] = (team_id, team_name)
        return made

    def command(
        self, team_id: str, user_id: str, user_name: str = "robin", *, at: float | None = None
    ) -> tuple[bytes, dict[str, str]]:
        """The body and the headers of a signed command of that sender."""
        given = {"command": "/lastcall", "team_id": team_id, "user_id": user_id, "user_name": user_name}
        return self.signed(urlencode(given | {"trigger_id": secrets.token_hex(4)}).encode(), FORM, at=at)

    def event(self, team_id: str, kind: str, *, at: float | None = None) -> tuple[bytes, dict[str, str]]:
        """The same of an event that an app is told."""
        moment = time.time() if at is None else at
        call = {"type": "event_callback", "team_id": team_id, "event_time": int(moment)}
        return self.signed(json.dumps(call | {"event": {"type": kind}}).encode(), "application/json", at=at)

    def signed(
        self, body: bytes, content_type: str, *, at: float | None = None
    ) -> tuple[bytes, dict[str, str]]:
        """A body with the headers that Slack puts on it, as if at that time."""
        timestamp = str(int(time.time() if at is None else at))
        digest = hmac.digest(self.signing_secret.encode(), f"v0:{timestamp}:".encode() + body, hashlib.sha256)
        return body, {
            "content-type": content_type,
            "x-slack-request-timestamp": timestamp,
            "x-slack-signature": f"v0={digest.hex()}",
        }

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.split("\r\n")
            headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            method = first.split()[1].rpartition("/")[2]
            self.calls.append(method)
            await self.answers.wait()
            answer = json.dumps(self._answer(method, headers, body)).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
                + f"content-length: {len(answer)}\r\n\r\n".encode()
                + answer
            )
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # Whoever asked left before the answer.
        finally:
            self._open.discard(writer)
            writer.close()

    def _answer(self, method: str, headers: dict[str, str], body: bytes) -> dict[str, Any]:
        if self.fails:
            return {"ok": False, "error": self.fails.pop(0)}
        given = _fields(headers, body)
        if method == "oauth.v2.access":
            return self._exchanged(headers, given)
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.tokens:
            return {"ok": False, "error": "invalid_auth"}
        if method == "auth.revoke":
            del self.tokens[token]
            return {"ok": True, "revoked": True}
        if method == "chat.postMessage":
            self.said.append((given["channel"], given["text"]))
            return {"ok": True, "channel": "D1", "ts": "1.0"}
        return {"ok": False, "error": "unknown_method"}

    def _exchanged(self, headers: dict[str, str], given: dict[str, str]) -> dict[str, Any]:
        basic = base64.b64encode(f"{CLIENT_ID}:{self.client_secret}".encode()).decode()
        is_ours = headers.get("authorization") == f"Basic {basic}" or (
            given.get("client_id"),
            given.get("client_secret"),
        ) == (CLIENT_ID, self.client_secret)
        if not is_ours:
            return {"ok": False, "error": "bad_client_secret"}
        found = self.codes.pop(given.get("code", ""), None)
        if found is None:
            return {"ok": False, "error": "invalid_code"}
        token = f"xoxb-{secrets.token_hex(16)}"
        self.tokens[token] = found[0]
        return {"ok": True, "access_token": token, "team": {"id": found[0], "name": found[1]}}


def _fields(headers: dict[str, str], body: bytes) -> dict[str, str]:
    if headers.get("content-type", "").startswith("application/json"):
        return {name: str(value) for name, value in json.loads(body).items()}
    return {name: values[0] for name, values in parse_qs(body.decode()).items()}
