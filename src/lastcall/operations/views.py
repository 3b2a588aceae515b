"""One operation as a reader sees it, and how rows become that. What the reader has no permission for is left out
here once more, whatever the statement found (EDT-09)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing
from lastcall.operations.codes import REASONS, Reason
from lastcall.operations.kinds import KINDS, kinds_visible_to
from lastcall.operations.kinds.kind import Kind, target_user_id, title
from lastcall.operations.machine import UNSENT, State
from lastcall.people.actor import Actor


@dataclass(frozen=True)
class OperationView:
    """One operation as a reader sees it. ``is_cancellable``: this reader may cancel it as it stands; ``is_editable``
    likewise, as far as rights and state go. ``ready_at`` is None while it waits for the operation that it depends on,
    ``offset`` that of an event-relative schedule, ``window_ends_at`` when the claim or submission under way ends.
    """

    id: UUID
    request_id: UUID
    request_size: int
    position: int
    kind: Kind[Any]
    payload: dict[str, Any]
    schedule_kind: str
    event_id: UUID | None
    offset: timedelta | None
    due_at: datetime
    ready_at: datetime | None
    state: State
    revision: int
    actor_id: UUID
    actor_name: str
    code: str | None
    result: dict[str, Any] | None
    created_at: datetime
    window_ends_at: datetime | None
    submitted_at: datetime | None
    completed_at: datetime | None
    is_cancellable: bool
    is_editable: bool
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


FIELDS = """
    o.id, o.request_id, q.size, o.position, o.kind, o.payload::text as payload, o.schedule_kind, o.event_id,
    o.offset_ms, o.due_at, o.ready_at, o.state, o.revision, o.actor_id, p.display_name, o.code,
    o.result::text as result, o.created_at, o.submitted_at, o.completed_at, o.claim_expires_at,
    l.outcome as late_outcome
"""
"""What ``views`` needs of a row ``o``, with ``JOINS``."""

JOINS = """
    join operation_requests q on q.club_id = o.club_id and q.id = o.request_id
    join people p on p.id = o.actor_id
    left join late_results l on l.club_id = o.club_id and l.operation_id = o.id
"""


def may_change(standing: Standing, actor: Actor, subject: UUID) -> bool:
    """Whether the actor may edit or cancel what ``subject`` authorized: their own, and another person's with
    ``manage_scheduled_actions`` or as the owner (EDT-04, EDT-13)."""
    return subject == actor.person_id or standing.holds(Permission.MANAGE_SCHEDULED_ACTIONS)


def views(rows: Sequence[asyncpg.Record], standing: Standing, actor: Actor) -> list[OperationView]:
    """The rows, but for those of kinds that the reader may not see."""
    visible = set(kinds_visible_to(standing))
    return [_view(row, standing, actor) for row in rows if row["kind"] in visible]


def _view(row: asyncpg.Record, standing: Standing, actor: Actor) -> OperationView:
    state = State(row["state"])
    is_theirs = may_change(standing, actor, row["actor_id"])
    return OperationView(
        id=row["id"],
        request_id=row["request_id"],
        request_size=row["size"],
        position=row["position"],
        kind=KINDS[row["kind"]],
        payload=msgspec.json.decode(row["payload"]),
        # A row of an older release without a kind of schedule is a fixed one (ENQ-06).
        schedule_kind=row["schedule_kind"] or "fixed",
        event_id=row["event_id"],
        offset=None if row["offset_ms"] is None else timedelta(milliseconds=row["offset_ms"]),
        due_at=row["due_at"],
        ready_at=row["ready_at"],
        state=state,
        revision=row["revision"],
        actor_id=row["actor_id"],
        actor_name=row["display_name"],
        code=row["code"],
        result=None if row["result"] is None else msgspec.json.decode(row["result"]),
        created_at=row["created_at"],
        window_ends_at=None if state.is_terminal else row["claim_expires_at"],
        submitted_at=row["submitted_at"],
        completed_at=row["completed_at"],
        is_cancellable=is_theirs and state in UNSENT,
        is_editable=is_theirs and state is State.PENDING,
        late_outcome=row["late_outcome"],
    )
