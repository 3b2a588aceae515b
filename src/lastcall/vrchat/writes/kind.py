"""What one kind of write consists of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lastcall.vrchat.evidence import OwnMember
from lastcall.vrchat.transport import SendResult
from lastcall.vrchat.writes.judging import Judgement, Write
from lastcall.vrchat.writes.payload import Payload, read_payload


@dataclass(frozen=True, kw_only=True)
class WriteKind:
    """A kind as the collector sees it. ``cost`` is in provider requests, without the identity read.

    ``plan_read`` raises a ``ProviderFault`` when the evidence forbids the write; ``judge`` says what became
    of it.
    """

    name: str
    payload: type[Payload]
    cost: int
    grants: tuple[str, ...]
    plan_read: Callable[[Any, OwnMember], Write]
    judge: Callable[[Write, SendResult], Judgement]

    def plan(self, payload: Any, evidence: OwnMember) -> Write:
        """Read the payload as it came over the wire and plan its write. Raises ``InvalidInput`` for a bad
        one."""
        return self.plan_read(read_payload(payload, self.payload), evidence)
