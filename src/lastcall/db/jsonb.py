"""Values from outside as JSON that the database takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


def jsonb_text(value: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    """``jsonb`` has no zero character, which texts from VRChat may hold; it is replaced by U+FFFD."""
    return msgspec.json.encode(value).replace(b"\\u0000", b"\\ufffd").decode()
