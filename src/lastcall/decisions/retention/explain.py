"""When an item will be archived, or why it will not be: judged in one place, and said in the same words everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text

from lastcall.db.transaction import Reader
from lastcall.decisions.retention.kind import Kind
from lastcall.decisions.retention.view import RetentionView, view
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

AGEING = timedelta(days=30)
"""Without activity for so long an item is ageing."""


class Outlook(StrEnum):
    """What comes of an item that nobody decides; the first that fits, in this order."""

    DECIDED = "decided"
    ARCHIVED = "archived"
    KEPT = "kept"
    CLUB_NOT_ACTIVE = "club_not_active"
    NEVER = "never"
    DUE = "due"
    SCHEDULED = "scheduled"

    @property
    def words(self) -> str:
        """One sentence for people; the time of ``SCHEDULED`` goes before it."""
        return _WORDS[self]


_WORDS = {
    Outlook.DECIDED: "It does not wait for a decision, so it is not archived by itself.",
    Outlook.ARCHIVED: "It is archived. It can still be decided, and it can be brought back.",
    Outlook.KEPT: "Somebody keeps it, so it is not archived by itself.",
    Outlook.CLUB_NOT_ACTIVE: "The club is paused or archived; the days count on, but nothing is archived by itself.",
    Outlook.NEVER: "This club archives nothing by itself.",
    Outlook.DUE: "It is due and will be archived at any moment.",
    Outlook.SCHEDULED: "Then it is archived by itself, unless something happens to it or somebody keeps it.",
}


@dataclass(frozen=True)
class Explanation:
    """One item as retention sees it. ``due_at`` is when it is to be archived by itself, by the facts: null for never,
    as things stand. Its days count from ``idle_since``, the last activity or a later revival. ``retention_days``, of
    24 hours, are the club's; ``archived_by`` is the name of the person who archived it."""

    kind: Kind
    id: UUID
    outlook: Outlook
    status: str
    activity_at: datetime
    idle_since: datetime
    retention_days: int | None
    due_at: datetime | None
    archived_by: str | None
    retention: RetentionView


async def explain(tx: Reader, club_id: UUID, kind: Kind, ids: Sequence[UUID]) -> dict[UUID, Explanation]:
    """Those of these items that the club has. Who may see them is the caller's question."""
    rows = await tx.execute(_facts(kind), {"club_id": club_id, "ids": list(ids)})
    return {row.id: _explanation(kind, row) for row in rows.all()}


async def explain_item(tx: Reader, actor: Actor, club_id: UUID, kind: Kind, item_id: UUID) -> Explanation:
    """One item, for whoever may see it. Raises the kind's ``NotFound`` for anybody else (RET-19)."""
    await kind.require_readable(tx, actor, club_id, scope=Scope.READ)
    found = await explain(tx, club_id, kind, [item_id])
    if item_id not in found:
        raise kind.unknown()
    return found[item_id]


def outlook_of(retention: RetentionView, club_state: str, *, is_never: bool, is_due: bool) -> Outlook:
    """What comes of an item that waits. ``is_never``: as the club is set, it has no time at which it is due."""
    reasons = {
        Outlook.ARCHIVED: retention.archived_at is not None,
        Outlook.KEPT: retention.keep,
        Outlook.CLUB_NOT_ACTIVE: club_state != "active",
        Outlook.NEVER: is_never,
        Outlook.DUE: is_due,
    }
    return next((outlook for outlook, fits in reasons.items() if fits), Outlook.SCHEDULED)


def _facts(kind: Kind) -> Any:
    # By the candidate rule itself, and not by the column that is derived from it.
    return text(f"""
        select
            s.id, s.status, s.activity_at, c.state as club_state, c.retention_days, d.due_at,
            d.due_at <= (select lastcall_now()) as is_due, p.display_name as archived_by,
            greatest(s.activity_at, r.revived_at) as idle_since,
            coalesce(r.keep, false) as keep, r.archived_at, r.archived_reason, r.revived_at,
            coalesce(r.version, 0) as version, coalesce(r.archive_version, 0) as archive_version
        from {kind.name}_due(:club_id, :ids) d
        join {kind.table.name} s on s.club_id = :club_id and s.id = d.id
        join clubs c on c.id = s.club_id
        left join retention r on r.club_id = s.club_id and r.id = s.id
        left join people p on p.id = r.archived_by_person_id
    """)  # noqa: S608 - own names


def _explanation(kind: Kind, row: Row[Any]) -> Explanation:
    retention = view(row)
    is_due = row.due_at is not None and row.is_due
    return Explanation(
        kind=kind,
        id=row.id,
        outlook=Outlook.DECIDED
        if row.status != kind.pending
        else outlook_of(retention, row.club_state, is_never=row.due_at is None, is_due=is_due),
        status=row.status,
        activity_at=row.activity_at,
        idle_since=row.idle_since,
        retention_days=row.retention_days,
        due_at=row.due_at,
        archived_by=row.archived_by,
        retention=retention,
    )
