"""Rows of one club cannot point at another club's, whatever the code does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy import MetaData, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import DeclarativeBase, Mapped
from sqlalchemy.schema import CreateTable

from lastcall.db.base import NAMING, Base, TenantTable, tenant_reference
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id


class Own(DeclarativeBase):
    """Tables of this test alone, built as the product's are."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = Base.type_annotation_map


class Shelf(TenantTable, Own):
    __tablename__ = "shelves"


class Book(TenantTable, Own):
    __tablename__ = "books"

    shelf_id: Mapped[UUID]
    series_id: Mapped[UUID | None]
    __table_args__ = (
        tenant_reference("shelves", "shelf_id", on_delete="cascade"),
        tenant_reference("books", "series_id", on_delete="set null"),
    )


CLUB, OTHER = new_id(), new_id()


@pytest.fixture
async def tables(database: Database) -> Database:
    for model in (Shelf, Book):
        await database.pool.execute(str(CreateTable(model.__table__).compile(dialect=postgresql.dialect())))
    return database


async def add_book(database: Database, club: UUID, shelf: UUID, series: UUID | None = None) -> UUID:
    book = new_id()
    await database.pool.execute(
        "insert into books (club_id, id, shelf_id, series_id) values ($1, $2, $3, $4)",
        club,
        book,
        shelf,
        series,
    )
    return book


async def add_shelf(database: Database, club: UUID) -> UUID:
    shelf = new_id()
    await database.pool.execute("insert into shelves (club_id, id) values ($1, $2)", club, shelf)
    return shelf


@pytest.mark.postgres15
async def test_a_reference_cannot_leave_its_club(tables: Database) -> None:
    shelf = await add_shelf(tables, CLUB)
    await add_book(tables, CLUB, shelf)
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await add_book(tables, OTHER, shelf)


@pytest.mark.postgres15
async def test_deleting_empties_the_reference_but_never_the_club(tables: Database) -> None:
    shelf = await add_shelf(tables, CLUB)
    first = await add_book(tables, CLUB, shelf)
    second = await add_book(tables, CLUB, shelf, first)
    await tables.pool.execute("delete from books where id = $1", first)
    row = await tables.pool.fetchrow("select club_id, series_id from books where id = $1", second)
    assert row is not None
    assert (row["club_id"], row["series_id"]) == (CLUB, None)
    await tables.pool.execute("delete from shelves")
    assert await tables.pool.fetchval("select count(*) from books") == 0


def test_keys_come_first_and_constraints_have_postgresqls_names() -> None:
    assert [column.name for column in Book.__table__.columns][:2] == ["club_id", "id"]
    names = {constraint.name for constraint in Book.__table__.constraints}
    assert names == {"books_pkey", "books_club_id_shelf_id_fkey", "books_club_id_series_id_fkey"}


async def test_now_is_the_databases_clock_and_is_called_once_a_statement(database: Database) -> None:
    before = datetime.now(UTC)
    async with database.read() as reader:
        moments = (await reader.execute(select(NOW, NOW))).one()
        later = await reader.scalar(select(NOW))
    assert timedelta(seconds=-1) < moments[0] - before < timedelta(seconds=5)
    assert later > moments[0]
