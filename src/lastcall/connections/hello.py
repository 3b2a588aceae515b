"""Hello: a collector process has started, and says what its journal knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from sqlalchemy import text

from lastcall.clubs.activity import System, log
from lastcall.connections.gates import raise_gates
from lastcall.connections.leases import end_open_leases
from lastcall.connections.listeners import HelloFacts, HelloFindings, ReportedSubmission, hello_said
from lastcall.connections.refusals import refused
from lastcall.connections.signals import ACCOUNTS_CHANGED, CONNECTION_TOPIC, work
from lastcall.connections.worker import Worker
from lastcall.db.bus import Hint
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction

UNKNOWN_SUBMISSION = "unknown_submission"
"""Why a connection is frozen: its collector sent something that this database does not know was
authorized."""
_HELLO = System("hello")

_LEASES_OF_WORKER = text("""
    select club_id, connection_id from leases
    where account_id = :account_id and worker_id = :worker_id and released_at is null
""")
_OWN = text("""
    select club_id, id from connections
    where account_id = :account_id and (club_id, id) in (
        select * from unnest(cast(:clubs as uuid[]), cast(:connections as uuid[])))
""")
_JUDGE = text("""
    select key_is_current(:account_id, :generation, lastcall_now()) as key_is_current,
           account_obstacle(:account_id, lastcall_now()) as obstacle
""")
_NOTE = text("""
    insert into collectors (account_id, worker_id, journal_id, release, last_hello_at)
    values (:account_id, :worker_id, :journal_id, :release, lastcall_now())
    on conflict (account_id, worker_id) do update
    set journal_id = excluded.journal_id, release = excluded.release, last_hello_at = excluded.last_hello_at
""")
_AGE = text("""
    update accounts set joined_on = :joined_on, updated_at = lastcall_now()
    where id = :account_id and joined_on is distinct from :joined_on
""")
_IS_NEWS = text("""
    insert into unknown_submissions (club_id, connection_id, nonce, operation_id, reported_at)
    select c.club_id, c.id, :nonce, :operation_id, lastcall_now()
    from connections c
    where c.club_id = :club_id and c.id = :connection_id and c.account_id = :account_id
    on conflict do nothing
    returning nonce
""")
_FREEZE = text("""
    update connections
    set frozen_at = lastcall_now(), frozen_reason = :reason, updated_at = lastcall_now()
    where club_id = :club_id and id = :connection_id and account_id = :account_id and frozen_at is null
    returning id
""")
_LIMITS = text("""
    select a.state, least(a.requests_per_minute, f.requests_per_minute) as requests_per_minute
    from accounts a, fleet_settings f
    where a.id = :account_id and f.id = 1
""")


@dataclass(frozen=True)
class Journal:
    """What the collector's journal is and knows. ``is_intact``: its end was not torn by a crash."""

    id: UUID
    is_intact: bool
    submissions: Sequence[ReportedSubmission] = ()


@dataclass(frozen=True)
class Welcome:
    """The answer: what stood open for this worker and what became of it."""

    account_state: str
    requests_per_minute: int
    findings: HelloFindings
    frozen_connections: tuple[UUID, ...]


async def say_hello(
    db: Database, worker: Worker, journal: Journal, release: str, joined_on: date | None = None
) -> Welcome:
    """Take a worker in before it leases anything. ``joined_on``: the day on which VRChat says the account was made,
    where the worker knows it; it decides how many writes a day the account may make.

    Its earlier process is over: its open leases end and their tokens are passed over, and whoever
    registered returns its claims and settles its open submissions from what the journal proves. A
    submission in the journal that the database does not know means that the database went back in time:
    that connection is frozen until a person has looked. Raises a refusal for a stale key and a disabled
    account.
    """
    about = {"account_id": worker.account_id, "worker_id": worker.worker_id}
    async with db.transaction() as tx:
        leases = (await tx.execute(_LEASES_OF_WORKER, about)).all()
        leased = {(row.club_id, row.connection_id) for row in leases}
        await raise_gates(tx, leased | await _own(tx, worker, journal.submissions))
        await _judge(tx, worker)
        await tx.execute(_NOTE, {**about, "journal_id": journal.id, "release": release})
        # Read again under the gates: only this worker's own leases may be ended.
        leases = (await tx.execute(_LEASES_OF_WORKER, about)).all()
        await end_open_leases(tx, sorted((row.club_id, row.connection_id) for row in leases))
        if joined_on is not None:
            await tx.execute(_AGE, {"account_id": worker.account_id, "joined_on": joined_on})
        findings = await hello_said(
            tx,
            HelloFacts(
                worker.account_id, worker.worker_id, journal.id, journal.is_intact, journal.submissions
            ),
        )
        frozen = await _freeze(tx, worker, findings.unknown)
        row = (await tx.execute(_LIMITS, {"account_id": worker.account_id})).one()
        tx.publish(work(worker.account_id))
        tx.publish(ACCOUNTS_CHANGED)
    return Welcome(row.state, row.requests_per_minute, findings, frozen)


async def _own(
    tx: Transaction, worker: Worker, submissions: Sequence[ReportedSubmission]
) -> set[tuple[UUID, UUID]]:
    """The named connections that are this account's: no worker shuts the gates of another's."""
    rows = await tx.execute(
        _OWN,
        {
            "account_id": worker.account_id,
            "clubs": [reported.club_id for reported in submissions],
            "connections": [reported.connection_id for reported in submissions],
        },
    )
    return {(row.club_id, row.id) for row in rows}


async def _judge(tx: Transaction, worker: Worker) -> None:
    row = (await tx.execute(_JUDGE, {"account_id": worker.account_id, "generation": worker.generation})).one()
    if not row.key_is_current:
        raise refused("stale_key")
    if row.obstacle != "none":
        raise refused(row.obstacle)


async def _is_news(tx: Transaction, worker: Worker, reported: ReportedSubmission) -> bool:
    about = {
        "club_id": reported.club_id,
        "connection_id": reported.connection_id,
        "account_id": worker.account_id,
        "nonce": reported.nonce,
        "operation_id": reported.operation_id,
    }
    return await tx.scalar(_IS_NEWS, about) is not None


async def _freeze(tx: Transaction, worker: Worker, unknown: Sequence[ReportedSubmission]) -> tuple[UUID, ...]:
    frozen: list[UUID] = []
    # The journal keeps telling of them; those that a person has looked at must not freeze it again.
    news = [reported for reported in unknown if await _is_news(tx, worker, reported)]
    for reported in news:
        connection_id = await tx.scalar(
            _FREEZE,
            {
                "club_id": reported.club_id,
                "connection_id": reported.connection_id,
                "account_id": worker.account_id,
                "reason": UNKNOWN_SUBMISSION,
            },
        )
        if connection_id is None:
            continue
        frozen.append(connection_id)
        await log(
            tx,
            reported.club_id,
            _HELLO,
            "connection.frozen",
            "connection",
            connection_id,
            {"reason": UNKNOWN_SUBMISSION, "operation_id": str(reported.operation_id)},
        )
        tx.publish(Hint(reported.club_id, CONNECTION_TOPIC))
    return tuple(frozen)
