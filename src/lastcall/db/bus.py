"""What a transaction says once it is committed. This room knows nothing of what the messages mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast
from uuid import UUID

import structlog

Message = TypeVar("Message")
XidStatus = Literal["in progress", "committed", "aborted", "forgotten"]

log = structlog.get_logger()


@dataclass(frozen=True)
class Hint:
    """Something that live pages of this club show under ``topic`` may have changed; without a club: something that only
    operators see. Harmless to lose."""

    club_id: UUID | None
    topic: str


@dataclass(frozen=True)
class CacheDrop:
    """The entry ``key`` of the in-memory cache named ``cache`` is stale in every process."""

    cache: str
    key: str


class PostCommitBus:
    """Carries messages from committed transactions to whoever subscribed in this process.

    Handlers are plain functions called in the order of subscription; they must not block. One that raises is
    logged and costs neither the writer nor the other handlers anything.
    """

    def __init__(self) -> None:
        self._handlers: defaultdict[type[object], list[Callable[[Any], None]]] = defaultdict(list)
        self._unclear_handlers: list[Callable[[Sequence[object], int], None]] = []

    def subscribe(self, kind: type[Message], handler: Callable[[Message], None]) -> None:
        """Call ``handler`` for every message that is a ``kind`` (``object``: for every message)."""
        self._handlers[kind].append(handler)

    def subscribe_unclear(self, handler: Callable[[Sequence[object], int], None]) -> None:
        """Call ``handler(messages, xid)`` when it is not known whether the transaction ``xid`` was committed.

        The row may still appear later, so the messages must not be taken for delivered or dropped before
        ``xid_status`` is final.
        """
        self._unclear_handlers.append(handler)

    def deliver(self, messages: Sequence[object]) -> None:
        """Hand each message to its subscribers, in order."""
        for message in messages:
            for kind in type(message).__mro__:
                for handler in self._handlers.get(kind, ()):
                    self._call(handler, message)

    def unclear(self, messages: Sequence[object], xid: int) -> None:
        """Hand the messages of a transaction of unknown outcome to those who settle that."""
        for handler in self._unclear_handlers:
            self._call(handler, messages, xid)

    def _call(self, handler: Callable[..., None], *arguments: object) -> None:
        try:
            handler(*arguments)
        except Exception:
            log.exception("message handler failed", handler=getattr(handler, "__qualname__", repr(handler)))


def as_xid_status(text: str | None) -> XidStatus:
    """``pg_xact_status`` answers null for what is too old to be in the commit log: long over, outcome
    forgotten."""
    return "forgotten" if text is None else cast("XidStatus", text)
