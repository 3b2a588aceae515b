"""The server's time for a composer that checks a time before it is sent (ENQ-10).

Each question brings a nonce that comes back with the answer: an answer that was kept somewhere on the way is seen to
be another question's. What counts in the end is the window at the enqueue, transit included.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from lastcall.db.transaction import Reader
from lastcall.errors import Invalid
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

NONCE_PATTERN = "^[A-Za-z0-9_-]{16,64}$"
_NONCE = re.compile(NONCE_PATTERN.rstrip("$"))


@dataclass(frozen=True)
class ClockReading:
    """The database's time ``now``, read after the question with that ``nonce`` came."""

    nonce: str
    now: datetime


async def server_clock(tx: Reader, actor: Actor, nonce: str) -> ClockReading:
    """Read the clock. Raises ``Invalid`` for what is no nonce."""
    actor.require_scope(Scope.READ)
    if _NONCE.fullmatch(nonce) is None:
        raise Invalid(
            "nonce_invalid",
            "A nonce has 16 to 64 letters, digits, hyphens or underscores.",
            advice="Make a new one for each question.",
            field="nonce",
        )
    return ClockReading(nonce, await tx.raw.fetchval("select lastcall_now()"))
