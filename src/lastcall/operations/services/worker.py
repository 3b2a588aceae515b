"""The steps of a collector: claim, authorize, complete, reject, defer (the worker sequence of the contract).

Each is one routine call and its own transaction. Nothing a worker says of its lease or claim is believed
before the routine has compared it with the rows, under their locks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.connections.evidence import evidence_body
from lastcall.connections.refusals import key_refused, refused
from lastcall.connections.signals import work
from lastcall.connections.worker import LeaseHeld, Worker
from lastcall.db.bus import Hint
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.deadlines.signals import IN_DOUBT, Signal
from lastcall.errors import Conflict, Disabled, Invalid
from lastcall.operations.kinds import kind_named
from lastcall.operations.machine import State
from lastcall.operations.schedules import late_at
from lastcall.operations.services.armed import Armer
from lastcall.operations.services.reported import bounded_result, checked_code
from lastcall.operations.signals import (
    CLAIM_EXPIRY,
    FANOUT,
    LATE_CLAIMED,
    LATE_PENDING,
    MAIL_AFTER,
    OPERATION_MAIL,
    SUBMISSION_RECOVERY,
    changed,
)
from lastcall.protocol.constants import CLAIM_LIFE, SUBMISSION_LIFE
from lastcall.protocol.messages import FriendshipSeen, OwnMemberEvidence
from lastcall.protocol.outcomes import Outcome

ANY_LANE_EVERY = 3
"""Every third claim of a connection goes to the oldest runnable row of any lane, so that no lane starves."""

CLAIMS_MOST = 10
"""How often one claim is tried again after a hundred rows that their events had changed, so that its answer comes in
time; the next one goes on there."""

_CLAIM = "select * from claim_operation($1, $2, $3, $4, $5, $6, $7, $8, $9)"
_AUTHORIZE = """
    select * from authorize_operation(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
"""
_COMPLETE = "select * from complete_operation($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
_REJECT = "select * from reject_operation($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_DEFER = "select * from defer_operation($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"


@dataclass(frozen=True)
class ClaimHeld(LeaseHeld):
    """The claim a worker names in a call."""

    operation_id: UUID
    nonce: UUID


@dataclass(frozen=True)
class Claimed:
    """What a worker may prepare (WRK-01). Both durations count from the answer, because the clocks differ.

    After ``execute_before`` nothing may be sent any more; ``life`` is the claim's.
    """

    operation_id: UUID
    nonce: UUID
    kind: str
    payload: dict[str, Any]
    epoch: datetime
    execute_before: timedelta
    life: timedelta


@dataclass(frozen=True)
class Verdict:
    """The answer to authorize. Refused: ``code`` says why, ``state`` what the row became (None: it was left
    alone).

    Authorized: the write must have begun before ``execute_before`` and be over before ``life`` ends.
    """

    is_authorized: bool
    code: str | None = None
    state: State | None = None
    life: timedelta = timedelta(0)
    execute_before: timedelta = timedelta(0)


@dataclass(frozen=True)
class Settled:
    """The answer to complete, reject and defer: whether it was written, and the row's state after it.

    Not recorded is final too. ``is_kept_as_evidence``: a result that came too late was laid beside the row.
    """

    is_recorded: bool
    state: State | None
    code: str | None
    is_kept_as_evidence: bool = False


class WorkerSteps:
    """The steps, for all workers that this process serves."""

    def __init__(self, db: Database, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock = clock
        self._db = db
        self._armer = Armer(db, clock)
        self._claims: defaultdict[UUID, int] = defaultdict(int)

    async def claim(self, worker: Worker, held: LeaseHeld, journal_id: UUID) -> Claimed | None:
        """Claim the connection's next operation; None when nothing is runnable now.

        Raises a refusal (``connections/refusals.py``) when key, lease, epoch or a switch stands against it.
        """
        await self._armer.arm(CLAIM_EXPIRY, CLAIM_LIFE)
        is_any_lane = self._claims[held.connection_id] % ANY_LANE_EVERY == ANY_LANE_EVERY - 1
        row = await self._claim(worker, held, journal_id, is_any_lane)
        match row["outcome"]:
            case "nothing" | "more":
                return None
            case "claimed":
                pass
            case "club_inactive":
                raise Conflict("club_inactive", "The club is archived.", advice="Drop what you hold for it.")
            case outcome:
                raise refused(outcome)
        self._claims[held.connection_id] += 1
        # The lease may have cut the claim shorter than what was said before.
        self._db.bus.deliver(
            [
                Signal(CLAIM_EXPIRY, row["expires_at"]),
                Signal(LATE_CLAIMED, late_at(row["due_at"])),
                changed(held.club_id),
            ]
        )
        return Claimed(
            operation_id=row["operation_id"],
            nonce=row["nonce"],
            kind=row["kind"],
            payload=msgspec.json.decode(row["payload"]),
            epoch=held.epoch,
            execute_before=row["execute_before"] - row["judged_at"],
            life=row["expires_at"] - row["judged_at"],
        )

    async def _claim(
        self, worker: Worker, held: LeaseHeld, journal_id: UUID, is_any_lane: bool
    ) -> asyncpg.Record:
        for tries_left in reversed(range(CLAIMS_MOST)):
            row = await self._call(worker, _CLAIM, journal_id, *held.arguments, is_any_lane)
            if row["has_settled"]:
                self._say_after_verdicts(worker, held, row)
            if row["outcome"] != "more" or not tries_left:
                return row
        raise AssertionError("The last try answers.")

    async def authorize(
        self,
        worker: Worker,
        claim: ClaimHeld,
        kind_name: str,
        evidence: OwnMemberEvidence,
        *,
        friendship: FriendshipSeen | None = None,
        arrived: float | None = None,
    ) -> Verdict:
        """The last check before the one write; authorized means that the row says *submitted* from now on.

        ``friendship`` is asked of the kinds whose target must be a friend. The ages of what was seen were true when
        the call ``arrived`` (boot time of ``clock``; now when it is left out). Raises for a key that is not current
        and for an account that may not work; every other refusal is an answer.
        """
        arrived = self.clock.boot() if arrived is None else arrived
        kind = kind_named(kind_name)
        await self._armer.arm(SUBMISSION_RECOVERY, SUBMISSION_LIFE)
        arguments = (
            *worker.arguments,
            *_claim(claim),
            kind.name,
            kind.permission,
            kind.feature,
            kind.is_protective,
            evidence_body(evidence),
        )
        try:
            async with self._db.pool.acquire() as connection:
                # Whoever waits here for a connection waits with evidence that grows older.
                waited = timedelta(seconds=self.clock.boot() - arrived)
                age = timedelta(milliseconds=evidence.age_ms) + waited
                friend = _friend(friendship, waited)
                row = await self._ask(connection, _AUTHORIZE, *arguments, age, kind.needs_friend, *friend)
        except BaseException:
            self._say_in_doubt(worker)
            raise
        outcome: str = row["outcome"]
        _raise_if_shut(outcome)
        if outcome != "authorized":
            self._say_after_refusal(worker, claim, row)
            return Verdict(is_authorized=False, code=outcome, state=_state(row))
        self._db.bus.deliver([changed(claim.club_id)])
        return Verdict(
            is_authorized=True,
            state=State.SUBMITTED,
            life=row["expires_at"] - row["judged_at"],
            execute_before=row["execute_before"] - row["judged_at"],
        )

    async def complete(
        self,
        worker: Worker,
        claim: ClaimHeld,
        outcome: Outcome,
        code: str | None = None,
        result: Mapping[str, str] | None = None,
    ) -> Settled:
        """Record what became of exactly that submission; never asks lease, epoch, switch or expiry (WRK-06).

        A terminal row stays (WRK-10). Raises ``Invalid`` for a result out of bounds, and for a key that is
        not current.
        """
        if outcome is Outcome.SUCCEEDED:
            code = None
        elif code is None:
            raise Invalid("code_missing", "An outcome other than succeeded needs a code.", field="code")
        else:
            await self._armer.arm(OPERATION_MAIL, MAIL_AFTER)
        row = await self._call(
            worker,
            _COMPLETE,
            *_claim(claim),
            outcome.value,
            None if code is None else checked_code(code),
            bounded_result(result or {}),
            new_id(),
        )
        _raise_if_shut(row["outcome"])
        if row["outcome"] == "claim_unavailable":
            return Settled(is_recorded=False, state=None, code="claim_unavailable")
        self._db.bus.deliver(_ended(claim, row))
        return Settled(
            is_recorded=row["outcome"] == "recorded",
            state=_state(row),
            code=row["code"],
            is_kept_as_evidence=row["is_kept_as_evidence"],
        )

    async def reject(self, worker: Worker, claim: ClaimHeld, code: str) -> Settled:
        """Record a definite failure before the submission (WRK-04)."""
        await self._armer.arm(OPERATION_MAIL, MAIL_AFTER)
        row = await self._call(worker, _REJECT, *_claim(claim), checked_code(code))
        return self._settled(claim, row)

    async def defer(self, worker: Worker, claim: ClaimHeld, code: str, delay: float | None) -> Settled:
        """Put the operation back after a transient failure. ``delay`` is the provider's own, in seconds, or
        None.

        Raises ``Invalid`` for a negative or not finite delay (RCV-09); however large a finite one is, it is
        never shortened: beyond the grace the operation is missed at once.
        """
        # Not one call in autocommit: how soon the row is late is known only when it is written, so what that says
        # must outlive an unclear COMMIT.
        async with self._db.transaction() as tx:
            row = await tx.raw.fetchrow(_DEFER, *worker.arguments, *_claim(claim), checked_code(code), delay)
            assert row is not None
            if row["outcome"] == "invalid_delay":
                raise Invalid(
                    "delay_invalid", "A delay is a finite number and not below zero.", field="delayMs"
                )
            if row["state"] == "pending":
                for signal in _waiting(worker, row):
                    tx.publish(signal)
            elif row["outcome"] == "recorded":
                tx.publish(_mail_due(row))
        return self._settled(claim, row)

    async def _call(self, worker: Worker, statement: str, *arguments: object) -> asyncpg.Record:
        await self._armer.learn()
        try:
            async with self._db.pool.acquire() as connection:
                return await self._ask(connection, statement, *worker.arguments, *arguments)
        except BaseException:
            self._say_in_doubt(worker)
            raise

    async def _ask(self, connection: Any, statement: str, *arguments: object) -> asyncpg.Record:
        before = self.clock.boot()
        row: asyncpg.Record | None = await connection.fetchrow(statement, *arguments)
        if row is None:
            raise AssertionError("A step's routine answers exactly one row.")
        self._armer.observe(row["judged_at"], before)
        return row

    def _settled(self, claim: ClaimHeld, row: asyncpg.Record) -> Settled:
        outcome: str = row["outcome"]
        _raise_if_shut(outcome)
        if outcome != "recorded":
            return Settled(is_recorded=False, state=None, code=outcome)
        self._db.bus.deliver(_ended(claim, row))
        return Settled(is_recorded=True, state=_state(row), code=row["code"])

    def _say_in_doubt(self, worker: Worker) -> None:
        """The answer is lost. The step may have put rows back, of which nobody will hear when they are late or ready,
        or ended some, of which somebody is to be told, and for which others wait."""
        settled_by = self._armer.later(IN_DOUBT)
        self._db.bus.deliver(
            [
                Signal(LATE_PENDING, settled_by),
                Signal(FANOUT, settled_by),
                Signal(OPERATION_MAIL, settled_by),
                work(worker.account_id, settled_by),
            ]
        )

    def _say_after_refusal(self, worker: Worker, claim: ClaimHeld, row: asyncpg.Record) -> None:
        if row["state"] is None:
            return
        self._db.bus.deliver(_ended(claim, row))
        if row["state"] == "pending":
            self._db.bus.deliver(_waiting(worker, row))
        else:
            self._db.bus.deliver([_mail_due(row)])

    def _say_after_verdicts(self, worker: Worker, held: LeaseHeld, row: asyncpg.Record) -> None:
        """What to say of the rows that a claim found changed by their events."""
        self._db.bus.deliver([*_ended(held, row), _mail_due(row)])
        if row["moved_due_at"] is not None:
            self._db.bus.deliver([Signal(LATE_PENDING, late_at(row["moved_due_at"]))])
        if row["moved_ready_at"] is not None:
            self._db.bus.deliver([work(worker.account_id, row["moved_ready_at"])])


def _claim(claim: ClaimHeld) -> tuple[object, ...]:
    return *claim.arguments, claim.operation_id, claim.nonce


def _friend(seen: FriendshipSeen | None, waited: timedelta) -> tuple[str | None, bool, timedelta | None]:
    """Who was looked up, whether they are a friend, and how long ago."""
    if seen is None:
        return None, False, None
    return seen.target_user_id, seen.is_friend, timedelta(milliseconds=seen.age_ms) + waited


def _waiting(worker: Worker, row: asyncpg.Record) -> list[Signal]:
    """What to say of a row that waits again: when it is late, and when it is ready."""
    return [Signal(LATE_PENDING, late_at(row["due_at"])), work(worker.account_id, row["ready_at"])]


def _ended(held: LeaseHeld, row: asyncpg.Record) -> list[Signal | Hint]:
    """What to say of a row that changed, and of what waits to be gone through since it ended."""
    fanout = [] if row["fanout_at"] is None else [Signal(FANOUT, row["fanout_at"])]
    return [*fanout, changed(held.club_id)]


def _mail_due(row: asyncpg.Record) -> Signal:
    """When somebody is told of what a step ended just now, if it did not end well."""
    return Signal(OPERATION_MAIL, row["judged_at"] + MAIL_AFTER)


def _state(row: asyncpg.Record) -> State | None:
    return None if row["state"] is None else State(row["state"])


def _raise_if_shut(outcome: str) -> None:
    if outcome == "stale_key":
        raise key_refused()
    if outcome == "collector_disabled":
        raise Disabled(
            "collector_disabled",
            "This account may not work at present.",
            advice="Ask an operator to look at the account on the operator page.",
        )
