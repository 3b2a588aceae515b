"""The schema as text: the same on every server version, without dates, owners or version lines.

Read from the catalogs rather than from ``pg_dump``, whose output differs from one major version to the next.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from lastcall.db.connect import PATIENT, connect
from lastcall.db.routines import Schema

_HEADER = """-- The schema after all migrations, written by `lastcall db dump`. It is for reading, not for
-- loading: it shows what a change to the migrations does to the whole.
"""
_DRIFT_SCHEMA = "lastcall_drift"
_NOT_OURS = ("alembic_version",)

_COLUMNS = text("""
    select c.relname, a.attname, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull,
           a.attidentity::text as identity, a.attgenerated::text as generated,
           pg_get_expr(d.adbin, d.adrelid) as value
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relnamespace = cast(:schema as regnamespace) and c.relkind in ('r', 'p')
      and c.relname <> all(:skip)
    order by c.relname collate "C", a.attnum
""")
# Not-null constraints have rows of their own only since PostgreSQL 18; the columns show them.
_CONSTRAINTS = text("""
    select c.relname, o.conname, pg_get_constraintdef(o.oid) as definition
    from pg_constraint o join pg_class c on c.oid = o.conrelid
    where c.relnamespace = cast(:schema as regnamespace) and o.contype in ('p', 'u', 'f', 'c', 'x')
      and c.relname <> all(:skip) and o.conparentid = 0
    order by c.relname collate "C", array_position(array['p', 'u', 'x', 'c', 'f'], o.contype::text),
             o.conname collate "C"
""")
_INDEXES = text("""
    select c.relname, pg_get_indexdef(i.indexrelid) as definition, i.indisvalid
    from pg_index i join pg_class c on c.oid = i.indrelid join pg_class x on x.oid = i.indexrelid
    where c.relnamespace = cast(:schema as regnamespace) and c.relname <> all(:skip)
      and not exists (
        select from pg_constraint o where o.conindid = i.indexrelid and o.contype in ('p', 'u', 'x')
      )
    order by c.relname collate "C", x.relname collate "C"
""")
_FUNCTIONS = text("""
    select pg_get_functiondef(p.oid) as definition
    from pg_proc p
    where p.pronamespace = cast(:schema as regnamespace) and p.prokind in ('f', 'p')
      and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
    order by p.proname collate "C", pg_get_function_identity_arguments(p.oid) collate "C"
""")


@dataclass
class TableShape:
    """One table as it stands in the database, each part already written out."""

    name: str
    columns: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    indexes: list[str] = field(default_factory=list)


async def dump(url: str) -> str:
    """The whole schema as SQL text that ends with a newline."""
    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: connect(url, limits=PATIENT), poolclass=NullPool
    )
    try:
        async with engine.connect() as connection:
            tables = await _shapes(connection, "public")
            functions = (await connection.execute(_FUNCTIONS, {"schema": "public"})).scalars().all()
    finally:
        await engine.dispose()
    parts = [_HEADER]
    parts += ["\n".join(_table_sql(table)) + "\n" for table in tables]
    parts += [function.replace(" public.", " ").rstrip() + ";\n" for function in functions]
    return "\n".join(parts)


async def drift(url: str, schema: Schema) -> list[str]:
    """How the migrated database differs from what the models would create; an empty list when it does not.

    The models' tables are created in a schema of their own, described, and rolled back.
    """
    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: connect(url, limits=PATIENT), poolclass=NullPool
    )
    try:
        async with engine.connect() as connection:
            migrated = await _shapes(connection, "public")
            await connection.execute(text(f"create schema {_DRIFT_SCHEMA}"))
            await connection.execute(text(f"set local search_path to {_DRIFT_SCHEMA}, public"))
            await connection.run_sync(lambda sync: schema.metadata.create_all(sync, checkfirst=False))
            modelled = await _shapes(connection, _DRIFT_SCHEMA)
            await connection.rollback()
    finally:
        await engine.dispose()
    lines = difflib.unified_diff(
        _comparable(modelled), _comparable(migrated), "models", "migrations", lineterm="", n=0
    )
    return [line for line in lines if not line.startswith("@@")]


async def _shapes(connection: Any, schema: str) -> list[TableShape]:
    tables: dict[str, TableShape] = {}
    parameters = {"schema": schema, "skip": list(_NOT_OURS)}
    for row in await connection.execute(_COLUMNS, parameters):
        tables.setdefault(row.relname, TableShape(row.relname)).columns.append(_column_sql(row))
    for row in await connection.execute(_CONSTRAINTS, parameters):
        tables[row.relname].constraints.append(f"constraint {row.conname} {row.definition}")
    for row in await connection.execute(_INDEXES, parameters):
        definition = row.definition.replace(f" ON {schema}.", " ON ")
        tables[row.relname].indexes.append(definition + ("" if row.indisvalid else " -- INVALID"))
    return list(tables.values())


def _column_sql(row: Any) -> str:
    parts = [row.attname, row.type]
    if row.generated:
        parts.append(f"generated always as ({row.value}) stored")
    elif row.identity:
        parts.append(f"generated {'always' if row.identity == 'a' else 'by default'} as identity")
    elif row.value is not None:
        parts.append(f"default {row.value}")
    if row.attnotnull:
        parts.append("not null")
    return " ".join(parts)


def _table_sql(table: TableShape) -> Iterator[str]:
    yield f"create table {table.name} ("
    yield ",\n".join(f"    {part}" for part in table.columns + table.constraints)
    yield ");"
    for index in table.indexes:
        yield f"{index};"


def _comparable(tables: list[TableShape]) -> list[str]:
    """One line each, in an order that does not depend on when a column was added."""
    return [
        f"{table.name}: {part}"
        for table in sorted(tables, key=lambda table: table.name)
        for part in sorted(table.columns + table.constraints + table.indexes)
    ]
