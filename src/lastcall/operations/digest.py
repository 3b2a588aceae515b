"""What was asked, as 32 bytes: a replay is compared with this, never with rows that may have been edited
(ENQ-03).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from lastcall.operations.schedules import Schedule


def request_digest(kind: str, payloads: Sequence[dict[str, Any]], schedule: Schedule) -> bytes:
    """SHA-256 over kind, payloads in their order, and schedule. The order of keys does not count, that of
    lists does.
    """
    asked = {"kind": kind, "payloads": list(payloads), "schedule": schedule.as_asked()}
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).digest()
