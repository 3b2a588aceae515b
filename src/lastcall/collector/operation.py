"""One claimed operation on its way: the preflight, the authorization, the one write, its answer, its report.

Everything before the authorization may be tried again later. From the authorization on there is one write at
most: it is stopped by a guard and reported as not sent, or its intent is on the disk and it goes out once
(WRK-13 to 15).
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from lastcall.collector.account import Account, BudgetTooLow, NoAllowance
from lastcall.collector.evidence import age_ms, own_evidence
from lastcall.collector.holding import Held, hold
from lastcall.collector.leases import HeldLease
from lastcall.collector.reporting import Report, Reporter
from lastcall.collector.server import Refused
from lastcall.errors import Unavailable
from lastcall.protocol.constants import (
    RETRY_DELAY_LEAST,
    RETRY_DELAY_USUAL,
    SUBMISSION_LIFE,
    TRANSPORT_TIMEOUT,
    WORKER_EVIDENCE_AGE,
)
from lastcall.protocol.messages import (
    Authorize,
    AuthorizeAnswer,
    ClaimedOperation,
    ClaimRef,
    Defer,
    FriendshipSeen,
    Recorded,
    Reject,
)
from lastcall.protocol.outcomes import Code, Outcome
from lastcall.protocol.steps import Step
from lastcall.vrchat.errors import Membership, ProviderFault
from lastcall.vrchat.evidence import OwnMember, read_own_member
from lastcall.vrchat.writes import Judgement, Seen, Write, WriteKind, write_kind

_log = structlog.get_logger("lastcall.collector")

DELAY_MOST_MS = 1e300
"""The longest delay that is put on the wire: any finite number is accepted there, an infinite one is not."""


@dataclass(frozen=True)
class Planned:
    """A write that passed its preflight. ``reserved_until``: boot time until which its request is reserved."""

    kind: WriteKind
    write: Write
    seen: Seen
    reserved_until: float


class Operation:
    """Carries out one claim. ``asked_at`` is the boot time from before the claim was asked for."""

    def __init__(
        self,
        account: Account,
        reporter: Reporter,
        lease: HeldLease,
        claimed: ClaimedOperation,
        asked_at: float,
    ) -> None:
        self._account = account
        self._reporter = reporter
        self._lease = lease
        self._claimed = claimed
        self._claim = ClaimRef(
            club_id=lease.ref.club_id,
            connection_id=lease.ref.connection_id,
            epoch=claimed.epoch,
            fencing_token=lease.ref.fencing_token,
            operation_id=claimed.operation_id,
            nonce=claimed.nonce,
        )
        self._execute_before = asked_at + claimed.execute_before_ms / 1000
        self._claimed_until = min(asked_at + claimed.life_ms / 1000, self._execute_before)
        self._held: Held | None = None
        self.own: OwnMember | None = None
        """What the preflight read of the account's standing, for whatever of the pass comes next."""
        self._log = _log.bind(operation=claimed.operation_id, kind=claimed.kind)

    async def run(self) -> ProviderFault | None:
        """Carry it out as far as it goes; the fault to pass on when the pass has to end with it.

        Raises ``Stopping`` and ``LeaseLost`` when the process stops or the lease is gone before the authorization,
        ``Refused`` and ``Unreachable`` when the server is lost: then nothing was sent that is not in the journal.
        """
        await self._observe(Step.CLAIM_ANSWERED)
        try:
            return await self._run()
        finally:
            if self._held is not None:
                self._held.slots.release()

    async def _run(self) -> ProviderFault | None:
        try:
            planned = await self._preflight()
            await self._observe(Step.PREFLIGHT_DONE)
            self._account.check()
            self._lease.check(self._account.clock.boot())
        except BudgetTooLow:
            await self._reject(Code.BUDGET_TOO_LOW)
            return None
        except NoAllowance as full:
            await self._defer(full.code, full.retry_after)
            return None
        except ProviderFault as fault:
            return await self._fail(await self._account.look_into(fault))
        if self._account.clock.boot() > min(planned.reserved_until, self._freshness_ends(planned)):
            # The reservation is over or the evidence too old; another read would use up the write's slot
            # (BUD-05).
            await self._defer(Code.RATE_LIMIT, RETRY_DELAY_LEAST.total_seconds())
            return None
        return await self._submit(planned)

    # --- preflight

    async def _preflight(self) -> Planned:
        kind = write_kind(self._claimed.kind)
        payload = kind.read(self._claimed.payload)
        account, lease = self._account, self._lease
        held = self._held = await hold(account, lease, kind.cost, self._claimed_until, is_write=True)
        held.charge()
        own = await read_own_member(account.transport, lease.group_id, account.vrchat_user_id)
        seen = await kind.look(account.transport, payload, own, held.charge)
        self.own = own
        return Planned(kind, kind.plan(payload, seen), seen, held.until)

    async def _fail(self, fault: ProviderFault) -> ProviderFault | None:
        """Record what the fault means for this operation; pass it on when it is more than this operation's."""
        if fault.is_transient:
            await self._defer(fault.code, fault.retry_after)
            return fault
        await self._reject(fault.code)
        return fault if fault.stops_account or isinstance(fault, Membership) else None

    async def _reject(self, code: str) -> None:
        answer = await self._account.call(Reject, Recorded, claim=self._claim, code=code)
        self._account.tally.operations["rejected"] += 1
        self._log.info("rejected before submission", code=code, state=answer.state)

    async def _defer(self, code: str, retry_after: float | None) -> None:
        """Back to pending after the provider's own delay, else the usual one; never less than the least."""
        delay = RETRY_DELAY_USUAL.total_seconds() if retry_after is None else retry_after
        delay_ms = min(max(delay, RETRY_DELAY_LEAST.total_seconds()) * 1000, DELAY_MOST_MS)
        answer = await self._account.call(Defer, Recorded, claim=self._claim, code=code, delay_ms=delay_ms)
        self._account.tally.operations["deferred"] += 1
        self._log.info("deferred", code=code, seconds=delay, state=answer.state)

    # --- authorization, write

    async def _submit(self, planned: Planned) -> ProviderFault | None:
        """Ask for the authorization and use it. The two minutes run from before it was asked for."""
        asked_at = self._account.clock.boot()
        if not await self._authorize(planned):
            return None
        await self._observe(Step.AUTHORIZE_ANSWERED)
        until = min(
            planned.reserved_until,
            self._freshness_ends(planned),
            self._execute_before,
            asked_at + (SUBMISSION_LIFE - TRANSPORT_TIMEOUT).total_seconds(),
        )
        if not self._may_send(until):
            await self._not_sent("a guard stopped it after the authorization")
            return None
        try:
            await self._account.journal.intend(self._account.account_id, self._claim, self._claimed.kind)
        except Unavailable as error:
            await self._not_sent(error.sentence)
            return None
        await self._observe(Step.INTENT_FSYNCED)
        return await self._write(planned, until)

    async def _authorize(self, planned: Planned) -> bool:
        """Whether the server authorizes the write. A lost answer raises: it settles nothing (WRK-14)."""
        try:
            answer = await self._account.call(
                Authorize,
                AuthorizeAnswer,
                on_sent=lambda: self._observe(Step.AUTHORIZE_SENT),
                claim=self._claim,
                kind=self._claimed.kind,
                evidence=own_evidence(planned.seen.own, self._account.clock.boot()),
                friendship=self._friendship(planned),
            )
        except Refused as refused:
            if refused.status != 422:
                raise
            self._log.error("authorization was malformed", reason=refused.sentence, field=refused.field)
            await self._reject(Code.PREFLIGHT_FAILED)
            return False
        if not answer.is_authorized:
            self._log.info("not authorized", code=answer.code, state=answer.state)
        return answer.is_authorized

    def _may_send(self, until: float) -> bool:
        """The guards between the authorization and the first byte: stop, deadlines, the account, its slot."""
        account = self._account
        return (
            not account.stop.is_set()
            and account.clock.boot() <= until
            and account.may_ask()
            and self._held is not None
            and self._held.slots.left >= 1
        )

    async def _write(self, planned: Planned, until: float) -> ProviderFault | None:
        """The one write of this authorization, and what became of it."""
        account, nonce = self._account, self._claim.nonce

        def may_send() -> bool:
            if not self._may_send(until) or self._held is None:
                return False
            self._held.slots.charge()
            return True

        sent = await account.transport.send_once(
            planned.write.method,
            planned.write.path,
            planned.write.json,
            params=planned.write.query,
            may_send=may_send,
            on_step=lambda step: self._observe(Step(step)),
        )
        judged = planned.kind.judge(planned.write, sent)
        result = dict(judged.result)
        try:
            await account.journal.answered(nonce, judged.outcome, judged.code, result)
        except Unavailable as error:
            self._log.error("the answer is not in the journal", reason=error.sentence)
        await self._observe(Step.ANSWER_FSYNCED)
        self._account.tally.operations[judged.outcome.value] += 1
        self._log.info("written", outcome=judged.outcome.value, code=judged.code)
        await self._report(judged.outcome, judged.code, result, is_journalled=True)
        return await self._told_by(judged)

    async def _told_by(self, judged: Judgement) -> ProviderFault | None:
        """What the answer says about the account, once the outcome is recorded (COL-06)."""
        if judged.fault is None:
            return None
        return await self._account.look_into(judged.fault)

    async def _not_sent(self, why: str) -> None:
        self._account.tally.operations["not_sent"] += 1
        self._log.warning("not sent", reason=why)
        await self._report(Outcome.REJECTED, Code.NOT_ATTEMPTED, {}, is_journalled=False)

    async def _report(
        self, outcome: Outcome, code: str | None, result: dict[str, str], *, is_journalled: bool
    ) -> None:
        await self._reporter.submit(Report(self._claim, outcome, code, result, is_journalled))

    # --- parts

    def _freshness_ends(self, planned: Planned) -> float:
        return planned.seen.asked_at + WORKER_EVIDENCE_AGE.total_seconds()

    def _friendship(self, planned: Planned) -> FriendshipSeen | None:
        """What was read of the target, for kinds that need a friend (BUD-05: the server judges its age too)."""
        read = planned.seen.friendship
        if read is None:
            return None
        target = planned.write.payload.target_user_id
        age = age_ms(read.asked_at, self._account.clock.boot())
        return FriendshipSeen(target_user_id=target, is_friend=read.value, age_ms=age)

    async def _observe(self, step: Step) -> None:
        await self._account.observe(step, self._claimed.operation_id)
