"""What waits to be told to the other processes, folded together, and its form on the wire."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from lastcall.db.bus import CacheDrop, Hint
from lastcall.deadlines.signals import Missed, Signal
from lastcall.deadlines.times import to_datetime, to_microseconds

MOST = 5000
"""Messages that wait at most, while the channel is down. Beyond that, *all may have changed* says it in
one.
"""

PAYLOAD = 7900
"""Bytes in one NOTIFY; the server's limit is 8000."""


@dataclass(frozen=True, slots=True)
class UnclearSignal:
    """``owner`` must be reread until the outcome of transaction ``xid`` is known."""

    owner: str
    xid: int


Message = Signal | UnclearSignal | CacheDrop | Hint | Missed


class Outbox:
    """Messages in the order of their arrival. Of one owner's deadlines only the lowest is kept."""

    def __init__(self) -> None:
        self._lowest: dict[str, Signal] = {}
        self._others: dict[Message, None] = {}

    def add(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if isinstance(message, Signal) and message.deadline is not None:
                known = self._lowest.get(message.owner)
                if known is None or known.deadline is None or message.deadline < known.deadline:
                    self._lowest[message.owner] = message
            else:
                self._others[message] = None
        if len(self._lowest) + len(self._others) > MOST:
            self._lowest.clear()
            # What a receiver cannot find out by rereading has to be told all the same.
            told = [message for message in self._others if isinstance(message, UnclearSignal)]
            self._others = dict.fromkeys([Missed(), *told])

    def take(self) -> Sequence[Message]:
        """Everything that waits; nothing does afterwards."""
        messages = (*self._lowest.values(), *self._others)
        self._lowest.clear()
        self._others.clear()
        return messages


def payloads(messages: Iterable[Message]) -> Iterator[str]:
    """JSON lists, each short enough for one NOTIFY."""
    parts: list[str] = []
    size = 2
    for message in messages:
        part = json.dumps(_encode(message), separators=(",", ":"))
        if parts and size + len(part) + 1 > PAYLOAD:
            yield f"[{','.join(parts)}]"
            parts, size = [], 2
        parts.append(part)
        size += len(part) + 1
    if parts:
        yield f"[{','.join(parts)}]"


def read_payload(payload: str) -> list[Message]:
    """The reverse. What is not understood (a process of another release) becomes ``Missed``."""
    try:
        return [_decode(item) for item in json.loads(payload)]
    except (ValueError, TypeError, AttributeError):
        return [Missed()]


def _encode(message: Message) -> list[str | int | None]:
    match message:
        case Signal(owner, None):
            return ["signal", owner, None]
        case Signal(owner, deadline) if deadline is not None:
            return ["signal", owner, to_microseconds(deadline)]
        case UnclearSignal(owner, xid):
            return ["unclear", owner, xid]
        case CacheDrop(cache, key):
            return ["drop", cache, key]
        case Hint(club_id, topic):
            return ["hint", None if club_id is None else str(club_id), topic]
        case _:
            return ["missed"]


def _decode(item: Sequence[object]) -> Message:
    match item:
        case ["signal", str(owner), None]:
            return Signal(owner)
        case ["signal", str(owner), int(deadline)]:
            return Signal(owner, to_datetime(deadline))
        case ["unclear", str(owner), int(xid)]:
            return UnclearSignal(owner, xid)
        case ["drop", str(cache), str(key)]:
            return CacheDrop(cache, key)
        case ["hint", None, str(topic)]:
            return Hint(None, topic)
        case ["hint", str(club_id), str(topic)]:
            return Hint(UUID(club_id), topic)
        case _:
            return Missed()
