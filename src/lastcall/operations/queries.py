"""Reads for pages and API. Only kinds whose permission the reader has exist for them (EDT-09)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing
from lastcall.db.cursor import FIRST, LAST, Cursor
from lastcall.db.transaction import Reader
from lastcall.errors import NotFound
from lastcall.operations.codes import REASONS, Reason
from lastcall.operations.kinds import KINDS, kinds_visible_to
from lastcall.operations.kinds.kind import Kind, target_user_id, title
from lastcall.operations.machine import UNSENT, State
from lastcall.people.actor import Actor

PAGE_MOST = 200
"""Rows of one page at most."""


@dataclass(frozen=True)
class OperationView:
    """One operation as a reader sees it. ``is_cancellable``: this reader may cancel it as it stands. ``ready_at`` is
    None while it waits for the operation that it depends on.
    """

    id: UUID
    request_id: UUID
    request_size: int
    position: int
    kind: Kind[Any]
    payload: dict[str, Any]
    schedule_kind: str
    due_at: datetime
    ready_at: datetime | None
    state: State
    revision: int
    actor_id: UUID
    actor_name: str
    code: str | None
    result: dict[str, Any] | None
    created_at: datetime
    submitted_at: datetime | None
    completed_at: datetime | None
    is_cancellable: bool
    late_outcome: str | None

    @property
    def reason(self) -> Reason | None:
        """What pages say about the code, and what the reader can do."""
        return None if self.code is None else REASONS[self.code]

    @property
    def target_user_id(self) -> str | None:
        """The person that it is about, if it is about one."""
        return target_user_id(self.payload)

    @property
    def title(self) -> str | None:
        """What it is about when that is no person: a post's title or id, or a world."""
        return title(self.payload)


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


_FIELDS = """
    o.id, o.request_id, q.size, o.position, o.kind, o.payload::text as payload, o.schedule_kind, o.due_at,
    o.ready_at, o.state, o.revision, o.actor_id, p.display_name, o.code, o.result::text as result,
    o.created_at, o.submitted_at, o.completed_at, l.outcome as late_outcome
"""
_JOINS = """
    join operation_requests q on q.club_id = o.club_id and q.id = o.request_id
    join people p on p.id = o.actor_id
    left join late_results l on l.club_id = o.club_id and l.operation_id = o.id
"""
_ONE = f"select {_FIELDS} from operations o {_JOINS} where o.club_id = $1 and o.id = $2"  # noqa: S608
_OF_REQUEST = f"""
    select {_FIELDS} from operations o {_JOINS}
     where o.club_id = $1 and o.request_id = $2
     order by o.position
"""  # noqa: S608
# Kind by kind, each from the index: filtering a mixed walk would read past every row of the other kinds.
_UPCOMING = f"""
    select {_FIELDS}
      from (select s.*
              from unnest($2::text[]) as k (kind)
             cross join lateral (
                   select * from operations s
                    where s.club_id = $1 and s.kind = k.kind and s.completed_at is null
                      and (s.due_at, s.id) > ($3, $4)
                    order by s.due_at, s.id
                    limit $5) as s
             order by s.due_at, s.id
             limit $5) as o {_JOINS}
     order by o.due_at, o.id
"""  # noqa: S608
_HISTORY = f"""
    select {_FIELDS}
      from (select s.*
              from unnest($2::text[]) as k (kind)
             cross join lateral (
                   select * from operations s
                    where s.club_id = $1 and s.kind = k.kind and s.completed_at is not null
                      and (s.completed_at, s.id) < ($3, $4)
                      and ($6::text[] is null or s.state = any ($6))
                    order by s.completed_at desc, s.id desc
                    limit $5) as s
             order by s.completed_at desc, s.id desc
             limit $5) as o {_JOINS}
     order by o.completed_at desc, o.id desc
"""  # noqa: S608
_ROLLUPS = """
    select q.id, q.kind, q.size, q.due_at, q.created_at, p.display_name, o.state, count(*) as count
      from operation_requests q
      join people p on p.id = q.created_by
      join operations o on o.club_id = q.club_id and o.request_id = q.id
     where q.club_id = $1 and q.id = any ($2::uuid[]) and q.kind = any ($3::text[])
     group by q.club_id, q.id, p.id, o.state
"""


async def upcoming(
    tx: Reader,
    standing: Standing,
    actor: Actor,
    club_id: UUID,
    *,
    kinds: Collection[str] | None = None,
    after: Cursor | None = None,
    limit: int = 50,
) -> list[OperationView]:
    """What is not over, by due time; ``after`` is the last row of the page before."""
    start = after or FIRST
    shown = _shown(standing, kinds)
    rows = await tx.raw.fetch(_UPCOMING, club_id, shown, start.time, start.id, min(limit, PAGE_MOST))
    return _views(rows, standing, actor)


async def history(
    tx: Reader,
    standing: Standing,
    actor: Actor,
    club_id: UUID,
    *,
    kinds: Collection[str] | None = None,
    states: Collection[State] | None = None,
    after: Cursor | None = None,
    limit: int = 50,
) -> list[OperationView]:
    """What is over, the newest end first; ``after`` is the last row of the page before."""
    start = after or LAST
    shown = _shown(standing, kinds)
    chosen = None if states is None else [state.value for state in states]
    rows = await tx.raw.fetch(_HISTORY, club_id, shown, start.time, start.id, min(limit, PAGE_MOST), chosen)
    return _views(rows, standing, actor)


async def operation(
    tx: Reader, standing: Standing, actor: Actor, club_id: UUID, operation_id: UUID
) -> OperationView:
    """One operation; ``NotFound`` for an unknown one and for one of a kind the reader may not see."""
    row = await tx.raw.fetchrow(_ONE, club_id, operation_id)
    views = _views([] if row is None else [row], standing, actor)
    if not views:
        raise NotFound("operation_unknown", "There is no such action.", advice="Check the address.")
    return views[0]


async def request_operations(
    tx: Reader, standing: Standing, actor: Actor, club_id: UUID, request_id: UUID
) -> list[OperationView]:
    """Every operation of a request, in its order; ``NotFound`` as for one operation."""
    views = _views(await tx.raw.fetch(_OF_REQUEST, club_id, request_id), standing, actor)
    if not views:
        raise NotFound("request_unknown", "There is no such request.", advice="Check the address.")
    return views


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


def _shown(standing: Standing, kinds: Collection[str] | None) -> list[str]:
    visible = kinds_visible_to(standing)
    return visible if kinds is None else [kind for kind in visible if kind in kinds]


def _views(rows: Sequence[asyncpg.Record], standing: Standing, actor: Actor) -> list[OperationView]:
    visible = set(kinds_visible_to(standing))
    return [_view(row, standing, actor) for row in rows if row["kind"] in visible]


def _view(row: asyncpg.Record, standing: Standing, actor: Actor) -> OperationView:
    state = State(row["state"])
    is_theirs = row["actor_id"] == actor.person_id or standing.holds(Permission.MANAGE_SCHEDULED_ACTIONS)
    return OperationView(
        id=row["id"],
        request_id=row["request_id"],
        request_size=row["size"],
        position=row["position"],
        kind=KINDS[row["kind"]],
        payload=msgspec.json.decode(row["payload"]),
        # A row of an older release without a kind of schedule is a fixed one (ENQ-06).
        schedule_kind=row["schedule_kind"] or "fixed",
        due_at=row["due_at"],
        ready_at=row["ready_at"],
        state=state,
        revision=row["revision"],
        actor_id=row["actor_id"],
        actor_name=row["display_name"],
        code=row["code"],
        result=None if row["result"] is None else msgspec.json.decode(row["result"]),
        created_at=row["created_at"],
        submitted_at=row["submitted_at"],
        completed_at=row["completed_at"],
        is_cancellable=is_theirs and state in UNSENT,
        late_outcome=row["late_outcome"],
    )
