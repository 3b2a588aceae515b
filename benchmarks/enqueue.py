"""Queueing a hundred, beside the bare insert of the same hundred rows; cancelling a hundred; and an urgent single one
behind a batch of a hundred."""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from benchmarks.harness import RUNS, Figure, alternating, database, server
from benchmarks.world import MODERATOR, PERSON, ROLE, Connected, add_clubs, row_id
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.operations.schedules import Immediate
from lastcall.operations.services.cancel import cancel_request
from lastcall.operations.services.enqueue import Enqueued, enqueue
from lastcall.operations.services.worker import WorkerSteps
from lastcall.people.actor import Actor

SIZE = 100
AT_MOST = 3.0
CALLS = 20
BETWEEN_AT_MOST = 1
CLAIMED_BEFORE = range(6)
"""How many of the batch a worker has had when the urgent one comes: every place in the turn of the lanes."""

MODERATING = Actor(row_id(PERSON, MODERATOR), "moderator", is_operator=False)

_numbers = itertools.count(1)


_BARE = """
insert into operations
       (club_id, id, request_id, position, connection_id, epoch, kind, payload, target, grants, schedule_kind,
        due_at, ready_at, lane, actor_id)
select $1, r.id, $2, r.position - 1, $3, $4, 'assign_role', r.payload, r.target,
       '{group-roles-assign,group-members-manage}', 'immediate', n.now, n.now, 3, $5
  from (select lastcall_now() as now) as n,
       unnest($6::uuid[], $7::jsonb[], $8::text[]) with ordinality as r (id, payload, target, position)
"""


def _users(count: int) -> list[str]:
    return [f"usr_{row_id(0, next(_numbers))}" for _ in range(count)]


def _assignments(count: int) -> list[dict[str, Any]]:
    return [{"kind": "assign_role", "targetUserId": one, "roleId": ROLE} for one in _users(count)]


async def _queue(db: Database, club: Connected, payloads: list[dict[str, Any]]) -> Enqueued:
    key = f"request-{next(_numbers):08d}"
    return await enqueue(db, MODERATING, club.lease.club_id, key, payloads, Immediate())


async def run() -> list[Figure]:
    async with server() as on, database(on) as db:
        club, urgent = await add_clubs(db, 2)
        ratio, here, there = await alternating(_enqueuer(db, club), await _inserter(db, club), CALLS)
        note = f"{here * 1e3:.1f} ms against {there * 1e3:.1f} ms"
        one, many = [await _statements_of(db, club, size) for size in (1, SIZE)]
        between = [await _claims_before_the_urgent(db, urgent, before) for before in CLAIMED_BEFORE]
    return [
        Figure(f"enqueue of {SIZE} against their bare insert", "service", ratio, at_most=AT_MOST, note=note),
        Figure(
            f"statements of an enqueue, {SIZE} more than 1",
            "service",
            many[0] - one[0],
            at_most=0,
            note=f"{many[0]} each",
        ),
        Figure(
            f"statements of a batch cancel, {SIZE} more than 1",
            "service",
            many[1] - one[1],
            at_most=0,
            note=f"{many[1]} each",
        ),
        Figure(
            f"claims before an urgent one behind {SIZE}",
            "service",
            max(between),
            at_most=BETWEEN_AT_MOST,
            note=f"at {len(between)} places of the turn",
        ),
    ]


def _enqueuer(db: Database, club: Connected) -> Callable[[], Awaitable[object]]:
    ready = iter([_assignments(SIZE) for _ in range(RUNS * CALLS + 1)])
    return lambda: _queue(db, club, next(ready))


async def _inserter(db: Database, club: Connected) -> Callable[[], Awaitable[object]]:
    """One statement and its commit, with everything known beforehand."""
    request_id = (await _queue(db, club, _assignments(1))).request_id
    lease = club.lease
    shared = (lease.club_id, request_id, lease.connection_id, lease.epoch, MODERATING.person_id)
    ready = iter([_rows(_users(SIZE)) for _ in range(RUNS * CALLS + 1)])
    return lambda: db.pool.execute(_BARE, *shared, *next(ready))


def _rows(users: list[str]) -> tuple[list[UUID], list[str], list[str]]:
    payloads = [{"targetUserId": one, "roleId": ROLE} for one in users]
    return (
        [new_id() for _ in users],
        [json.dumps(payload) for payload in payloads],
        [f"{one}|{ROLE}" for one in users],
    )


async def _statements_of(db: Database, club: Connected, size: int) -> tuple[int, int]:
    """What an enqueue and the cancel of all of it send."""
    payloads = _assignments(size)
    before = db.statements
    made = await _queue(db, club, payloads)
    queued = db.statements
    await cancel_request(db, MODERATING, club.lease.club_id, made.request_id)
    return queued - before, db.statements - queued


async def _claims_before_the_urgent(db: Database, club: Connected, before: int) -> int:
    steps = WorkerSteps(db)
    batch = await _queue(db, club, _assignments(SIZE))
    for _ in range(before):
        await steps.claim(club.worker, club.lease, club.journal_id)
    ban = (await _queue(db, club, [{"kind": "ban_member", "targetUserId": _users(1)[0]}])).operation_ids[0]
    for between in range(SIZE):
        claimed = await steps.claim(club.worker, club.lease, club.journal_id)
        if claimed is not None and claimed.operation_id == ban:
            await cancel_request(db, MODERATING, club.lease.club_id, batch.request_id)
            return between
    raise RuntimeError("the urgent one was never claimed")
