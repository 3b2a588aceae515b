"""The hot statements find what they need by index, among very many rows that are not it.

The plans are those the server really ran, nested ones inside routines included (``auto_explain``), after a session
has settled on its generic plans.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

import pytest
from operations_world import World, assignment, user

from lastcall.clubs.permissions import ALL_PERMISSIONS, Permission
from lastcall.clubs.policy import Standing
from lastcall.connections.evidence import evidence_body
from lastcall.connections.work import Ready
from lastcall.db.connect import Connection
from lastcall.db.transaction import Reader
from lastcall.deadlines.due_rows import Order
from lastcall.operations.forecast import forecast
from lastcall.operations.kinds import KINDS
from lastcall.operations.machine import State
from lastcall.operations.owners.claims import CLAIM_ORDER
from lastcall.operations.owners.lateness import late_order
from lastcall.operations.owners.submissions import SUBMISSION_ORDER
from lastcall.operations.queries import Filter, history, upcoming
from lastcall.operations.work import _READY, OperationWork

pytestmark = pytest.mark.postgres15

SETTLED = 8
"""Executions after which a session has chosen its generic plan."""

TOUCHED_MOST = 40
"""Rows of operations that one statement may read, whatever the table holds."""

FILL = """
insert into operations (club_id, id, request_id, position, connection_id, epoch, kind, payload, target,
       schedule_kind, due_at, ready_at, lane, actor_id, state, code, claim_nonce, claim_account_id, claim_worker_id,
       claim_journal_id, claim_fencing_token, claim_generation, claim_expires_at, submitted_at, completed_at,
       grants)
select o.club_id, gen_random_uuid(), o.request_id, 0, o.connection_id, $3::timestamptz, o.kind, o.payload,
       $1::text || n, 'fixed', d.due_at, d.due_at + $5::interval, $6, o.actor_id, $2,
       case when $2 in ('rejected', 'missed') then 'x' end, c.nonce, c.id, c.id, c.id, c.one, c.one,
       case when c.one = 1 then d.due_at + interval '10 days' end,
       case when $2 in ('submitted', 'succeeded') then d.due_at end,
       case when $2 in ('succeeded', 'missed', 'rejected') then d.due_at end, o.grants
  from operations o, generate_series(1, $7::integer) n
 cross join lateral (select lastcall_now() + $4::interval + n * interval '1 s' as due_at) d
 cross join lateral (
       select case when k.claimed then o.id end as nonce, case when k.claimed then o.connection_id end as id,
              case when k.claimed then 1 end as one
         from (select $2 in ('claimed', 'submitted', 'succeeded') as claimed) k) c
 where o.id = (select id from operations order by created_at, id limit 1)
"""


@dataclass
class Plans:
    """What a session ran, newest last."""

    seen: list[dict[str, Any]] = field(default_factory=list)

    def of_operations(self) -> list[dict[str, Any]]:
        """Every scan of ``operations``, with what it did."""
        return [
            node
            for plan in self.seen
            for node in nodes(plan["Plan"])
            if node.get("Relation Name") == "operations"
        ]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@asynccontextmanager
async def explained(world: World) -> AsyncIterator[tuple[Connection, Plans]]:
    """A session that reports the plan of each statement it runs."""
    connection = await world.db.connect()
    plans = Plans()

    def listen(_: object, message: Any) -> None:
        text = message.message
        if "plan:" in text:
            plans.seen.append(json.loads(text.partition("plan:")[2]))

    await connection.execute("load 'auto_explain'")
    for name, value in (
        ("auto_explain.log_min_duration", "0"),
        ("auto_explain.log_nested_statements", "on"),
        ("auto_explain.log_analyze", "on"),
        ("auto_explain.log_timing", "off"),
        ("auto_explain.log_format", "json"),
    ):
        await connection.execute(f"set {name} = '{value}'")
    connection.add_log_listener(listen)
    await connection.execute("set client_min_messages = log")
    try:
        yield connection, plans
    finally:
        connection.remove_log_listener(listen)
        await connection.close()


async def filled(world: World) -> None:
    """Many rows of every sort beside the few that a statement is for."""
    await world.one(assignment(1), due_at=await world.clock.now() + timedelta(days=300))
    day, none = timedelta(days=1), timedelta(0)
    await world.run("alter table operations disable trigger all")
    for name, state, epoch, shift, wait, lane, count in (
        ("future", "pending", world.epoch, day, none, 1, 8_000),
        ("batch", "pending", world.epoch, day, none, 3, 2_000),
        ("deferred", "pending", world.epoch, -timedelta(minutes=5), day, 2, 100),
        ("older epoch", "pending", world.epoch - day, day, none, 1, 2_000),
        ("claimed", "claimed", world.epoch, day, none, 2, 1_000),
        ("submitted", "submitted", world.epoch, day, none, 2, 1_000),
        ("done", "succeeded", world.epoch, -300 * day, none, 2, 8_000),
        ("missed", "missed", world.epoch, -200 * day, none, 2, 2_000),
    ):
        await world.run(FILL, name, state, epoch, shift, wait, lane, count)
    await world.run("analyze")


def check(plans: Plans, index: str, *, most: int = TOUCHED_MOST) -> None:
    scans = plans.of_operations()
    assert scans
    for scan in scans:
        assert (
            scan["Node Type"] in {"Index Scan", "Index Only Scan", "Tid Scan"}
            or "Modify" in scan["Node Type"]
        ), scan
        touched = (scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)) * scan["Actual Loops"]
        # The rows of a loop are told as a rounded mean: up to half a row too many for each.
        assert touched - scan["Actual Loops"] / 2 <= most, scan
    assert index in {scan.get("Index Name") for scan in scans}


@pytest.mark.clause("WRK-19")
async def test_claim_probes_each_lane_by_index(world: World) -> None:
    await filled(world)
    await world.renew(timedelta(hours=1))
    made = await world.enqueue(*[assignment(5000 + n) for n in range(40)])
    async with explained(world) as (connection, plans):
        for n in range(2 * SETTLED):
            plans.seen.clear()
            row = await connection.fetchrow(
                "select * from claim_operation($1, 1, $2, $3, $4, $5, $6, 1, $7)",
                world.account_id,
                world.worker_id,
                world.journal_id,
                world.club_id,
                world.connection_id,
                world.epoch,
                n % 2 == 1,
            )
            assert row["operation_id"] in made.operation_ids
            check(plans, "operations_runnable_idx")


@pytest.mark.clause("RCV-06")
async def test_an_owner_reads_its_deadline_and_its_pages_from_its_own_index(world: World) -> None:
    await filled(world)
    start = await world.clock.now() - timedelta(days=400)
    end, nobody = start + timedelta(days=900), world.club_id
    orders: list[tuple[str, Order]] = [
        ("operations_due_idx", late_order("pending")),
        ("operations_due_idx", late_order("claimed")),
        ("operations_expiry_idx", CLAIM_ORDER),
        ("operations_expiry_idx", SUBMISSION_ORDER),
    ]
    async with explained(world) as (connection, plans):
        for index, order in orders:
            for _ in range(SETTLED):
                plans.seen.clear()
                reading = await connection.fetchrow(order.next_deadline)
                assert reading["deadline"] is not None
                beyond = await connection.fetchrow(order.next_deadline_beyond, start, nobody)
                assert beyond["deadline"] == reading["deadline"]
                assert await connection.fetchrow(order.boundary) is None
                assert len(await connection.fetch(order.page, start, nobody, end, nobody, 30)) == 30
                check(plans, index)


async def test_steps_on_one_row_go_by_its_key(world: World) -> None:
    await filled(world)
    await world.renew(timedelta(hours=1))
    made = await world.enqueue(*[assignment(5000 + n) for n in range(SETTLED)])
    async with explained(world) as (connection, plans):
        for operation_id in made.operation_ids:
            held = world.held(await world.claim())
            await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
            plans.seen.clear()
            row = await world.row(operation_id)
            assert not await connection.fetchval(
                "select recover_submission($1, $2, $3, $4)",
                world.club_id,
                operation_id,
                held.nonce,
                row["claim_expires_at"],
            )
            done = await connection.fetchrow(
                "select * from complete_operation($1, 1, $2, $3, $4, $5, 1, $6, $7, 'succeeded', null, null, $6)",
                world.account_id,
                world.worker_id,
                world.club_id,
                world.connection_id,
                world.epoch,
                operation_id,
                held.nonce,
            )
            assert done["outcome"] == "recorded"
            check(plans, "operations_pkey")


async def test_a_transition_goes_by_key_where_the_statistics_know_no_row_in_that_state(world: World) -> None:
    """Few rows are claimed or submitted at any moment, and many more were: the index of such a state looks empty
    and is full of dead entries."""
    await filled(world)
    await world.run("delete from operations where state in ('claimed', 'submitted')")
    await world.run("vacuum analyze operations")
    await world.renew(timedelta(hours=1))
    made = await world.enqueue(*[assignment(5000 + n) for n in range(2 * SETTLED)])
    where = (world.club_id, world.connection_id, world.epoch)
    async with explained(world) as (connection, plans):
        for _ in made.operation_ids:
            claim = await connection.fetchrow(
                "select * from claim_operation($1, 1, $2, $3, $4, $5, $6, 1, false)",
                *(world.account_id, world.worker_id, world.journal_id, *where),
            )
            held = (claim["operation_id"], claim["nonce"])
            authorized = await connection.fetchrow(
                "select * from authorize_operation($1, 1, $2, $3, $4, $5, 1, $6, $7, 'assign_role',"
                " 'assign_vrchat_roles', 'membership_management', true, $8, '0', false, null, false, null)",
                *(world.account_id, world.worker_id, *where, *held, evidence_body(world.evidence())),
            )
            done = await connection.fetchrow(
                "select * from complete_operation($1, 1, $2, $3, $4, $5, 1, $6, $7, 'succeeded', null, null, $6)",
                *(world.account_id, world.worker_id, *where, *held),
            )
            assert (authorized["outcome"], done["outcome"]) == ("authorized", "recorded")
    used = {scan.get("Index Name", scan["Node Type"]) for scan in plans.of_operations()}
    assert used == {"operations_runnable_idx", "operations_pkey", "ModifyTable"}


async def test_the_work_source_names_the_earliest_claimable_row(world: World) -> None:
    await filled(world)
    due_at = await world.clock.now()
    await world.one(assignment(5000), due_at=due_at)
    assert await OperationWork(world.db).ready(world.account_id) == [
        Ready(world.club_id, world.connection_id, due_at)
    ]
    async with explained(world) as (connection, plans):
        for _ in range(SETTLED):
            plans.seen.clear()
            assert len(await connection.fetch(_READY, world.account_id)) == 1
            check(plans, "operations_runnable_idx")


EVERYTHING = Standing(
    is_owner=True, is_staff=True, permissions=ALL_PERMISSIONS, provider_role_ids=frozenset()
)
RARE = Standing(
    is_owner=False,
    is_staff=True,
    permissions=frozenset({Permission.MANAGE_BANS}),
    provider_role_ids=frozenset(),
)


PAGES = (
    (upcoming, Filter(), "operations_agenda_idx"),
    (upcoming, Filter(states=[State.SUBMITTED]), "operations_agenda_idx"),
    (upcoming, Filter(request_id=UUID(int=7)), "operations_club_id_request_id_target_key"),
    (history, Filter(), "operations_past_idx"),
    (history, Filter(states=[State.INDETERMINATE]), "operations_past_idx"),
    (history, Filter(request_id=UUID(int=7)), "operations_club_id_request_id_target_key"),
    (history, Filter(subject=user(77)), "operations_subject_idx"),
    (upcoming, Filter(event_id=UUID(int=7)), "operations_event_idx"),
    (history, Filter(event_id=UUID(int=7)), "operations_event_past_idx"),
)


@pytest.mark.clause("EDT-09")
async def test_a_page_walks_no_row_that_it_does_not_show(world: World) -> None:
    """Filtered after the walk, a page of bans or of unknown outcomes would read past every other row first. A probe
    reads a page of its kind and state at most."""
    await filled(world)
    async with explained(world) as (connection, plans):
        tx = Reader(cast("Any", None), connection)
        for reader in (EVERYTHING, RARE):
            for page, only, index in PAGES:
                for _ in range(SETTLED):
                    plans.seen.clear()
                    await page(tx, reader, world.owner, world.club_id, only, limit=25)
                    check(plans, index, most=3 * 25)


async def test_the_forecast_finds_what_is_queued_lane_by_lane(
    world: World,
) -> None:
    await filled(world)
    tomorrow = await world.clock.now() + timedelta(days=1, minutes=40)
    async with explained(world) as (connection, plans):
        tx = Reader(cast("Any", None), connection)
        for _ in range(SETTLED):
            plans.seen.clear()
            found = await forecast(tx, EVERYTHING, world.club_id, KINDS["assign_role"], 40, tomorrow)
            assert found is not None
            assert len(found.times) == 40
            scans = plans.of_operations()
            assert "Seq Scan" not in {scan["Node Type"] for scan in scans}
            assert "operations_runnable_idx" in {scan.get("Index Name") for scan in scans}


READ = """
select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables where relname = 'operations'
"""


async def test_what_is_queued_reads_none_of_what_is_there(world: World) -> None:
    """Not even while the statistics know nothing of the club's rows yet."""
    await world.one()
    await world.run("alter table operations disable trigger all")
    past, none = -timedelta(days=300), timedelta(0)
    await world.run(FILL, "done", "succeeded", world.epoch, past, none, 2, 4_000)
    async with world.db.transaction() as tx:
        for turn in range(SETTLED):
            before = await tx.raw.fetchval(READ)
            await world.enqueue(*[assignment(10_000 + 100 * turn + n) for n in range(100)])
            assert await tx.raw.fetchval(READ) - before <= TOUCHED_MOST
