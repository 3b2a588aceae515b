"""A server of the worker API that follows a script: real HTTP, no database, every call kept for the test."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Self

import msgspec

from lastcall.collector.state import fresh_id
from lastcall.protocol import membership as ms
from lastcall.protocol import messages as m
from lastcall.protocol import reads as r
from lastcall.protocol import telemetry as t
from lastcall.protocol.calls import CALLS
from lastcall.protocol.outcomes import Outcome

EPOCH = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


STATES = {
    "member": "active",
    "requested": "awaiting_approval",
    "invited": "awaiting_invite",
    "banned": "blocked",
    "userblocked": "blocked",
}
"""What follows from the account's standing; any other leaves the state as it is."""


class Drop(Exception):
    """Close the connection without an answer."""


Handler = Callable[[Any], Awaitable[m.Message]]


class Refusal(Exception):
    def __init__(self, status: int, code: str, detail: str = "No.") -> None:
        super().__init__(detail)
        self.problem = m.Problem(status=status, code=code, detail=detail)


class ScriptedServer:
    """Hands out the work it is given and says yes to everything, unless a test replaces a handler.

    ``state`` and ``features`` are those of its connection; the state follows what is reported of the account.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.club_id, self.connection_id = fresh_id(), fresh_id()
        self.calls: list[tuple[str, Any]] = []
        self.pending: deque[m.ClaimedOperation] = deque()
        self.handlers: dict[str, Handler] = {}
        self.requests_per_minute = 30
        self.state = "active"
        self.features: tuple[str, ...] | None = ("membership_management",)
        self.reads: deque[r.ClaimedRead] = deque()
        self.windows: deque[t.AuditWindow] = deque()
        self.is_look_due = False
        self.completed: dict[str, m.Complete] = {}
        self.url = ""
        self._changed = asyncio.Condition()
        self._token = 0
        self._tasks: set[asyncio.Task[None]] = set()

    # --- for the test

    async def add(
        self,
        kind: str,
        execute_before_ms: int = 900_000,
        life_ms: int = 240_000,
        **payload: Any,
    ) -> str:
        operation = m.ClaimedOperation(
            operation_id=fresh_id(),
            nonce=fresh_id(),
            kind=kind,
            payload=payload,
            epoch=EPOCH,
            execute_before_ms=execute_before_ms,
            life_ms=life_ms,
        )
        async with self._changed:
            self.pending.append(operation)
            self._changed.notify_all()
        return operation.operation_id

    async def ask(self, kind: str, life_ms: int = 60_000, **params: Any) -> str:
        """Somebody at a screen wants to read something."""
        read = r.ClaimedRead(read_id=fresh_id(), nonce=fresh_id(), kind=kind, params=params, life_ms=life_ms)
        async with self._changed:
            self.reads.append(read)
            self._changed.notify_all()
        return read.read_id

    async def look(self) -> None:
        """A look at the group is due: one more pass, with nothing else to do."""
        async with self._changed:
            self.is_look_due = True
            self._changed.notify_all()

    async def until(self, call: str, count: int = 1, within: float = 15.0) -> Any:
        """The ``count``-th call of this name, once it has come."""

        async def look() -> Any:
            async with self._changed:
                await self._changed.wait_for(lambda: len(self.of(call)) >= count)
            return self.of(call)[count - 1]

        return await asyncio.wait_for(look(), within)

    def of(self, call: str) -> list[Any]:
        return [sent for name, sent in self.calls if name == call]

    def names(self, *without: str) -> list[str]:
        return [name for name, _sent in self.calls if name not in without]

    # --- the answers

    async def answer(self, name: str, sent: Any) -> m.Message:
        async with self._changed:
            self.calls.append((name, sent))
            self._changed.notify_all()
        handler = self.handlers.get(name) or getattr(self, name)
        answer: m.Message = await handler(sent)
        return answer

    async def hello(self, _sent: m.Hello) -> m.Message:
        return m.HelloAnswer(account_state="ready", requests_per_minute=self.requests_per_minute)

    async def wait(self, _sent: m.Wait) -> m.Message:
        async with self._changed:
            await self._changed.wait_for(lambda: bool(self.pending or self.reads or self.is_look_due))
        return m.WaitAnswer(due=(m.DueConnection(club_id=self.club_id, connection_id=self.connection_id),))

    async def lease(self, _sent: m.Lease) -> m.Message:
        self._token += 1
        self.is_look_due = False
        return m.LeaseAnswer(
            epoch=EPOCH,
            fencing_token=self._token,
            life_ms=300_000,
            state=self.state,
            group_id=self.group_id,
            features=self.features,
            requests_per_minute=self.requests_per_minute,
            account_requests_per_minute=30,
        )

    async def renew(self, _sent: m.Renew) -> m.Message:
        return m.RenewAnswer(
            life_ms=300_000, requests_per_minute=self.requests_per_minute, account_requests_per_minute=30
        )

    async def release(self, _sent: m.Release) -> m.Message:
        return m.Done()

    async def failure(self, _sent: m.Failure) -> m.Message:
        return m.Done()

    async def allowance(self, _sent: m.Allowance) -> m.Message:
        return m.AllowanceAnswer(is_granted=True, limit=30, window_ms=60_000)

    async def claim(self, _sent: m.Claim) -> m.Message:
        return m.ClaimAnswer(operation=self.pending.popleft() if self.pending else None)

    async def authorize(self, _sent: m.Authorize) -> m.Message:
        return m.AuthorizeAnswer(is_authorized=True, state="submitted")

    async def complete(self, sent: m.Complete) -> m.Message:
        self.completed[sent.claim.operation_id] = sent
        return m.Recorded(is_recorded=True, state=sent.outcome.value)

    async def reject(self, _sent: m.Reject) -> m.Message:
        return m.Recorded(is_recorded=True, state=Outcome.REJECTED.value)

    async def defer(self, _sent: m.Defer) -> m.Message:
        return m.Recorded(is_recorded=True, state="pending")

    async def membership(self, sent: ms.Membership) -> m.Message:
        self.state = STATES.get(sent.group.membership, self.state)
        return ms.MembershipAnswer(state=self.state)

    async def left(self, _sent: ms.Left) -> m.Message:
        self.state = "disconnected"
        return m.Done()

    async def groups(self, _sent: ms.Groups) -> m.Message:
        served = ms.GroupServed(
            club_id=self.club_id,
            connection_id=self.connection_id,
            group_id=self.group_id,
            state=self.state,
            features=self.features or (),
        )
        return ms.GroupsAnswer(groups=(served,))

    async def read_claim(self, _sent: r.ReadClaim) -> m.Message:
        return r.ReadClaimAnswer(read=self.reads.popleft() if self.reads else None)

    async def read_complete(self, _sent: r.ReadComplete) -> m.Message:
        return r.ReadRecorded(is_recorded=True)

    async def read_failed(self, _sent: r.ReadFailed) -> m.Message:
        return r.ReadRecorded(is_recorded=True)

    async def sample(self, _sent: t.Sample) -> m.Message:
        return t.Kept(is_recorded=True)

    async def audit_claim(self, _sent: t.AuditClaim) -> m.Message:
        return t.AuditClaimAnswer(window=self.windows.popleft() if self.windows else None)

    async def audit_page(self, _sent: t.AuditPage) -> m.Message:
        return t.Kept(is_recorded=True)

    # --- HTTP

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, Drop):
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                name = head.split()[1].rsplit("/", 1)[1]
                length = int(head.split("content-length:")[1].split()[0])
                sent = msgspec.json.decode(await reader.readexactly(length), type=CALLS[name][0])
                status, body = await self._reply(name, sent)
                head = f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
            finally:
                writer.close()

    async def _reply(self, name: str, sent: Any) -> tuple[int, bytes]:
        try:
            return 200, msgspec.json.encode(await self.answer(name, sent))
        except Refusal as refusal:
            return refusal.problem.status, msgspec.json.encode(refusal.problem)
