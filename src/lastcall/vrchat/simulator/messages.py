"""Requests and replies inside the simulator, and VRChat's ways of putting an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import msgspec

FULL_STOP = "\u2024"
"""What VRChat writes at the end of many of its messages: it looks like a full stop and is none."""


@dataclass(frozen=True)
class Request:
    """A parsed request. ``path`` is without the base path and the query; header names are lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """The body as an object; anything else is an empty one."""
        try:
            document = msgspec.json.decode(self.body)
        except msgspec.DecodeError:
            return {}
        return document if isinstance(document, dict) else {}

    def parameter(self, name: str) -> str | None:
        values = parse_qs(self.query).get(name)
        return values[0] if values else None

    def number(self, name: str, default: int, most: int) -> int:
        """A query parameter as a whole number between 0 and ``most``."""
        text = self.parameter(name) or ""
        return min(int(text), most) if text.isdecimal() else default

    def cookies(self) -> dict[str, str]:
        pairs = (part.strip().partition("=") for part in self.headers.get("cookie", "").split(";"))
        return {name: value for name, _, value in pairs if name}


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = field(default=())
    content_type: str = "application/json; charset=utf-8"


def json_reply(document: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """Compact JSON: the official SDK finds the two-factor question only in that form."""
    return Reply(status, msgspec.json.encode(document), headers)


def success(message: str) -> Reply:
    return json_reply({"success": {"message": message, "status_code": 200}})


def refusal(status: int, message: str) -> Reply:
    """The nested envelope."""
    return json_reply({"error": {"message": message, "status_code": status}}, status)


def flat_refusal(status: int, message: str, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """The flat envelope, which comes from VRChat's outer layers."""
    return json_reply({"message": message, "statusCode": status}, status, headers)
