"""One VRChat account as this process runs it: its server calls, its way to VRChat, and what stops it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, TypeVar

from lastcall.clock import Clock
from lastcall.collector.journal import Journal
from lastcall.collector.memory import Memory
from lastcall.collector.server import Server
from lastcall.collector.tally import Tally
from lastcall.collector.waiting import first_of
from lastcall.collector.windows import Windows
from lastcall.protocol.constants import IDENTITY_AGE, LOCAL_WINDOW, RESERVATION_MOST, RETRY_DELAY_LEAST
from lastcall.protocol.messages import Allowance, AllowanceAnswer, Call, LeaseRef, Message
from lastcall.protocol.outcomes import Code
from lastcall.protocol.steps import Step
from lastcall.vrchat.errors import Authentication, AuthRequired, ProviderFault, RateLimit, Transient
from lastcall.vrchat.session import Identity, Session
from lastcall.vrchat.transport import Read, Transport
from lastcall.wire import OnSent

Observe = Callable[[Step, str], Awaitable[None]]
"""Told of each step with the operation's id. It is awaited: the step is not over before it returns."""

Answered = TypeVar("Answered", bound=Message)

PROBE_WITHIN = LOCAL_WINDOW.total_seconds() + 1
"""Seconds that the second look after a 401 waits for room in the window: so much always makes some."""


class NoAllowance(Exception):
    """No requests are free soon enough; ``retry_after`` seconds from now some may be. ``code`` says of which kind."""

    def __init__(self, retry_after: float, code: Code = Code.RATE_LIMIT) -> None:
        super().__init__(f"no provider requests are free for {retry_after:.0f} s ({code})")
        self.retry_after = retry_after
        self.code = code


class BudgetTooLow(Exception):
    """A limit is below what is needed, so that no wait will ever help (BUD-02)."""


class Stopping(Exception):
    """The process is stopping; work that is not authorized goes no further."""


@dataclass
class Account:
    """What all passes of one account share. ``stop`` is the process's; times are of the boot clock."""

    account_id: str
    vrchat_user_id: str
    worker_id: str
    server: Server
    transport: Transport
    session: Session
    journal: Journal
    windows: Windows
    memory: Memory
    clock: Clock
    stop: asyncio.Event
    observe: Observe
    name: str
    """What it is called at the terminal and in the figures."""
    fault: ProviderFault | None = None
    """Why the account may ask VRChat nothing more: signed out, or told to pause until ``paused_until``."""
    paused_until: float = 0.0
    must_say_hello: bool = True
    """The server may hold claims of this process that nobody works on: passes end soon, then hello is said."""
    tally: Tally = field(default_factory=Tally)
    joined_on: date | None = None
    """The day on which the account was made, once VRChat has said it."""
    identity_asked_at: float | None = None
    """When the last proof of who the account is was asked for (boot time)."""
    _identity_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _owed: deque[float] = field(default_factory=deque)
    """When identity reads went out that nothing was reserved for (boot time)."""

    async def call(
        self,
        sent: type[Call],
        answered: type[Answered],
        *,
        on_sent: OnSent | None = None,
        **fields: Any,
    ) -> Answered:
        """Make one call to the server in this account's name. Raises ``Refused`` or ``Unreachable``."""
        message = sent(worker_id=self.worker_id, vrchat_user_id=self.vrchat_user_id, **fields)
        return await self.server.call(message, answered, on_sent=on_sent)

    # --- stopping

    def may_ask(self) -> bool:
        """Whether the account may send VRChat anything now."""
        if isinstance(self.fault, RateLimit) and self.clock.boot() >= self.paused_until:
            self.fault = None
        return self.fault is None

    def check(self) -> None:
        """Raise what keeps the account from asking VRChat, if anything does."""
        if self.stop.is_set():
            raise Stopping
        if self.may_ask() or self.fault is None:
            return
        if isinstance(self.fault, RateLimit):
            left = self.paused_until - self.clock.boot()
            raise RateLimit("VRChat asked this account for a pause.", retry_after=left)
        raise self.fault

    def heed(self, fault: ProviderFault) -> None:
        """Stop the whole account where the fault is the account's (RCV-10): a pause, or a session that is over."""
        if isinstance(fault, RateLimit):
            until = self.clock.boot() + (fault.retry_after or 0.0)
            self.paused_until = max(self.paused_until, until)
            if not isinstance(self.fault, AuthRequired):
                self.fault = fault
        elif isinstance(fault, AuthRequired):
            self.fault = fault

    async def pause(self, seconds: float) -> None:
        """Wait for so long, or until the process is stopping."""
        await first_of(self.stop.wait(), self.clock.sleep(timedelta(seconds=seconds)))

    async def look_into(self, fault: ProviderFault) -> ProviderFault:
        """What ``fault`` really is, a 401 looked at once more; the account stops where it is the account's."""
        if isinstance(fault, Authentication) and not isinstance(fault, AuthRequired):
            fault = await self._doubt()
        self.heed(fault)
        return fault

    # --- requests to VRChat

    async def reserve(
        self, amount: int, lease: LeaseRef | None, until: float, *, is_write: bool = False
    ) -> float:
        """Reserve requests on the server, waiting for them until ``until`` at most; how long they may be
        used.

        Both are times of the boot clock, the second counted from before the granting call. Without a lease what is
        owed is reserved as well. ``is_write``: one of them is a write, of which an account has so many a day. Raises
        ``BudgetTooLow``, ``NoAllowance`` and ``Stopping``.
        """
        while True:
            self.check()
            asked_at = self.clock.boot()
            owed = self._owing(amount) if lease is None else 0
            answer = await self.call(
                Allowance, AllowanceAnswer, amount=amount + owed, lease=lease, is_write=is_write
            )
            if lease is None:
                self.windows.account.limit = answer.limit
            if answer.is_granted:
                for _ in range(owed):
                    self._owed.popleft()
                return asked_at + answer.window_ms / 1000
            if answer.limit < amount:
                raise BudgetTooLow
            retry = max(answer.retry_ms / 1000, RETRY_DELAY_LEAST.total_seconds())
            if self.clock.boot() + retry > until:
                raise NoAllowance(retry, Code.DAILY_WRITE_CAP if answer.is_daily_cap else Code.RATE_LIMIT)
            await self.pause(retry)

    async def prove_identity(self, until: float) -> None:
        """Hold a proof, at most ``IDENTITY_AGE`` old, that the session is the expected account's.

        One proof serves all of the account's operations; its request is charged to the account alone.
        """
        async with self._identity_lock:
            if self._has_fresh_identity():
                return
            await self.reserve(1, None, until)
            await self._ask_identity(within=max(0.0, until - self.clock.boot()), is_reserved=True)

    async def prove_identity_unreserved(self, within: float) -> Identity:
        """The same now, and no call to the server: at the start, and to keep the session alive. Who it is.

        What went out is owed: the next reservation without a lease covers it too, if that comes within the minute.
        """
        async with self._identity_lock:
            return await self._ask_identity(within=within, is_reserved=False)

    async def _ask_identity(self, within: float, *, is_reserved: bool) -> Identity:
        try:
            read = await self._one_proof(self.session.identity, within, is_reserved=is_reserved)
        except AuthRequired:
            raise
        except Authentication:
            read = await self._one_proof(self.session.probe, PROBE_WITHIN, is_reserved=False)
        self.joined_on = read.value.joined_on or self.joined_on
        return read.value

    async def _doubt(self) -> ProviderFault:
        """Look once more after a 401 anywhere, then say what it was: a session that is over, or a hiccup."""
        async with self._identity_lock:
            self.identity_asked_at = None
            try:
                await self._one_proof(self.session.probe, PROBE_WITHIN, is_reserved=False)
            except ProviderFault as second:
                return second
            except NoAllowance:
                return Transient("VRChat refused the session once, and could not be asked again.")
        return Transient("VRChat refused the session once and accepts it again.")

    async def _one_proof(
        self, ask: Callable[[], Awaitable[Read[Identity]]], within: float, *, is_reserved: bool
    ) -> Read[Identity]:
        slots = await self.windows.hold(1, self.windows.account, within=within)
        if slots is None:
            raise NoAllowance(IDENTITY_AGE.total_seconds())
        try:
            self.check()
            slots.charge()
            if not is_reserved:
                self._owed.append(self.clock.boot())
            read = await ask()
        finally:
            slots.release()
        self.identity_asked_at = read.asked_at
        return read

    def _owing(self, amount: int) -> int:
        """How many of the owed requests the reservation covers: what is out of the minute is owed no more."""
        before = self.clock.boot() - LOCAL_WINDOW.total_seconds()
        while self._owed and self._owed[0] < before:
            self._owed.popleft()
        return max(0, min(len(self._owed), RESERVATION_MOST - amount, self.windows.account.limit - amount))

    def _has_fresh_identity(self) -> bool:
        asked_at = self.identity_asked_at
        return asked_at is not None and self.clock.boot() - asked_at <= IDENTITY_AGE.total_seconds()
