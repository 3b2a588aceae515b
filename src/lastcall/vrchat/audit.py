"""The group's audit log, page by page, without the people in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from lastcall.vrchat.errors import ProviderScope, SchemaDrift
from lastcall.vrchat.fields import Id, Moment, Number, Text, is_same
from lastcall.vrchat.transport import Read, Transport

PAGE = 100
"""Rows of one page, the most that VRChat gives."""

AUDIT_GRANT = "group-audit-view"
"""What the group must grant the account before the log is asked for."""

_EVENT = re.compile(r"[a-z0-9_.]{1,100}")


@dataclass(frozen=True)
class AuditLine:
    """What happened and when; not who did it, nor to whom. ``event`` is VRChat's word, like
    ``group.member.join``."""

    entry_id: str
    at: datetime
    event: str


@dataclass(frozen=True)
class AuditPage:
    """``lines`` are within the window asked for, and their event has a known form; ``raw_count`` counts every
    row that VRChat gave, and the next page begins that much further."""

    lines: tuple[AuditLine, ...]
    raw_count: int
    is_last: bool


class _Row(msgspec.Struct, rename="camel"):
    id: Id
    group_id: Id
    event_type: Text
    created_at: Moment = msgspec.field(name="created_at")


class _Answer(msgspec.Struct, rename="camel"):
    results: list[_Row]
    has_next: bool
    total_count: Number | None = None


async def read_audit_page(
    transport: Transport, group_id: str, starts_at: datetime, ends_at: datetime, offset: int
) -> Read[AuditPage]:
    """Up to ``PAGE`` rows from ``offset`` on, of what happened from ``starts_at`` up to, not including,
    ``ends_at``. One request.

    Both are aware. VRChat gives the newest first, so a window that is over does not move under the pages.
    Raises ``ProviderScope`` for another group's row, ``SchemaDrift`` for a page that is longer than asked for
    or ends nowhere, ``ProviderPermissions`` without ``AUDIT_GRANT``, and the faults of any read.
    """
    window = {
        "n": str(PAGE),
        "offset": str(offset),
        "startDate": _instant(starts_at),
        "endDate": _instant(ends_at),
    }
    read = await transport.get(f"/groups/{group_id}/auditLogs", _Answer, window)
    rows = read.value.results
    if len(rows) > PAGE or (read.value.has_next and not rows):
        raise SchemaDrift("VRChat's page of the audit log is no page that was asked for.")
    if not all(is_same(row.group_id, group_id) for row in rows):
        raise ProviderScope("VRChat answered with another group's audit log.")
    lines = tuple(
        AuditLine(row.id, row.created_at, row.event_type)
        for row in rows
        if starts_at <= row.created_at < ends_at and _EVENT.fullmatch(row.event_type)
    )
    return Read(AuditPage(lines, len(rows), is_last=not read.value.has_next), read.asked_at)


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
