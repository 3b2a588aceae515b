"""The steps of a collector with a read: claim, complete, fail.

Each is one routine call and its own transaction. Nothing a worker says of its lease or claim is believed before the
routine has compared it with the rows, under their locks. A lost answer costs no more than the read: it counts as not
answered after sixty seconds, which nobody has to write.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.connections.evidence import evidence_body
from lastcall.connections.refusals import key_refused, refused
from lastcall.connections.worker import LeaseHeld, Worker
from lastcall.db.database import Database
from lastcall.db.jsonb import jsonb_text
from lastcall.errors import Conflict, Disabled, Invalid
from lastcall.protocol.messages import OwnMemberEvidence
from lastcall.reads.codes import known
from lastcall.reads.kinds import KINDS
from lastcall.reads.kinds.kind import ReadKind
from lastcall.reads.pages import Page, checked_page
from lastcall.reads.signals import changed
from lastcall.reads.states import READ_LIFE

_CLAIM = "select * from claim_read($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_COMPLETE = """
    select * from complete_read(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
"""
_FAIL = "select * from fail_read($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_ASKED = "select kind, params::text as params from provider_reads where club_id = $1 and id = $2 and account_id = $3"

_NEEDS = (
    [kind.name for kind in KINDS.values()],
    [kind.permission.value for kind in KINDS.values()],
    [kind.feature.value for kind in KINDS.values()],
)


@dataclass(frozen=True)
class ReadHeld(LeaseHeld):
    """The claim of a read that a worker names in a call."""

    read_id: UUID
    nonce: UUID


@dataclass(frozen=True)
class ClaimedRead:
    """What a worker is to read. ``life``: how long anybody waits for it, counted from the answer."""

    read_id: UUID
    nonce: UUID
    kind: str
    params: dict[str, Any]
    life: timedelta


class ReadSteps:
    """The steps, for all workers that this process serves."""

    def __init__(self, db: Database, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock = clock
        self._db = db

    async def claim(self, worker: Worker, held: LeaseHeld) -> ClaimedRead | None:
        """Claim the connection's next read; None when nobody waits for any.

        Raises a refusal (``connections/refusals.py``) when key, lease, epoch or a switch stands against it.
        """
        row = await self._call(_CLAIM, *worker.arguments, *held.arguments, *_NEEDS)
        if row["has_failed"]:
            self._db.bus.deliver([changed(held.club_id)])
        match row["outcome"]:
            case "claimed":
                return ClaimedRead(
                    read_id=row["read_id"],
                    nonce=row["nonce"],
                    kind=row["kind"],
                    params=msgspec.json.decode(row["params"]),
                    life=READ_LIFE,
                )
            case "nothing":
                return None
            case "club_inactive":
                raise Conflict("club_inactive", "The club is archived.", advice="Drop what you hold for it.")
            case outcome:
                raise refused(outcome)

    async def complete(
        self,
        worker: Worker,
        held: ReadHeld,
        page: Page,
        evidence: OwnMemberEvidence,
        *,
        age: timedelta,
        arrived: float | None = None,
    ) -> bool:
        """Keep a page that was read under ``evidence``; False when it was not kept, and that is final.

        ``age`` is that of the older of both when the call ``arrived`` (boot time of ``clock``; now when it is left
        out). A page that breaks the bounds of what was asked fails the read and raises ``Invalid``.
        """
        arrived = self.clock.boot() if arrived is None else arrived
        # What was asked for never changes, so it needs no lock; whether this worker may answer it is judged below. What
        # another account was asked for, not even its kind, is nothing to this one.
        asked = await self._db.pool.fetchrow(_ASKED, held.club_id, held.read_id, worker.account_id)
        kind = None if asked is None else KINDS.get(asked["kind"])
        if asked is None or kind is None:
            return False
        params = msgspec.json.decode(asked["params"], type=kind.params)
        try:
            items = checked_page(kind, params, page)
        except Invalid:
            await self.fail(worker, held, "answer_refused")
            raise
        told = kind.evidence(params, items)
        async with self._db.pool.acquire() as connection:
            # Whoever waits here for a connection waits with a page that grows older.
            waited = timedelta(seconds=self.clock.boot() - arrived)
            row = await connection.fetchrow(
                _COMPLETE,
                *worker.arguments,
                *_claim(held),
                *_needs(kind),
                evidence_body(evidence),
                timedelta(milliseconds=evidence.age_ms) + waited,
                age + waited,
                jsonb_text(msgspec.to_builtins(items)),
                page.next_offset,
                page.total,
                None if told is None else jsonb_text(told),
            )
        return self._said(held, row)

    async def fail(self, worker: Worker, held: ReadHeld, code: str) -> bool:
        """Say why there is no page (COL-06: before anything else is made of that fault); False when it was not kept."""
        return self._said(held, await self._call(_FAIL, *worker.arguments, *_claim(held), known(code)))

    async def _call(self, statement: str, *arguments: object) -> asyncpg.Record:
        row = await self._db.pool.fetchrow(statement, *arguments)
        assert row is not None
        return row

    def _said(self, held: ReadHeld, row: asyncpg.Record) -> bool:
        outcome: str = row["outcome"]
        if outcome == "stale_key":
            raise key_refused()
        if outcome == "collector_disabled":
            raise Disabled(
                outcome,
                "This account may not work at present.",
                advice="Wait until an operator lets it go on.",
            )
        if outcome in ("recorded", "failed"):
            self._db.bus.deliver([changed(held.club_id)])
        return outcome == "recorded"


def _claim(held: ReadHeld) -> tuple[object, ...]:
    return *held.arguments, held.read_id, held.nonce


def _needs(kind: ReadKind[Any, Any]) -> tuple[object, ...]:
    return kind.permission.value, kind.feature.value, list(kind.grants)
