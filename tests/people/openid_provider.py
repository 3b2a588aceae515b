"""A small OpenID provider on loopback that a test starts: faithful by default, and it lies where a test says so."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from lastcall.provider_settings import ProviderKind, ProviderSettings

CLIENT, SECRET = "lastcall-test", "not a real secret: %&=+"
SUBJECT = "248289761001"


def signed(claims: dict[str, Any], key: ECKey) -> str:
    return jwt.encode({"alg": "ES256", "kid": key.kid}, claims, key, algorithms=["ES256"])


@dataclass
class OpenIdProvider:
    """``claims`` replaces claims of the ID token (``None`` takes one away); ``sign`` makes the token; ``answers``
    replaces what a path answers: a document, or raw bytes of a whole HTTP answer.
    """

    issuer: str = ""
    key: ECKey = field(default_factory=lambda: ECKey.generate_key("P-256", auto_kid=True))
    metadata: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    sign: Callable[[dict[str, Any], ECKey], str] = signed
    names_itself: bool = True
    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    subject: str = SUBJECT
    ahead: float = 0.0
    """Seconds that its clock is ahead of the host's, to follow a test's."""

    def settings(self, name: str = "local", **other: Any) -> ProviderSettings:
        values = {
            "kind": ProviderKind.OPENID,
            "client_id": CLIENT,
            "client_secret": SECRET,
            "label": "Local ID",
        }
        return ProviderSettings(
            **(values | {"name": name, "issuer": self.issuer, "private_network": True} | other)
        )

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "authorization_response_iss_parameter_supported": self.names_itself,
        } | self.metadata

    def approve(self, address: str) -> dict[str, str]:
        """What the person's click at the provider sends back, as the query's fields."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["client_id"] == CLIENT
        assert asked["response_type"] == "code"
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return {"code": code, "state": asked["state"]} | ({"iss": self.issuer} if self.names_itself else {})

    def id_token(self, asked: dict[str, str]) -> str:
        now = int(time.time() + self.ahead)
        claims = {
            "iss": self.issuer,
            "sub": self.subject,
            "aud": CLIENT,
            "exp": now + 300,
            "iat": now,
            "nonce": asked["nonce"],
            "preferred_username": "robin",
            "email": "robin@example.org",
            "email_verified": True,
        } | self.claims
        return self.sign({name: value for name, value in claims.items() if value is not None}, self.key)

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        asked = self.codes.pop(form.get("code", ""), None)
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode().split(":")
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        is_right = (
            asked is not None
            and [unquote_plus(part) for part in pair] == [CLIENT, SECRET]
            and form["redirect_uri"] == asked["redirect_uri"]
            and asked["code_challenge"] == base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        )
        return (
            {"access_token": "at", "token_type": "Bearer", "id_token": self.id_token(asked)}
            if is_right and asked
            else None
        )

    def answer(self, method: str, target: str, headers: dict[str, str], body: str) -> tuple[int, Any]:
        path, _, query = target.partition("?")
        self.asked.append(f"{method} {path}")
        if path in self.answers:
            return 200, self.answers[path]
        if path == "/.well-known/openid-configuration":
            return 200, self.discovery()
        if path == "/keys":
            return 200, KeySet([self.key]).as_dict()
        if path == "/token":
            form = {name: values[0] for name, values in parse_qs(body).items()}
            tokens = self.token(form, headers.get("authorization", ""))
            return (200, tokens) if tokens else (400, {"error": "invalid_grant"})
        if path == "/authorize":
            asked = parse_qs(query)
            back = asked["redirect_uri"][0] + "?" + urlencode(self.approve(target))
            return (
                200,
                f'<!doctype html><title>Local ID</title><a href="{back.replace("&", "&amp;")}">Continue as Robin</a>',
            )
        return 404, {"error": "not_found"}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.split("\r\n")
            headers = {
                name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)
            }
            body = (await reader.readexactly(int(headers.get("content-length", 0)))).decode()
            method, target, _ = first.split(" ")
            status, content = self.answer(method, target, headers, body)
            if isinstance(content, bytes):
                writer.write(content)
            else:
                media, text = (
                    ("text/html", content)
                    if isinstance(content, str)
                    else ("application/json", json.dumps(content))
                )
                writer.write(
                    f"HTTP/1.1 {status} -\r\nContent-Type: {media}\r\nContent-Length: {len(text.encode())}\r\n"
                    f"Connection: close\r\n\r\n{text}".encode()
                )
            await writer.drain()
            if content == b"":  # an answer that never comes
                await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def openid_provider(**values: Any) -> AsyncIterator[OpenIdProvider]:
    """A provider on a free port of loopback."""
    provider = OpenIdProvider(**values)
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    provider.issuer = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield provider
    finally:
        server.close()
        await server.wait_closed()
