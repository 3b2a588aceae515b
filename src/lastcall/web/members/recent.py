"""What was queued lately about the people of the group."""

from __future__ import annotations

from collections.abc import Sequence

from lastcall.connections.queries import ConnectionCard
from lastcall.db.transaction import Reader
from lastcall.operations.queries import Filter, history, request_rollups, upcoming
from lastcall.web.access import Visitor
from lastcall.web.club import ClubPage
from lastcall.web.members.tabs import kinds_by_id
from lastcall.web.scheduled import Entry, role_names, upcoming_entries

LOOKED_AT = 50
"""Rows of each list that are looked at: a batch has many and is shown as one."""
SHOWN = 8


async def recent_actions(
    tx: Reader, visitor: Visitor, page: ClubPage, card: ConnectionCard | None
) -> Sequence[Entry]:
    """What waits and what is over, the latest first, a batch as one."""
    only = Filter(kinds=[kind.name for kind in kinds_by_id(page.standing)])
    reader = (tx, page.standing, visitor.actor, page.club.id, only)
    rows = [*await upcoming(*reader, limit=LOOKED_AT), *await history(*reader, limit=LOOKED_AT)]
    batches = {row.request_id for row in rows if row.request_size > 1}
    rollups = await request_rollups(tx, page.standing, page.club.id, batches) if batches else {}
    entries = upcoming_entries(rows, rollups, role_names(card))
    return sorted(entries, key=lambda entry: entry.time, reverse=True)[:SHOWN]
