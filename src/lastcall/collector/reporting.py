"""Reporting outcomes: again and again until the server has taken or finally refused each one.

What is in the journal is reported after a restart too, so nothing here has to be finished before the process
ends.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

import structlog

from lastcall.collector.account import Account
from lastcall.collector.journal import Submission
from lastcall.collector.server import Refused, Unreachable
from lastcall.collector.waiting import SERVER_BACKOFF, backoff, first_of
from lastcall.errors import Unavailable
from lastcall.protocol.constants import PROTOCOL_MISMATCH
from lastcall.protocol.messages import ClaimRef, Complete, Recorded
from lastcall.protocol.outcomes import Code, Outcome
from lastcall.protocol.steps import Step

_log = structlog.get_logger("lastcall.collector")

NOT_FINAL = frozenset({401, 423, 429})
"""Refusals of the caller, not of the report: it stays in the journal, and a newer key may make it (WRK-08)."""

NOT_READ = frozenset({PROTOCOL_MISMATCH})
"""Refusals of what nobody looked into: of the journal it is reported by the release that the server speaks with."""


@dataclass(frozen=True)
class Report:
    """An outcome on its way to the server. ``is_journalled``: also to be struck off in the journal."""

    claim: ClaimRef
    outcome: Outcome
    code: str | None
    result: dict[str, str]
    is_journalled: bool


class Reporter:
    """Reports the outcomes of one account. ``run`` is the task that repeats what did not get through."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._waiting: list[Report] = []
        self._has_work = asyncio.Event()

    async def submit(self, report: Report) -> bool:
        """Report now; when the server is not reachable, leave it to ``run`` and say so with ``False``."""
        try:
            await self._send(report)
        except Unreachable as error:
            _log.warning("report postponed", operation=report.claim.operation_id, reason=error.sentence)
            self._waiting.append(report)
            self._has_work.set()
            return False
        return True

    async def take_up(self) -> None:
        """Queue what the journal holds unreported from before this start. An intent alone is an unknown outcome."""
        journal = self._account.journal
        for entry in journal.unreported(self._account.account_id):
            claim = entry.intent.claim
            if entry.answer is None:
                with contextlib.suppress(Unavailable):
                    await journal.answered(claim.nonce, Outcome.INDETERMINATE, Code.OUTCOME_UNKNOWN, {})
            self._waiting.append(_report_of(entry))
        if self._waiting:
            self._has_work.set()

    async def run(self) -> None:
        """Repeat what waits, with growing pauses, until the process stops."""
        stop, failures = self._account.stop, 0
        while not stop.is_set():
            if not self._waiting:
                self._has_work.clear()
                await first_of(stop.wait(), self._has_work.wait())
            elif await self.try_all():
                failures = 0
            else:
                failures += 1
                await self._account.pause(backoff(failures, *SERVER_BACKOFF))

    async def try_all(self) -> bool:
        """Try everything that waits once, oldest first; whether all of it got through."""
        for report in list(self._waiting):
            try:
                await self._send(report)
            except Unreachable:
                return False
            self._waiting.remove(report)
        return True

    async def _send(self, report: Report) -> None:
        account, operation_id = self._account, report.claim.operation_id
        try:
            recorded = await account.call(
                Complete,
                Recorded,
                on_sent=lambda: account.observe(Step.COMPLETE_SENT, operation_id),
                claim=report.claim,
                outcome=report.outcome,
                code=report.code,
                result=report.result,
            )
        except Refused as refused:
            _log.error("report refused", operation=operation_id, code=refused.code, reason=refused.sentence)
            if refused.status in NOT_FINAL or refused.code in NOT_READ:
                return
        else:
            await account.observe(Step.COMPLETE_ANSWERED, operation_id)
            if not recorded.is_recorded:
                _log.warning("report came too late", operation=operation_id, state=recorded.state)
        if report.is_journalled:
            try:
                await account.journal.reported(report.claim.nonce)
            except Unavailable as error:
                _log.error("journal", reason=error.sentence)


def _report_of(entry: Submission) -> Report:
    claim, answer = entry.intent.claim, entry.answer
    if answer is None:
        return Report(claim, Outcome.INDETERMINATE, Code.OUTCOME_UNKNOWN, {}, is_journalled=True)
    return Report(claim, answer.outcome, answer.code, answer.result, is_journalled=True)
