"""Operations that were queued before a release are sent by the rules of the next."""

from __future__ import annotations

from uuid import uuid4

import asyncpg
import pytest

from lastcall.db.connect import connect
from lastcall.db.migrations import migrate
from lastcall.operations.kinds import KINDS
from lastcall.schema import SCHEMA

OLD = """
insert into operations (club_id, id, request_id, position, connection_id, epoch, kind, payload, target, due_at,
                        ready_at, lane, actor_id, state, preflight_failures, code, completed_at)
select $1, gen_random_uuid(), $1, 0, $1, now(), kind, '{}', kind || state || failures, now(),
       now() + failures * interval '1 minute', 2, $1, state, failures,
       case when state = 'missed' then 'late_window_elapsed' end, case when state = 'missed' then now() end
  from unnest($2::text[]) as kind, (values ('pending', 0), ('pending', 1), ('missed', 1)) as s (state, failures)
"""
LINKS, BEFORE = "0065_operation_links", "0047_privacy_indexes"


@pytest.mark.clause("ENQ-06")
async def test_what_waits_from_an_older_release_keeps_its_time_and_needs_the_grants_of_its_kind(
    empty_database_url: str,
) -> None:
    await migrate(empty_database_url, SCHEMA, to=BEFORE)
    older = ["assign_role", "ban_member", "invite_member"]
    connection = await connect(empty_database_url)
    try:
        await connection.execute("set session_replication_role = replica")
        await connection.execute(OLD, uuid4(), older)
        times = await connection.fetch("select id, due_at, ready_at from operations order by id")
        await migrate(empty_database_url, SCHEMA, to=LINKS)
        rows = await connection.fetch("select * from operations order by id")
    finally:
        await connection.close()
    assert [(row["id"], row["due_at"], row["ready_at"]) for row in rows] == [tuple(row) for row in times]
    for row in rows:
        is_over = row["state"] == "missed"
        assert row["grants"] == ([] if is_over else list(KINDS[row["kind"]].grants))
        assert row["retry_at"] == (row["ready_at"] if row["preflight_failures"] and not is_over else None)
        assert row["schedule_kind"] is None


async def test_a_row_without_its_grants_is_refused(empty_database_url: str) -> None:
    """Otherwise a forgotten column would ask VRChat for no permission at all."""
    await migrate(empty_database_url, SCHEMA, to=LINKS)
    connection = await connect(empty_database_url)
    try:
        await connection.execute("set session_replication_role = replica")
        with pytest.raises(asyncpg.NotNullViolationError, match="grants"):
            await connection.execute(OLD, uuid4(), ["assign_role"])
    finally:
        await connection.close()
