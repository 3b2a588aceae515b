"""What is kept about a person, said once by each room: how it is handed out, and what becomes of it when the person
is erased.

A test walks over the schema: a column that points at a person and is named by no source fails it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

from sqlalchemy import text

from lastcall.db.database import Database
from lastcall.db.transaction import Transaction

PAGE = 5000  # rows a statement: few scans where a table has no index by person
ERASED_NAME = "Erased person"

Erase: TypeAlias = Callable[[Database, Transaction, UUID], Awaitable[None]]


@dataclass(frozen=True)
class PersonalData:
    """One kind of data about a person.

    ``select`` is a SELECT of what the person may have, without secrets and without anything about other people;
    ``:person`` is their id. Its column ``k``, a unique text, orders it and is left out of the export. ``columns``
    names the columns (``table.column``) that it answers for. ``erase`` takes it
    away or makes it nobody's, in the erasing transaction; a source without one is kept, for the reason in ``kept``.
    """

    name: str
    columns: tuple[str, ...]
    select: str | None = None
    erase: Erase | None = None
    kept: str = ""


_sources: list[PersonalData] = []


def holds(*sources: PersonalData) -> None:
    """Register what a room holds about people. Registering twice is once."""
    for source in sources:
        if source not in _sources:
            _sources.append(source)


def sources() -> tuple[PersonalData, ...]:
    """Every registered source, in the order of registration."""
    return tuple(_sources)


async def rows_about(db: Database, source: PersonalData, person_id: UUID) -> AsyncIterator[dict[str, Any]]:
    """The rows of one source, page by page, each page in a read of its own."""
    if source.select is None:
        return
    statement = text(
        f"select * from ({source.select}) found where k > :after order by k limit {PAGE}"  # noqa: S608
    )
    after, is_more = "", True
    while is_more:
        async with db.read() as tx:
            found = await tx.execute(statement, {"person": person_id, "after": after})
            rows = [dict(row._mapping) for row in found.all()]
        is_more = len(rows) == PAGE
        for row in rows:
            after = row.pop("k")
            yield row
