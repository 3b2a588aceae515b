"""The statements of reads find what they need by index, among very many rows that are not it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from tests.reads.reads_world import MINUTE, SECOND, Reading

from lastcall.db.connect import Connection
from lastcall.deadlines.times import EPOCH
from lastcall.reads import asking, expiry, queries, work
from lastcall.reads.kinds import KINDS
from lastcall.reads.worker import _NEEDS

pytestmark = pytest.mark.postgres15

SETTLED = 8
"""Executions after which a session has chosen its generic plan."""

TOUCHED_MOST = 60
"""Rows of reads that one statement may read, whatever the table holds."""

NONE = timedelta(0)
FILL = """
insert into provider_reads
       (club_id, id, connection_id, epoch, account_id, credential_generation, kind, params, params_key, state,
        requested_at, observed_at, items, code)
select r.club_id, gen_random_uuid(), r.connection_id, r.epoch - $5::interval, r.account_id, 1, 'bans', '{}',
       sha256(convert_to($1::text || n, 'UTF8')), $1,
       lastcall_now() - $4::interval - n * interval '1 ms',
       case when $1 = 'succeeded' then lastcall_now() end, case when $1 = 'succeeded' then '[]'::jsonb end,
       case when $1 = 'failed' then 'timeout' end
  from provider_reads r, generate_series(1, $2::integer) n
 where r.id = $3
"""


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@asynccontextmanager
async def explained(reading: Reading) -> AsyncIterator[tuple[Connection, list[dict[str, Any]]]]:
    """A session that reports every scan of reads that it made, nested ones included."""
    connection = await reading.db.connect()
    scans: list[dict[str, Any]] = []

    def listen(_: object, message: Any) -> None:
        _, found, plan = message.message.partition("plan:")
        if found:
            scans.extend(
                node
                for node in nodes(json.loads(plan)["Plan"])
                if node.get("Relation Name") == "provider_reads" and "Scan" in node["Node Type"]
            )

    await connection.execute("load 'auto_explain'")
    for setting in (
        "log_min_duration = '0'",
        "log_nested_statements = 'on'",
        "log_analyze = 'on'",
        "log_timing = 'off'",
        "log_format = 'json'",
    ):
        await connection.execute(f"set auto_explain.{setting}")
    connection.add_log_listener(listen)
    await connection.execute("set client_min_messages = log")
    try:
        yield connection, scans
    finally:
        connection.remove_log_listener(listen)
        await connection.close()


@pytest.fixture
async def filled(reading: Reading) -> Reading:
    first = await reading.ask()
    for state, age, epoch, count in (
        ("succeeded", 5 * MINUTE, NONE, 8_000),
        ("failed", 2 * MINUTE, NONE, 4_000),
        ("pending", MINUTE + SECOND, NONE, 4_000),
        ("pending", NONE, timedelta(days=1), 20),
    ):
        await reading.db.pool.execute(FILL, state, count, first.id, age, epoch)
    await reading.run("analyze")
    return reading


def check(scans: list[dict[str, Any]]) -> None:
    assert scans
    for scan in scans:
        assert scan["Node Type"] in {"Index Scan", "Index Only Scan", "Tid Scan"}, scan
        touched = (scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)) * scan["Actual Loops"]
        assert touched <= TOUCHED_MOST, scan


async def test_the_statements_of_reads_touch_few_rows(filled: Reading) -> None:
    world = filled.world
    start = await filled.run("select min(requested_at) from provider_reads")
    key, nobody = KINDS["bans"].key(KINDS["bans"].parse({})), world.club_id
    read_id = await filled.run("select id from provider_reads where params_key = $1", key)
    under = (world.epoch, world.account_id, 1)
    lease = (world.club_id, world.connection_id, world.epoch, 1)
    statements: list[tuple[str, tuple[object, ...]]] = [
        (work._READY, (world.account_id,)),
        (asking._SAME, (world.club_id, world.connection_id, key, *under)),
        (queries._READ, (world.club_id, read_id)),
        (expiry.READ_ORDER.next_deadline, ()),
        (expiry.READ_ORDER.next_deadline_beyond, (start, nobody)),
        (expiry.READ_ORDER.boundary, ()),
        (expiry.READ_ORDER.page, (EPOCH, nobody, start, nobody, 10)),
        (
            "select * from claim_read($1, 1, $2, $3, $4, $5, $6, $7, $8, $9)",
            (world.account_id, world.worker_id, *lease, *_NEEDS),
        ),
    ]
    async with explained(filled) as (connection, scans):
        for statement, arguments in statements:
            for _ in range(SETTLED):
                scans.clear()
                await filled.run(
                    "update provider_reads set requested_at = lastcall_now() where id = $1", read_id
                )
                await connection.fetch(statement, *arguments)
                check(scans)
