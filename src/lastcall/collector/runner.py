"""One account's life in this process: hello, then wait for what is due and make passes, until it stops."""

from __future__ import annotations

import asyncio

import structlog

from lastcall import __version__
from lastcall.collector.account import Account, NoAllowance, Stopping
from lastcall.collector.failures import tell, trouble_of
from lastcall.collector.keep_alive import keep_alive
from lastcall.collector.leases import LeaseLost
from lastcall.collector.phases import run_pass
from lastcall.collector.reporting import Reporter
from lastcall.collector.server import Refused, Unreachable
from lastcall.collector.waiting import SERVER_BACKOFF, backoff, first_of, jittered
from lastcall.errors import LastcallError
from lastcall.protocol.messages import DueConnection, Hello, HelloAnswer, Wait, WaitAnswer
from lastcall.vrchat.errors import AuthRequired, ProviderFault, RateLimit

_log = structlog.get_logger("lastcall.collector")

MOST_PASSES = 10
"""Connections of one account that are worked on at a time."""

UNKNOWN_KEY = 401
"""The status with which the server refuses a worker key."""

DISABLED = 423
"""The status of every call but ``complete`` while the account may not work."""

BREATH = 1.0
"""Seconds before the server is asked again when all that it names is in hand already."""


class AccountRunner:
    """Runs one account until the process stops or the account's session is over."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._reporter = Reporter(account)
        self._passes: dict[str, asyncio.Task[None]] = {}
        self._is_known = False
        self._has_asked = False
        self._wake = asyncio.Event()
        self._log = _log.bind(account=account.account_id)

    async def run(self) -> ProviderFault | None:
        """Returns why the account ended by itself; ``None`` when the process is stopping.

        Raises ``Refused`` when the server does not know the key at the first hello; a key that is replaced
        later is no reason to end.
        """
        account = self._account
        await self._reporter.take_up()
        beside = [
            asyncio.create_task(self._reporter.run(), name="reports"),
            asyncio.create_task(keep_alive(account, self._stopped_by), name="keep-alive"),
        ]
        for task in beside:
            task.add_done_callback(self._look_at_end)
        failures = 0
        try:
            while not account.stop.is_set() and not isinstance(account.fault, AuthRequired):
                try:
                    await self._turn()
                    failures = 0
                except (Refused, Unreachable) as error:
                    if isinstance(error, Refused) and error.status == UNKNOWN_KEY and not self._is_known:
                        raise
                    # The server behind an interruption may have other rows (restored): say hello to it anew.
                    account.must_say_hello = True
                    failures += 1
                    self._log.warning("server", code=error.code, reason=error.sentence, advice=error.advice)
                    await account.pause(backoff(failures, *SERVER_BACKOFF))
            return account.fault if isinstance(account.fault, AuthRequired) else None
        finally:
            await self._passes_over()
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await self._reporter.try_all()
            await account.server.close()
            await account.transport.close()

    async def _turn(self) -> None:
        account = self._account
        if isinstance(account.fault, RateLimit) and not account.may_ask():
            await account.pause(account.paused_until - account.clock.boot())
            return
        if not self._has_asked:
            await self._ask_who_it_is()
        elif account.must_say_hello:
            await self._passes_over()
            await self._say_hello()
        else:
            account.memory.forget_idle(self._passes)
            await self._start(await self._due())

    async def _ask_who_it_is(self) -> None:
        """Once, before the first hello: whoever is signed out is noticed at once, and the account's age is known."""
        account = self._account
        try:
            await account.prove_identity_unreserved(within=0.0)
        except (NoAllowance, Stopping):
            pass
        except ProviderFault as fault:
            account.heed(fault)
            if fault.stops_account:
                await self._tell(fault)
                return
            # VRChat is unwell: what the server has to settle does not wait for it.
            self._log.warning("identity not proved", code=fault.code, reason=fault.sentence)
        self._has_asked = True

    async def _say_hello(self) -> None:
        """Introduce this process. Nothing of it may be under way: the server takes its old claims back."""
        account, journal = self._account, self._account.journal
        answer = await account.call(
            Hello,
            HelloAnswer,
            journal_id=journal.id,
            is_journal_intact=journal.is_intact,
            release=__version__,
            joined_on=account.joined_on,
            submissions=journal.known(account.account_id),
        )
        account.windows.account.limit = answer.requests_per_minute
        account.must_say_hello, self._is_known = False, True
        self._log.info("hello", state=answer.account_state, claims_returned=answer.claims_returned)
        for operation_id in answer.not_attempted:
            self._log.warning("never sent", operation=operation_id)
        for connection_id in answer.frozen_connections:
            self._log.error("the server does not know a submission of this journal", connection=connection_id)

    async def _due(self) -> tuple[DueConnection, ...]:
        """The long poll, ended early by a stop and by a fault of the account.

        It is asked only while there is room for a pass: what is named and not begun is named later and later.
        """
        found: list[DueConnection] = []

        async def ask() -> None:
            room = MOST_PASSES - len(self._passes)
            found.extend((await self._account.call(Wait, WaitAnswer, room=room)).due)

        self._wake.clear()
        if len(self._passes) >= MOST_PASSES:
            await asyncio.wait(self._passes.values(), return_when=asyncio.FIRST_COMPLETED)
            return ()
        if self._account.may_ask():
            await first_of(ask(), self._account.stop.wait(), self._wake.wait())
        return tuple(found)

    async def _start(self, due: tuple[DueConnection, ...]) -> None:
        """Begin a pass for each due connection that has none; wait a little when there is nothing to begin."""
        now = self._account.clock.boot()
        has_begun = False
        for connection in due:
            key = connection.connection_id
            is_busy = key in self._passes or len(self._passes) >= MOST_PASSES
            if is_busy or now < self._account.memory.of(key).not_before or self._account.stop.is_set():
                continue
            self._passes[key] = asyncio.create_task(self._pass(connection))
            self._account.tally.running = len(self._passes)
            has_begun = True
        if due and not has_begun:
            await self._account.pause(jittered(BREATH))

    async def _pass(self, due: DueConnection) -> None:
        """One pass, to its end. Nothing that goes wrong with it ends the others."""
        account, key = self._account, due.connection_id
        has_failed, not_before = True, None
        try:
            not_before = await run_pass(account, self._reporter, due)
            has_failed = not_before is not None
        except (Stopping, LeaseLost):
            has_failed = False
        except Unreachable as error:
            self._log.warning("pass ended", connection=key, code=error.code, reason=error.sentence)
            # No fault of the connection. What the lost answer was about is taken back, or settled by the journal,
            # by a hello at once.
            has_failed, account.must_say_hello = False, True
        except LastcallError as error:
            if isinstance(error, Refused) and error.status == DISABLED:
                # Nor could it give its claim and its lease back: the hello that is let in again does so.
                has_failed, account.must_say_hello = False, True
            self._log.warning("pass ended", connection=key, code=error.code, reason=error.sentence)
        except Exception:  # noqa: BLE001 - a fault of ours with one connection must not end the others
            self._log.exception("pass failed", connection=key)
        finally:
            self._passes.pop(key, None)
            account.tally.running = len(self._passes)
            known = account.memory.of(key)
            if has_failed:
                known.failed(account.clock.boot(), not_before or 0.0)
            else:
                known.went_well()
            if account.must_say_hello or not account.may_ask():
                self._wake.set()

    def _look_at_end(self, task: asyncio.Task[None]) -> None:
        """Reports and keep-alive last as long as the account: one that failed must not be missed."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("account failed", task=task.get_name(), exc_info=error)

    async def _stopped_by(self, fault: ProviderFault) -> None:
        await self._tell(fault)
        self._wake.set()

    async def _tell(self, fault: ProviderFault) -> None:
        try:
            await tell(self._account, trouble_of(fault), None)
        except (Refused, Unreachable) as error:
            self._log.warning("server", code=error.code, reason=error.sentence)

    async def _passes_over(self) -> None:
        await asyncio.gather(*self._passes.values(), return_exceptions=True)
