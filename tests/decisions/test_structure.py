"""What retention is not: a queue, a listener, a duty of routes, an interpreter of VRChat's rules."""

from __future__ import annotations

import ast
import asyncio
import re
from importlib import import_module
from pathlib import Path

import pytest
from tests.decisions.conftest import DOORS, Door

import lastcall
from lastcall.access.tables import DUE_INDEX
from lastcall.db.connect import connect
from lastcall.db.database import Database
from lastcall.db.dump import drift, dump
from lastcall.db.migrations import migrate
from lastcall.deadlines.scheduler import Scheduler
from lastcall.decisions.retention.kinds import KINDS
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.decisions.retention.sweep import retention_owner
from lastcall.schema import SCHEMA
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.waiting import eventually

SOURCE = Path(lastcall.__file__).parent
PROVIDER = ("lastcall.vrchat", "lastcall.collector", "lastcall.connections", "lastcall.operations", "httpx2")
INDEX_REVISION = import_module("lastcall.db.migrations.versions.0010_retention_index")


OWN_WRITERS = ("db/migrations/", "decisions/approvals/")


def imports(path: Path) -> set[str]:
    """Every module a file names in an import, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def reached_from(*packages: str) -> set[str]:
    """Every module that these packages import, and what that imports in turn."""
    files = [path for package in packages for path in (SOURCE / package).rglob("*.py")]
    seen: set[Path] = set()
    names: set[str] = set()
    while files:
        path = files.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in imports(path):
            names.add(name)
            target = SOURCE.parent.joinpath(*name.split("."))
            files += [file for file in (target.with_suffix(".py"), target / "__init__.py") if file.exists()]
    return names


@pytest.mark.clause("RET-23")
def test_neither_retention_nor_the_scheduler_reaches_provider_code() -> None:
    reached = reached_from("decisions", "deadlines")
    assert "lastcall.db.database" in reached
    assert [name for name in reached if name.startswith(PROVIDER)] == []


@pytest.mark.clause("RET-22")
async def test_there_is_no_queue_no_trigger_and_no_listener(database: Database, door: Door) -> None:
    scheduler = Scheduler(database, [retention_owner(database, JOIN_REQUEST)])
    await scheduler.start()
    request = await door.overdue()
    await eventually(lambda: door.archived_at(request))
    listening = await database.pool.fetchval(
        "select count(*) from pg_stat_activity where datname = current_database() and query ilike 'listen%'"
    )
    await scheduler.stop()
    assert listening == 0
    assert await database.pool.fetchval("select count(*) from pg_trigger where not tgisinternal") == 0
    columns = await database.pool.fetch(
        "select table_name, column_name from information_schema.columns"
        " where table_name in ('invites', 'join_requests', 'retention')"
    )
    bookkeeping = re.compile("attempt|retr(y|ies)|failure|lock|worker|run_at")
    assert [row for row in columns if bookkeeping.search(row["column_name"])] == []


@pytest.mark.clause("RET-22")
def test_only_the_helper_and_the_room_of_retention_write_what_retention_rests_on() -> None:
    writes = re.compile(
        r"(?:insert|update|delete|upsert)\((?:JoinRequest|Retention)\b"
        r"|(?:insert into|update|delete from) (?:join_requests|approvals|retention)\b"
        r"|set archive_due_at|refresh_\{"
    )
    writers = {
        str(path.relative_to(SOURCE))
        for pattern in ("*.py", "*.sql")
        for path in SOURCE.rglob(pattern)
        if writes.search(path.read_text(encoding="utf-8"))
    }
    assert {writer for writer in writers if not writer.startswith(OWN_WRITERS)} == {
        "access/requests.py",
        "decisions/retention/due.py",
        "decisions/retention/write.py",
        "decisions/sql/2_archive_idle.sql",
        "decisions/sql/4_refresh_join_request.sql",
        "decisions/sql/5_settle_join_request.sql",
        "decisions/sql/7_refresh_approval.sql",
        "decisions/sql/8_settle_approval.sql",
    }


@pytest.mark.clause("RET-15")
def test_what_the_kinds_share_names_no_table_of_theirs_and_is_tried_with_each() -> None:
    assert DOORS.keys() == KINDS.keys()
    shared = [*(SOURCE / "deadlines").glob("*.py"), *(SOURCE / "decisions" / "retention").glob("*.py")]
    tables = re.compile("|".join(kind.table.name for kind in KINDS.values()))
    assert [str(path) for path in shared if tables.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.clause("DEC-01")
def test_the_work_of_retention_never_reaches_the_inbox() -> None:
    reached = reached_from("decisions/retention", "deadlines")
    assert "lastcall.decisions.retention.kinds.approval" in reached
    assert [name for name in reached if name.startswith("lastcall.decisions.inbox")] == []
    routines = (SOURCE / "decisions" / "sql").glob("*.sql")
    assert [path.name for path in routines if "inbox" in path.read_text(encoding="utf-8")] == []


@pytest.mark.clause("RET-24")
@pytest.mark.postgres15
async def test_the_migration_of_the_index_adds_it_alone_and_runs_again_without_effect(
    empty_database_url: str,
) -> None:
    await migrate(empty_database_url, SCHEMA, to=INDEX_REVISION.down_revision)
    before = (await dump(empty_database_url)).splitlines()
    await migrate(empty_database_url, SCHEMA, to=INDEX_REVISION.revision)
    after = (await dump(empty_database_url)).splitlines()
    added = [line for line in after if line not in before]
    assert [line for line in before if line not in after] == []
    assert len(added) == 1
    assert DUE_INDEX in added[0]

    connection = await connect(empty_database_url)
    await connection.execute("update alembic_version set version_num = $1", INDEX_REVISION.down_revision)
    await connection.close()
    await migrate(empty_database_url, SCHEMA, to=INDEX_REVISION.revision)
    assert (await dump(empty_database_url)).splitlines() == after
    await migrate(empty_database_url, SCHEMA)
    assert await drift(empty_database_url, SCHEMA) == []


BUILDS = """
    select pid from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query ilike 'create index%'
"""


@pytest.mark.clause("RET-24")
async def test_the_index_is_built_while_others_write(database: Database, door: Door) -> None:
    await database.pool.execute(f"drop index {DUE_INDEX}")
    await database.pool.execute("update alembic_version set version_num = $1", INDEX_REVISION.down_revision)
    async with database.transaction():
        await door.overdue()
        migrating = asyncio.create_task(migrate(database.url, SCHEMA, to=INDEX_REVISION.revision))
        await eventually(lambda: database.pool.fetchval(BUILDS))
        request = await asyncio.create_task(door.overdue())
        assert not migrating.done(), "another writer got through while the build waited for the first"
    await migrating
    assert await door.due_at(request) is not None
    assert await database.pool.fetchval(
        "select indisvalid from pg_index where indexrelid = $1::regclass", DUE_INDEX
    )


async def test_twin_a_plain_build_of_the_index_holds_every_writer_up(database: Database, door: Door) -> None:
    await database.pool.execute(f"drop index {DUE_INDEX}")
    async with database.transaction():
        await door.overdue()
        plain = f"create index {DUE_INDEX} on join_requests (archive_due_at, id)"
        building = asyncio.create_task(database.pool.execute(plain))
        builder = await eventually(lambda: database.pool.fetchval(BUILDS))
        other = asyncio.create_task(door.overdue())
        blocked = await wait_until_blocked(database, "insert into join_requests", by=builder)
        assert blocked != builder
    await asyncio.gather(building, other)
