"""Notices are found by index, however many there are: those that wait to be mailed, and one's own among all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from notices_kit import failed
from operations_world import World

from lastcall.db.cursor import LAST
from lastcall.operations import notices
from lastcall.operations.owners import mail

pytestmark = pytest.mark.postgres15

FILL = """
    insert into operation_notices (club_id, id, request_id, revision, outcome, actor_id, created_at)
    select $1, gen_random_uuid(), gen_random_uuid(), 1, 'missed',
           case when n % 40 = 0 then $2::uuid else md5((n % 40)::text)::uuid end,
           lastcall_now() - n * interval '1 minute'
      from generate_series(1, 20000) n
"""
"""Notices of forty people, without their operations."""


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


async def test_notices_are_never_walked_over(world: World) -> None:
    operation_id = await failed(world)
    club_id, person_id = world.club_id, world.moderator.person_id
    page = (club_id, person_id, [person_id], ["invite_member"], LAST.time, LAST.id, 50)
    connection = await world.db.connect()
    try:
        await connection.execute("set session_replication_role = replica")
        await connection.execute(FILL.replace("$1", f"'{club_id}'").replace("$2", f"'{person_id}'"))
        await connection.execute("analyze operation_notices; set plan_cache_mode = force_generic_plan")
        for statement, arguments in (
            (mail.NoticeMail.notes.next_deadline, (None, None)),
            (mail.NoticeMail.notes.first, (None, None)),
            (mail._GROUP, (club_id, operation_id)),
            (notices._OPEN, page),
            ("select * from departed_actors($1)", (club_id,)),
        ):
            found = await connection.fetchval(f"explain (analyze, format json) {statement}", *arguments)
            scans = [
                node
                for node in nodes(json.loads(found)[0]["Plan"])
                if node.get("Relation Name") == "operation_notices"
            ]
            assert scans, found
            for node in scans:
                assert node["Node Type"] in ("Index Scan", "Index Only Scan"), found
                assert node["Actual Rows"] * node["Actual Loops"] <= 600, "one person's, and no more"
    finally:
        await connection.close()
