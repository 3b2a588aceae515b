"""What every table is built from: naming, tenant keys and references between rows of one club."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import DateTime, ForeignKeyConstraint, MetaData, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from lastcall.db.ids import new_id

NAMING = {
    "pk": "%(table_name)s_pkey",
    "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
    "uq": "%(table_name)s_%(column_0_N_name)s_key",
    "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    "ck": "%(table_name)s_%(constraint_name)s_check",
}
"""PostgreSQL's own habit of naming; a CHECK must be given the middle part of its name."""


class Base(DeclarativeBase):
    """Base of all models. ``str`` is text, ``datetime`` is timestamptz, ``UUID`` is uuid, a dict is jsonb."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's own declaration
        str: Text(),
        datetime: DateTime(timezone=True),
        UUID: Uuid(),
        dict[str, Any]: JSONB(),
    }


PRIVATE = "private"
"""In a column's ``info``: what it holds is one person's own, and no export of the club has it."""


class TenantTable:
    """Mixin of every table whose rows belong to one club: the primary key is ``(club_id, id)``."""

    club_id: Mapped[UUID] = mapped_column(primary_key=True, sort_order=-2)
    id: Mapped[UUID] = mapped_column(primary_key=True, default=new_id, sort_order=-1)


OnDelete = Literal["cascade", "restrict", "set null"]


def tenant_reference(table: str, column: str, *, on_delete: OnDelete | None = None) -> ForeignKeyConstraint:
    """A reference from ``(club_id, column)`` to ``(club_id, id)`` of ``table``: it cannot leave the club.

    A nullable ``column`` makes the reference optional. ``set null`` empties ``column`` alone, never
    ``club_id``.
    """
    action = None
    if on_delete is not None:
        action = f"SET NULL ({column})" if on_delete == "set null" else on_delete.upper()
    return ForeignKeyConstraint(["club_id", column], [f"{table}.club_id", f"{table}.id"], ondelete=action)
