"""Reads for pages and API. Only kinds whose permission the reader has exist for them (EDT-09): each list probes the
reader's kinds one by one, so that a page is full whatever else the club does, and ``views`` looks again.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from lastcall.clubs.policy import Standing
from lastcall.db.cursor import FIRST, LAST, Cursor
from lastcall.db.transaction import Reader
from lastcall.errors import Invalid, NotFound
from lastcall.operations.kinds import KINDS, kinds_visible_to
from lastcall.operations.kinds.kind import Kind
from lastcall.operations.machine import TERMINAL, State
from lastcall.operations.tables import SUBJECT
from lastcall.operations.views import FIELDS, JOINS, OperationView, views
from lastcall.people.actor import Actor

PAGE_MOST = 200
"""Rows of one page at most."""

SEARCH_MOST = 100
"""Characters of what is searched for; no id is longer."""


@dataclass(frozen=True)
class RequestRollup:
    """A request as pages show it: how many of its operations stand where."""

    id: UUID
    kind: Kind[Any]
    size: int
    due_at: datetime
    created_at: datetime
    created_by_name: str
    counts: dict[State, int]

    @property
    def settled(self) -> int:
        """How many are over."""
        return sum(count for state, count in self.counts.items() if state.is_terminal)


@dataclass(frozen=True)
class Filter:
    """What of a list is wanted; nothing here means all of it.

    ``subject`` is a VRChat id in full, of a person, a world or a post, in any case of letters.
    """

    kinds: Collection[str] | None = None
    states: Collection[State] | None = None
    request_id: UUID | None = None
    event_id: UUID | None = None
    subject: str | None = None


ALL = Filter()

_WAS_QUEUED = """
    select exists (
        select from operation_requests where club_id = $1 and created_by = $2 and request_key = any ($3::text[]))
"""
_SUBJECT_ID = re.compile(r"(?:usr|wrld|not)_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class _Order:
    """One of the two lists: what is in it, and by what it goes."""

    states: frozenset[State]
    is_in: str
    time: str
    beyond: str
    direction: str
    start: Cursor


_UPCOMING = _Order(frozenset(State) - TERMINAL, "s.completed_at is null", "due_at", ">", "", start=FIRST)
_HISTORY = _Order(TERMINAL, "s.completed_at is not null", "completed_at", "<", "desc", start=LAST)

_ONE = f"select {FIELDS} from operations o {JOINS} where o.club_id = $1 and o.id = $2"  # noqa: S608
_OF_REQUEST = f"""
    select {FIELDS} from operations o {JOINS}
     where o.club_id = $1 and o.request_id = $2
     order by o.position
"""  # noqa: S608
_ROLLUPS = """
    select q.id, q.kind, q.size, q.due_at, q.created_at, p.display_name, o.state, count(*) as count
      from operation_requests q
      join people p on p.id = q.created_by
      join operations o on o.club_id = q.club_id and o.request_id = q.id
     where q.club_id = $1 and q.id = any ($2::uuid[]) and q.kind = any ($3::text[])
     group by q.club_id, q.id, p.id, o.state
"""
# One probe for each kind and state of the reader: filtering a mixed walk would read past every row of the others.
_UNSENT = """
    select kind, count(*) as count
      from operations
     where club_id = $1 and connection_id = $2 and completed_at is null and state in ('pending', 'claimed')
     group by kind
"""
_PROBES = """
    select s.id, s.time
      from unnest($2::text[]) as k (kind)
     cross join unnest($3::text[]) as t (state)
     cross join lateral (
           select s.id, s.{time} as time
             from operations s
            where s.club_id = $1 and s.kind = k.kind and s.state = t.state and {within}
            order by s.{time} {direction}, s.id {direction}
            limit $6) as s
"""
# Everything of one request, event or subject, of which there is little.
_CHOSEN = """
    select s.id, s.{time} as time
      from operations s
     where s.club_id = $1 and {chosen} and s.kind = any ($2) and s.state = any ($3) and {within}
"""
_PAGE = """
    select {fields}
      from (select s.id, s.time from ({source}) as s
             order by s.time {direction}, s.id {direction} limit $6) as s
      join operations o on o.club_id = $1 and o.id = s.id {joins}
     order by s.time {direction}, o.id {direction}
"""
_CHOICES = {
    "request": "s.request_id = $7::uuid",
    "event": "s.event_id = $9::uuid",
    "subject": f"{SUBJECT.replace('payload', 's.payload')} = $8::text",
}


def _statement(order: _Order, choice: str | None) -> str:
    """The page of ``order``, driven by the index that ``choice`` names; what else is chosen is filtered."""
    within = [order.is_in, f"(s.{order.time}, s.id) {order.beyond} ($4, $5)"]
    for name, condition in _CHOICES.items():
        if name != choice:
            value = condition.rpartition(" = ")[2]
            within.append(f"({value} is null or {condition})")
    source = (_PROBES if choice is None else _CHOSEN).format(
        time=order.time,
        direction=order.direction,
        chosen=_CHOICES.get(choice or ""),
        within=" and ".join(within),
    )
    return _PAGE.format(fields=FIELDS, joins=JOINS, source=source, direction=order.direction)


_STATEMENTS = {
    (order.time, choice): _statement(order, choice)
    for order in (_UPCOMING, _HISTORY)
    for choice in (None, *_CHOICES)
}


async def upcoming(
    tx: Reader,
    standing: Standing,
    actor: Actor,
    club_id: UUID,
    only: Filter = ALL,
    *,
    after: Cursor | None = None,
    limit: int = 50,
) -> list[OperationView]:
    """What is not over, by due time; ``after`` is the last row of the page before."""
    return await _page(tx, standing, actor, club_id, _UPCOMING, only, after, limit)


async def history(
    tx: Reader,
    standing: Standing,
    actor: Actor,
    club_id: UUID,
    only: Filter = ALL,
    *,
    after: Cursor | None = None,
    limit: int = 50,
) -> list[OperationView]:
    """What is over, the newest end first; ``after`` is the last row of the page before."""
    return await _page(tx, standing, actor, club_id, _HISTORY, only, after, limit)


async def operation(
    tx: Reader, standing: Standing, actor: Actor, club_id: UUID, operation_id: UUID
) -> OperationView:
    """One operation; ``NotFound`` for an unknown one and for one of a kind the reader may not see."""
    row = await tx.raw.fetchrow(_ONE, club_id, operation_id)
    found = views([] if row is None else [row], standing, actor)
    if not found:
        raise NotFound("operation_unknown", "There is no such action.", advice="Check the address.")
    return found[0]


async def request_operations(
    tx: Reader, standing: Standing, actor: Actor, club_id: UUID, request_id: UUID
) -> list[OperationView]:
    """Every operation of a request, in its order; ``NotFound`` as for one operation."""
    found = views(await tx.raw.fetch(_OF_REQUEST, club_id, request_id), standing, actor)
    if not found:
        raise NotFound("request_unknown", "There is no such request.", advice="Check the address.")
    return found


async def unsent_of(tx: Reader, club_id: UUID, connection_id: UUID) -> dict[str, int]:
    """How many operations of a connection are not sent yet, by kind: for the question before it is stopped or ended.
    The caller has asked whether the reader may look after the connection."""
    return {row["kind"]: row["count"] for row in await tx.raw.fetch(_UNSENT, club_id, connection_id)}


async def request_rollups(
    tx: Reader, standing: Standing, club_id: UUID, request_ids: Collection[UUID]
) -> dict[UUID, RequestRollup]:
    """How far each of these requests is; those the reader may not see are absent."""
    rows = await tx.raw.fetch(_ROLLUPS, club_id, list(request_ids), kinds_visible_to(standing))
    rollups: dict[UUID, RequestRollup] = {}
    for row in rows:
        rollup = rollups.setdefault(
            row["id"],
            RequestRollup(
                id=row["id"],
                kind=KINDS[row["kind"]],
                size=row["size"],
                due_at=row["due_at"],
                created_at=row["created_at"],
                created_by_name=row["display_name"],
                counts={},
            ),
        )
        rollup.counts[State(row["state"])] = row["count"]
    return rollups


async def was_queued(tx: Reader, club_id: UUID, created_by: UUID, request_keys: Collection[str]) -> bool:
    """Whether that person queued a request under one of these ids already. Only they may be told."""
    found: bool = await tx.raw.fetchval(_WAS_QUEUED, club_id, created_by, list(request_keys))
    return found


def subject_in(text: str) -> str:
    """The VRChat id in what somebody typed or pasted, as ``Filter.subject`` wants it. Raises ``Invalid``."""
    found = _SUBJECT_ID.search(text[:SEARCH_MOST].lower())
    if found is None:
        raise Invalid(
            "search_invalid",
            "Search for a VRChat id in full: usr_… of a person, wrld_… of a world, not_… of a post.",
            advice="Paste the id, or the address of the person's page.",
            field="search",
        )
    return found[0]


async def _page(
    tx: Reader,
    standing: Standing,
    actor: Actor,
    club_id: UUID,
    order: _Order,
    only: Filter,
    after: Cursor | None,
    limit: int,
) -> list[OperationView]:
    start = after or order.start
    kinds = [kind for kind in kinds_visible_to(standing) if only.kinds is None or kind in only.kinds]
    states = [state.value for state in order.states if only.states is None or state in only.states]
    chosen = {"request": only.request_id, "event": only.event_id, "subject": only.subject}
    choice = next((name for name, value in chosen.items() if value is not None), None)
    if choice == "subject" and order is _UPCOMING:
        # What is to come is little, and has no index by subject that every claim would pay for.
        choice = None
    rows = await tx.raw.fetch(
        _STATEMENTS[order.time, choice],
        club_id,
        kinds,
        states,
        start.time,
        start.id,
        min(limit, PAGE_MOST),
        only.request_id,
        only.subject,
        only.event_id,
    )
    return views(rows, standing, actor)
