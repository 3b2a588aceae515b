"""What was decided about an item's stay in view."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, select

from lastcall.db.transaction import Reader
from lastcall.decisions.tables import Retention


@dataclass(frozen=True)
class RetentionView:
    """``version`` is 0 for an item that nobody acted on yet, and is what a person's action is compared with
    (DEC-05); ``archive_version`` counts archives. ``revived_at`` is from when the days count anew."""

    keep: bool
    archived_at: datetime | None
    archived_reason: str | None
    revived_at: datetime | None
    version: int
    archive_version: int


UNSEEN = RetentionView(
    keep=False, archived_at=None, archived_reason=None, revived_at=None, version=0, archive_version=0
)
COLUMNS = (
    Retention.keep,
    Retention.archived_at,
    Retention.archived_reason,
    Retention.revived_at,
    Retention.version,
    Retention.archive_version,
)


_NAMES = tuple(column.key for column in COLUMNS)


async def retention_of(tx: Reader, club_id: UUID, item_id: UUID) -> RetentionView:
    """The item's retention as it stands. Who may see it is the caller's question."""
    found = await tx.execute(select(*COLUMNS).where(Retention.club_id == club_id, Retention.id == item_id))
    return view(found.one_or_none())


def view(row: Row[Any] | None) -> RetentionView:
    """Of a row that has ``COLUMNS``, or of no row."""
    return UNSEEN if row is None else RetentionView(**{name: row._mapping[name] for name in _NAMES})
