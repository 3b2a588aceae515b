"""Migrations: replayed from nothing, equal to the models, safe to run twice, at once or anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from lastcall.db import migrations
from lastcall.db.connect import PATIENT, Connection, connect
from lastcall.db.dump import drift, dump
from lastcall.db.migrations import LOCK_KEY, current, head, migrate
from lastcall.db.migrations.indexes import create_index_concurrently, drop_index_concurrently
from lastcall.db.routines import Schema
from lastcall.errors import Unavailable
from lastcall.schema import SCHEMA
from lastcall.testing.database import TestServer
from lastcall.testing.locks import WITHIN
from lastcall.testing.waiting import eventually


@pytest.mark.postgres15
async def test_the_models_are_what_the_migrations_make(empty_database_url: str) -> None:
    assert await current(empty_database_url) is None
    await migrate(empty_database_url, SCHEMA)
    assert await current(empty_database_url) == head()
    assert await drift(empty_database_url, SCHEMA) == []


@pytest.fixture
def usual_server(postgres_servers: Callable[[Path | None], TestServer]) -> TestServer:
    """Outside of the test, because it is started when nobody needed it before, and that takes a loop."""
    return postgres_servers(None)


@pytest.mark.postgres15
async def test_the_dump_is_the_same_on_every_server_version(
    empty_database_url: str, usual_server: TestServer
) -> None:
    await migrate(empty_database_url, SCHEMA)
    url = await usual_server.create(template=None)
    await migrate(url, SCHEMA)
    assert await dump(empty_database_url) == await dump(url)


async def test_migrating_again_changes_nothing(empty_database_url: str) -> None:
    await migrate(empty_database_url, SCHEMA)
    before = await dump(empty_database_url)
    await migrate(empty_database_url, SCHEMA)
    assert await dump(empty_database_url) == before


async def test_drift_names_what_differs(empty_database_url: str) -> None:
    await migrate(empty_database_url, SCHEMA)
    connection = await connect(empty_database_url)
    await connection.execute("alter table directory add check (kind <> ''), alter club_id drop not null")
    await connection.execute("create table extra (id int)")
    await connection.close()
    assert await drift(empty_database_url, SCHEMA) == [
        "--- models",
        "+++ migrations",
        "-directory: club_id uuid not null",
        "+directory: club_id uuid",
        "+directory: constraint directory_kind_check CHECK ((kind <> ''::text))",
        "+extra: id integer",
    ]


async def test_two_processes_that_migrate_at_once_take_turns(empty_database_url: str) -> None:
    await asyncio.gather(*(migrate(empty_database_url, SCHEMA) for _ in range(3)))
    assert await current(empty_database_url) == head()


async def test_a_process_that_waits_too_long_for_its_turn_says_so(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "TURN_TIMEOUT", 0.1)
    holder = await connect(empty_database_url)
    await holder.execute(f"select pg_advisory_lock({LOCK_KEY})")
    with pytest.raises(Unavailable, match="Another process has been migrating"):
        await migrate(empty_database_url, SCHEMA)
    await holder.close()


@pytest.fixture
async def table(empty_database_url: str) -> str:
    connection = await connect(empty_database_url)
    await connection.execute("create table things (id int, state text)")
    await connection.execute("insert into things select n % 50, 'open' from generate_series(1, 100) n")
    await connection.close()
    return empty_database_url


async def index_state(url: str, name: str) -> bool | None:
    """Whether the index is valid; ``None`` when there is none."""
    connection = await connect(url)
    try:
        valid: bool | None = await connection.fetchval(
            "select indisvalid from pg_index where indexrelid = to_regclass($1)", name
        )
    finally:
        await connection.close()
    return valid


async def build(url: str, *, unique: bool = False) -> None:
    """Build the index as a revision does."""

    def run(sync: sa.Connection) -> None:
        context = MigrationContext.configure(sync, opts={"transaction_per_migration": True})
        with context.begin_transaction(_per_migration=True), Operations.context(context):
            create_index_concurrently("things_id", "things", ["id"], unique=unique, where="state = 'open'")

    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: connect(url, limits=PATIENT), poolclass=NullPool
    )
    try:
        async with engine.connect() as connection:
            await connection.run_sync(run)
    finally:
        await engine.dispose()


@pytest.mark.postgres15
async def test_a_concurrent_index_is_built_anew_over_an_invalid_leftover(table: str) -> None:
    with pytest.raises(sa.exc.IntegrityError):
        await build(table, unique=True)
    assert await index_state(table, "things_id") is False
    connection = await connect(table)
    await connection.execute("delete from things a using things b where a.id = b.id and a.ctid > b.ctid")
    await connection.close()
    await build(table, unique=True)
    assert await index_state(table, "things_id") is True
    await build(table, unique=True)
    assert await index_state(table, "things_id") is True


async def test_twin_without_looking_for_a_leftover_the_invalid_index_stays(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(sa.exc.IntegrityError):
        await build(table, unique=True)
    monkeypatch.setattr("lastcall.db.migrations.indexes._IS_BROKEN", sa.text("select false and :name = ''"))
    connection = await connect(table)
    await connection.execute("delete from things")
    await connection.close()
    await build(table, unique=True)
    assert await index_state(table, "things_id") is False


async def test_a_waiting_process_does_not_hold_up_the_other_ones_concurrent_index(table: str) -> None:
    turn = await connect(table, limits=PATIENT)
    await turn.execute(f"select pg_advisory_lock({LOCK_KEY})")
    waiting = asyncio.create_task(migrate(table, SCHEMA))
    await eventually(lambda: asked_for_a_turn(table))
    await asyncio.wait_for(build(table), WITHIN)
    assert await index_state(table, "things_id") is True
    await turn.close()
    await waiting


async def test_twin_a_process_that_waits_inside_a_statement_holds_it_up_for_ever(table: str) -> None:
    turn, waiter = await connect(table, limits=PATIENT), await connect(table, limits=PATIENT)
    await turn.execute(f"select pg_advisory_lock({LOCK_KEY})")
    waiting = asyncio.create_task(waiter.execute(f"select pg_advisory_lock({LOCK_KEY})"))
    await eventually(lambda: waits_for(turn, "select pg_advisory_lock%"))
    building = asyncio.create_task(build(table))
    await eventually(lambda: waits_for(turn, "CREATE INDEX CONCURRENTLY%"))
    assert not building.done()
    await turn.close()
    await asyncio.gather(waiting, building)
    await waiter.close()


async def asked_for_a_turn(url: str) -> bool:
    connection = await connect(url)
    try:
        return bool(
            await connection.fetchval(
                "select true from pg_stat_activity where query like 'select pg_try_advisory_lock%'"
                " and datname = current_database()"
            )
        )
    finally:
        await connection.close()


async def waits_for(connection: Connection, statement: str) -> bool:
    return bool(
        await connection.fetchval(
            "select true from pg_stat_activity where query like $1 and wait_event_type = 'Lock'", statement
        )
    )


async def test_an_index_can_be_dropped_twice(table: str) -> None:
    await build(table)

    def run(sync: sa.Connection) -> None:
        context = MigrationContext.configure(sync, opts={"transaction_per_migration": True})
        with context.begin_transaction(_per_migration=True), Operations.context(context):
            drop_index_concurrently("things_id", "things")
            drop_index_concurrently("things_id", "things")

    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: connect(table), poolclass=NullPool
    )
    async with engine.connect() as connection:
        await connection.run_sync(run)
    await engine.dispose()
    assert await index_state(table, "things_id") is None


@pytest.fixture
def routine_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "room" / "sql"
    folder.mkdir(parents=True)
    return folder


def schema_with(folder: Path) -> Schema:
    return Schema(SCHEMA.metadata, (*SCHEMA.routine_folders, folder))


async def answer(url: str) -> int:
    connection = await connect(url)
    try:
        value: int = await connection.fetchval("select answer()")
    finally:
        await connection.close()
    return value


async def test_a_routine_is_applied_when_it_changed_and_only_then(
    empty_database_url: str, routine_folder: Path
) -> None:
    path = routine_folder / "answer.sql"
    path.write_text("-- why\ncreate or replace function answer() returns int language sql as 'select 1';")
    await migrate(empty_database_url, schema_with(routine_folder))
    assert await answer(empty_database_url) == 1
    connection = await connect(empty_database_url)
    await connection.execute("create or replace function answer() returns int language sql as 'select 5'")
    await connection.close()
    await migrate(empty_database_url, schema_with(routine_folder))
    assert await answer(empty_database_url) == 5
    path.write_text("create or replace function answer() returns int language sql as 'select 2';")
    await migrate(empty_database_url, schema_with(routine_folder))
    assert await answer(empty_database_url) == 2


async def test_a_broken_routine_leaves_all_of_them_as_they_were(
    empty_database_url: str, routine_folder: Path
) -> None:
    (routine_folder / "a.sql").write_text(
        "create or replace function answer() returns int language sql as 'select 1';"
    )
    (routine_folder / "b.sql").write_text(
        "create or replace function broken() returns int language sql as 'x';"
    )
    with pytest.raises(asyncpg.PostgresSyntaxError):
        await migrate(empty_database_url, schema_with(routine_folder))
    with pytest.raises(asyncpg.UndefinedFunctionError):
        await answer(empty_database_url)


async def test_a_file_that_is_no_routine_is_refused(empty_database_url: str, routine_folder: Path) -> None:
    (routine_folder / "a.sql").write_text("delete from directory;")
    with pytest.raises(ValueError, match="must begin with"):
        await migrate(empty_database_url, schema_with(routine_folder))
