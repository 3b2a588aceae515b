"""Indexes on tables that are in use: built concurrently, and able to run again after a failure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

_IS_BROKEN = sa.text("""
    select not i.indisvalid from pg_index i
    where i.indexrelid = to_regclass(quote_ident(:name))
""")


def create_index_concurrently(
    name: str,
    table: str,
    columns: Sequence[str | sa.TextClause],
    *,
    unique: bool = False,
    where: str | None = None,
) -> None:
    """Build the index without blocking writers, outside a transaction: what the revision did before is
    committed.

    An interrupted build leaves an index marked INVALID, which writers maintain and no reader uses; it is
    dropped and built anew. A valid one of that name is left alone, so the revision may run again from its
    start.
    """
    options: dict[str, Any] = {} if where is None else {"postgresql_where": sa.text(where)}
    with op.get_context().autocommit_block():
        if op.get_bind().scalar(_IS_BROKEN, {"name": name}):
            op.drop_index(name, table, postgresql_concurrently=True, if_exists=True)
        op.create_index(
            name,
            table,
            list(columns),
            unique=unique,
            postgresql_concurrently=True,
            if_not_exists=True,
            **options,
        )


def drop_index_concurrently(name: str, table: str) -> None:
    """Drop the index without blocking writers, if it is there."""
    with op.get_context().autocommit_block():
        op.drop_index(name, table, postgresql_concurrently=True, if_exists=True)
