"""The statement by which each owner finds its next deadline, beside a growing past: it must not walk over it.

The past is resolved history in one database, and in another join requests and approvals that are archived but still
pending, beside a hundred paused clubs with overdue ones. Each is measured against a database that holds nothing but
the one candidate.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import asyncpg

from benchmarks.harness import LARGE, Figure, Server, alternating, create, database, server
from benchmarks.world import (
    CLUB,
    OPERATION,
    add_approvals,
    add_clubs,
    add_join_requests,
    add_operations,
    loader,
    row_id,
)
from lastcall.access.tables import DUE_INDEX
from lastcall.db.connect import connect
from lastcall.db.database import Database
from lastcall.db.embedded.binaries import look_at
from lastcall.decisions.retention.kinds.approval import APPROVAL
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.operations.owners.claims import CLAIM_ORDER
from lastcall.operations.owners.lateness import late_order
from lastcall.operations.owners.submissions import SUBMISSION_ORDER
from lastcall.testing.database import OLDEST

AT_MOST = 1.3
SIZES = (40_000, 1_000_000)
CALLS = 200
LONG_AGO = timedelta(days=30)
AHEAD = timedelta(days=1)
PAUSED = 100
"""Clubs, each with an overdue item of each kind."""
FIRST_OF_THE_PAST = 1000


@dataclass(frozen=True)
class Statement:
    """One owner's statement, and the partial index that has to serve it."""

    owner: str
    sql: str
    index: str


JOIN_REQUESTS = Statement("join requests", JOIN_REQUEST.order.next_deadline, DUE_INDEX)
OPERATIONS = (
    Statement("late, pending", late_order("pending").next_deadline, "operations_due_idx"),
    Statement("late, claimed", late_order("claimed").next_deadline, "operations_due_idx"),
    Statement("claim expiry", CLAIM_ORDER.next_deadline, "operations_expiry_idx"),
    Statement("submission", SUBMISSION_ORDER.next_deadline, "operations_expiry_idx"),
)
APPROVALS = Statement("approvals", APPROVAL.order.next_deadline, "approvals_archive_due_at_idx")
APPROVALS_BEYOND = Statement(
    "approvals beyond", APPROVAL.order.next_deadline_beyond, "approvals_archive_due_at_idx"
)
BEYOND = (
    Statement("join requests beyond", JOIN_REQUEST.order.next_deadline_beyond, DUE_INDEX),
    Statement("late, pending, beyond", late_order("pending").next_deadline_beyond, "operations_due_idx"),
    Statement("claim expiry beyond", CLAIM_ORDER.next_deadline_beyond, "operations_expiry_idx"),
    Statement("submission beyond", SUBMISSION_ORDER.next_deadline_beyond, "operations_expiry_idx"),
)

_CLAIM = f"""
update operations o
   set state = $2, claim_nonce = row_id(0, 1), claim_account_id = c.account_id, claim_worker_id = row_id(0, 1),
       claim_journal_id = row_id(0, 1), claim_fencing_token = 1, claim_generation = 1,
       claim_expires_at = o.due_at, submitted_at = case $2 when 'submitted' then o.due_at end
  from connections c
 where c.club_id = o.club_id and c.id = o.connection_id and o.id = row_id({OPERATION}, $1)
"""


async def run() -> list[Figure]:
    oldest = look_at(OLDEST)
    async with server(oldest.folder if oldest else None, LARGE) as on, AsyncExitStack() as stack:
        small = await _small(on)
        pasts = [await _grown(on, kind, size) for kind in ("resolved", "archived") for size in SIZES]
        version, figures, misses = "", [], []
        alone = await stack.enter_async_context(_connected(on, small))
        for past in pasts:
            grown = await stack.enter_async_context(_connected(on, past.name))
            version = f"PostgreSQL {grown.get_server_version().major}"
            for statement in past.statements:
                ratio, here, there = await alternating(
                    partial(grown.fetchrow, statement.sql),
                    partial(alone.fetchrow, statement.sql),
                    CALLS,
                )
                note = f"{here * 1e6:.0f} µs against {there * 1e6:.0f} µs, {version}"
                name = f"next deadline, {statement.owner}, {past.size:,} {past.kind}"
                figures.append(Figure(name, "SQL", ratio, at_most=AT_MOST, note=note))
            misses += [await _misses(grown, each) for each in (*past.statements, *past.beyond)]
    wrong = [miss for miss in misses if miss]
    note = "; ".join(wrong) or f"{len(misses)} plans, {version}"
    return [*figures, Figure("next deadline, plans off their index", "SQL", len(wrong), at_most=0, note=note)]


@dataclass(frozen=True)
class Past:
    """A database that grew: how, by how many rows, and what is asked there."""

    name: str
    kind: str
    size: int

    @property
    def statements(self) -> Sequence[Statement]:
        # Nothing of an operation is archived; approvals are measured where they are.
        return (JOIN_REQUESTS, *OPERATIONS) if self.kind == "resolved" else (JOIN_REQUESTS, APPROVALS)

    @property
    def beyond(self) -> Sequence[Statement]:
        return BEYOND if self.kind == "resolved" else (BEYOND[0], APPROVALS_BEYOND)


async def _small(on: Server) -> str:
    """A database with one candidate for each owner; its name."""
    async with database(on, "small") as db:
        await add_clubs(db, 1 + PAUSED)
        async with loader(db) as connection:
            await add_join_requests(connection, 1, 1, 1, activity_ago=LONG_AGO)
            await add_approvals(connection, 1, 1, 1, activity_ago=LONG_AGO)
            await add_operations(connection, 1, 1, 3, due_in=AHEAD)
            await connection.execute(_CLAIM, 2, "claimed")
            await connection.execute(_CLAIM, 3, "submitted")
    return "small"


async def _grown(on: Server, kind: str, size: int) -> Past:
    """The small database with a past; the larger one grows from the smaller."""
    before = SIZES[SIZES.index(size) - 1] if size != SIZES[0] else 0
    past = Past(f"{kind}_{size}", kind, size)
    await create(on, past.name, f"{kind}_{before}" if before else "small")
    db = await Database.open(on.url_of(past.name))
    try:
        async with loader(db) as connection:
            first, count = FIRST_OF_THE_PAST + before, size - before
            await add_join_requests(
                connection,
                *(1, first, count),
                activity_ago=LONG_AGO * 2,
                status="approved" if kind == "resolved" else "pending_approval",
                archived=kind == "archived",
            )
            if kind == "archived":
                await add_approvals(connection, 1, first, count, activity_ago=LONG_AGO * 2, archived=True)
                if not before:
                    await _add_paused(connection)
            if kind == "resolved":
                await add_operations(connection, 1, first, count, due_in=-LONG_AGO, succeeded=True)
    finally:
        await db.close()
    return past


async def _add_paused(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Overdue items of paused clubs, as the refresh leaves them: due some day by their age, scheduled for none."""
    for number in range(PAUSED):
        for add in (add_join_requests, add_approvals):
            await add(connection, 2 + number, 2 + number, 1, activity_ago=timedelta(days=91))
    await connection.execute(
        "update clubs set state = 'paused', paused_at = lastcall_now(), pause_reason = 'manual'"
        f" where id <> row_id({CLUB}, 1)"
    )
    for table in ("join_requests", "approvals"):
        await connection.execute(
            f"update {table} set archive_due_at = null where club_id <> row_id({CLUB}, 1)"
        )


@asynccontextmanager
async def _connected(on: Server, name: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await connect(on.url_of(name))
    try:
        yield connection
    finally:
        await connection.close()


async def _misses(connection: asyncpg.Connection[asyncpg.Record], statement: Statement) -> str:
    """What is wrong with the plan that every later execution uses: empty when it walks that index alone."""
    marks = sorted(set(re.findall(r"\$\d", statement.sql)))
    values = ["now()", f"'{row_id(CLUB, 0)}'"][: len(marks)]
    await connection.execute("set plan_cache_mode = force_generic_plan")
    await connection.execute(f"prepare asked as {statement.sql}")
    asked = f"execute asked({', '.join(values)})" if values else "execute asked"
    plan = json.loads(await connection.fetchval(f"explain (format json) {asked}"))
    await connection.execute("deallocate asked")
    nodes = [node for node in _nodes(plan[0]["Plan"]) if "Relation Name" in node]
    if [node.get("Index Name") for node in nodes] == [statement.index]:
        return ""
    return f"{statement.owner}: {', '.join(str(node['Node Type']) for node in nodes)} instead of {statement.index}"


def _nodes(plan: dict[str, object]) -> list[dict[str, object]]:
    inner = plan.get("Plans", [])
    assert isinstance(inner, list)
    return [plan, *(node for each in inner for node in _nodes(each))]
