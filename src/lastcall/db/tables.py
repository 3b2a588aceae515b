"""Tables that belong to no club: the directory of what is unique over all, the applied routines, limits."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import Index, text
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base


class Directory(Base):
    """Who holds a name that is unique over all clubs (a slug, a VRChat group, a token's hash)."""

    __tablename__ = "directory"

    kind: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    club_id: Mapped[UUID] = mapped_column(index=True)


class RoutineVersion(Base):
    """The digest of each ``*.sql`` file of routines as it was last applied."""

    __tablename__ = "routine_versions"

    name: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[str]
    applied_at: Mapped[datetime] = mapped_column(server_default=text("lastcall_now()"))


class RateLimit(Base):
    """How many of ``name`` a key has used up in the window that ends at ``ends_at``."""

    __tablename__ = "rate_limits"
    __table_args__ = (Index(None, "ends_at"),)

    name: Mapped[str] = mapped_column(primary_key=True)
    key_hash: Mapped[bytes] = mapped_column(primary_key=True)
    ends_at: Mapped[datetime]
    count: Mapped[int]
