"""What was queued lately about the people of the group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lastcall.connections.queries import ConnectionCard
from lastcall.db.transaction import Reader
from lastcall.operations.queries import Filter, history, request_rollups, upcoming
from lastcall.web.access import Visitor
from lastcall.web.club import ClubPage
from lastcall.web.members.tabs import kinds_by_id
from lastcall.web.scheduled import Entry, role_names, single, upcoming_entries

LOOKED_AT = 50
"""Rows of each list that are looked at: a batch has many and is shown as one."""
SHOWN = 8


@dataclass(frozen=True)
class Recent:
    """``entries``: what waits and what is over, the latest first, a batch as one. ``of_person``: the last of it about
    each person, by user id in small letters."""

    entries: Sequence[Entry]
    of_person: Mapping[str, Entry]


async def recent_actions(tx: Reader, visitor: Visitor, page: ClubPage, card: ConnectionCard | None) -> Recent:
    """What was queued about people, as far as it waits or is over only just."""
    only = Filter(kinds=[kind.name for kind in kinds_by_id(page.standing)])
    reader = (tx, page.standing, visitor.actor, page.club.id, only)
    rows = [*await upcoming(*reader, limit=LOOKED_AT), *await history(*reader, limit=LOOKED_AT)]
    batches = {row.request_id for row in rows if row.request_size > 1}
    rollups = await request_rollups(tx, page.standing, page.club.id, batches) if batches else {}
    names = role_names(card)
    entries = sorted(upcoming_entries(rows, rollups, names), key=lambda one: one.time, reverse=True)
    of_person: dict[str, Entry] = {}
    for row in rows:
        if row.target_user_id is not None:
            entry = single(row, names, time=row.completed_at or page.now)
            of_person.setdefault(row.target_user_id.lower(), entry)
    return Recent(entries[:SHOWN], of_person)
