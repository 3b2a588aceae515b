"""Change one pending operation: what it does, whom it is for, when. Its kind stays what it is (EDT-05)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from lastcall.clubs.activity import log
from lastcall.clubs.policy import require_staff
from lastcall.connections.signals import work
from lastcall.connections.states import ConnectionState
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.deadlines.signals import Signal
from lastcall.errors import Conflict
from lastcall.operations.dependencies import Creation, check_creations, hold_creations, require_same_creation
from lastcall.operations.kinds.kind import Payload
from lastcall.operations.machine import State
from lastcall.operations.queries import operation
from lastcall.operations.schedules import EventRelative, Schedule, check_form, due_time, late_at
from lastcall.operations.services.asked import duplicate_recipient, parse, parse_same_kind, require_roles
from lastcall.operations.services.basis import (
    Current,
    EventHeld,
    hold_connection,
    hold_events,
    linked_event,
    refuse_banned,
    require_own_places,
)
from lastcall.operations.services.cancel import require_theirs, revision_stale
from lastcall.operations.signals import FANOUT, LATE_PENDING, changed
from lastcall.operations.views import OperationView
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

_TIES = """
    select event_id, dependency_event_id, depends_on from operations where club_id = $1 and id = $2
"""
_LOCK = "select lock_with_creation($1, $2)"
_NOTE_DEPENDENTS = "select note_dependents($1, array[$2]::uuid[], $3)"
_BASIS = """
    select connection_id, epoch, schedule_kind, event_id, event_cancel_generation, event_tba_generation,
           dependency_verdict(club_id, id, due_at) as dependency
      from operations
     where club_id = $1 and id = $2
"""
_KEEP = """
    insert into operation_revisions
           (club_id, id, operation_id, revision, actor_id, payload, schedule, due_at, edited_by, edited_at)
    select o.club_id, $3, o.id, o.revision, o.actor_id, o.payload,
           jsonb_strip_nulls(jsonb_build_object(
               'kind', coalesce(o.schedule_kind, 'fixed'), 'event_id', o.event_id, 'offset_ms', o.offset_ms)),
           o.due_at, $4, $5
      from operations o
     where o.club_id = $1 and o.id = $2
"""
# The provider's backoff holds whatever the new time is (WRK-18), and what waits for its creation goes on waiting.
_CHANGE = """
    update operations
       set payload = $4, target = $5, grants = $6, lane = $7, schedule_kind = $8, offset_ms = $9, due_at = $10,
           ready_at = case when ready_at is not null then greatest($10, retry_at) end,
           event_id = $11, event_cancel_generation = $12, event_tba_generation = $13,
           actor_id = $14, revision = revision + 1, preflight_failures = 0,
           code = case when ready_at is null then code end
     where club_id = $1 and id = $2 and state = 'pending' and revision = $3
    returning ready_at
"""


_WAITS = ("awaiting_instance_creation", "instance_creation_rescheduled")
"""What a creation may say of an invitation that can still be edited: a later time mends the second."""


async def edit(
    db: Database,
    actor: Actor,
    club_id: UUID,
    operation_id: UUID,
    seen_revision: int,
    payload: Mapping[str, Any],
    schedule: Schedule,
    *,
    confirm_banned: Collection[str] = frozenset(),
) -> OperationView:
    """Replace payload and schedule of a pending operation, at the revision the person saw; answers the row as it is
    then, under the editor's authority.

    ``payload`` names its ``kind``, which must be the operation's own. What it said before is kept as a revision.
    Raises ``NotFound`` for what the reader may not see, ``NotAllowed``, ``Invalid`` with the field, or ``Conflict``
    with the fresh row when it moved on, before anything is changed (EDT-02).
    """
    check_form(schedule)
    async with db.transaction() as tx:
        # Everything is held before anything is judged, in the house's order; the event of the row can only change with
        # its revision, so the one that was seen without the lock is the one, or the edit is refused.
        standing = await require_staff(tx, actor, club_id, scope=Scope.OPERATIONS)
        connection = await hold_connection(tx, club_id)
        own_event, creation_event, depends_on = (
            await tx.raw.fetchrow(_TIES, club_id, operation_id) or (None,) * 3
        )
        events = await hold_events(tx, club_id, [own_event, creation_event, schedule.event_id])
        await tx.raw.fetch(_LOCK, club_id, operation_id)
        row = await operation(tx, standing, actor, club_id, operation_id)
        require_theirs(standing, actor, row, "edit")
        if row.state is not State.PENDING:
            raise _not_editable(row)
        if row.revision != seen_revision:
            raise revision_stale(row)
        current = await _require_basis(tx, club_id, row, connection, events)
        changed_to = parse_same_kind(row.kind, payload, "payload")
        before = parse(row.kind, row.payload, "payload")
        for each in (before, changed_to):
            require_roles(standing, row.kind, each, "payload.roleId")
        require_same_creation(before, changed_to)
        require_own_places(current, {"payload": changed_to})
        await refuse_banned(tx, club_id, current, row.kind, {"payload": changed_to}, confirm_banned)
        event = linked_event(standing, schedule, events)
        now = await tx.raw.fetchval("select lastcall_now()")
        due_at = due_time(schedule, now, None if event is None else event.starts_at)
        held = await hold_creations(tx, club_id, [] if depends_on is None else [depends_on])
        check_creations({"payload": changed_to}, held, (current.id, current.epoch), due_at)
        followed = event or (None if depends_on is None else held[depends_on])
        await tx.raw.execute(_KEEP, club_id, operation_id, new_id(), actor.person_id, now)
        ready_at = await _change(tx, actor, club_id, row, changed_to, schedule, followed, due_at)
        details = {"revision": seen_revision + 1, "due_at": due_at.isoformat(), "kind": row.kind.name}
        await log(tx, club_id, actor, "operation.edited", "operation", operation_id, details)
        await _note_dependents(tx, club_id, operation_id, now)
        tx.publish(Signal(LATE_PENDING, late_at(due_at)))
        if ready_at is not None:
            tx.publish(work(current.account_id, ready_at))
        tx.publish(changed(club_id))
        return await operation(tx, standing, actor, club_id, operation_id)


async def _note_dependents(tx: Transaction, club_id: UUID, operation_id: UUID, now: datetime) -> None:
    """What was reviewed with a creation as it was before is not sent; it is told so soon (DEP-02)."""
    noted_at = await tx.raw.fetchval(_NOTE_DEPENDENTS, club_id, operation_id, now)
    if noted_at is not None:
        tx.publish(Signal(FANOUT, noted_at))


def _not_editable(row: OperationView) -> Conflict:
    if row.state is State.CLAIMED:
        return Conflict(
            "operation_not_editable",
            "It is being prepared for sending, so it cannot be edited now.",
            advice="Cancel it, or try again in a moment.",
            fresh=row,
        )
    return Conflict(
        "operation_not_editable",
        f"It is too late to edit this: {row.state.label.lower()}.",
        advice="Look at how it stands now.",
        fresh=row,
    )


async def _require_basis(
    tx: Transaction,
    club_id: UUID,
    row: OperationView,
    connection: Current | None,
    events: Mapping[UUID, EventHeld],
) -> Current:
    """What the row was reviewed on still stands: no edit revives what an epoch's end (EDT-12), its event or its
    creation has stopped already, though nothing has come by yet to say so in the row (EVT-04, EVT-05, DEP-04)."""
    basis = await tx.raw.fetchrow(_BASIS, club_id, row.id)
    if (
        connection is None
        or connection.state in (ConnectionState.DISCONNECTING, ConnectionState.DISCONNECTED)
        or (connection.id, connection.epoch) != (basis["connection_id"], basis["epoch"])
    ):
        raise _stopped(
            "connection_changed", "The group was disconnected or connected anew since the review.", row
        )
    if basis["event_id"] is not None:
        event = events.get(basis["event_id"])
        if event is None:
            raise _stopped("event_deleted", "Its event was removed since the review.", row)
        if event.is_cancelled or event.cancel_generation != basis["event_cancel_generation"]:
            raise _stopped("event_cancelled", "Its event was cancelled since the review.", row)
        if (
            basis["schedule_kind"] == "event_relative"
            and event.tba_generation != basis["event_tba_generation"]
        ):
            raise _stopped("event_time_tba", "Its event lost its exact start since the review.", row)
    if basis["dependency"] not in (None, *_WAITS):
        raise _stopped(basis["dependency"], "Its instance's creation is not what it was at the review.", row)
    return connection


def _stopped(code: str, sentence: str, row: OperationView) -> Conflict:
    return Conflict(code, sentence, advice="It will not be sent. Queue a new action instead.", fresh=row)


async def _change(
    tx: Transaction,
    actor: Actor,
    club_id: UUID,
    row: OperationView,
    payload: Payload,
    schedule: Schedule,
    followed: EventHeld | Creation | None,
    due_at: datetime,
) -> datetime | None:
    """Write the new revision; its ready time. ``followed`` says which event stops it: the one that it names, else that
    of its creation (DEP-08). Another row of the batch with the same payload stands in the way of it, also one that is
    over (EDT-11)."""
    kind = row.kind
    try:
        written = await tx.raw.fetchrow(
            _CHANGE,
            club_id,
            row.id,
            row.revision,
            msgspec.json.encode(payload).decode(),
            kind.target(payload),
            list(kind.grants_for(payload)),
            kind.lane(row.request_size),
            schedule.kind,
            schedule.offset_ms if isinstance(schedule, EventRelative) else None,
            due_at,
            *((None, None, None) if followed is None else followed.event_tie),
            actor.person_id,
        )
    except asyncpg.UniqueViolationError:
        raise duplicate_recipient(
            "Another action of this batch is the same; choose somebody else.", field="payload.targetUserId"
        ) from None
    if written is None:
        raise AssertionError("A row that is locked, pending and of that revision can be edited.")
    ready_at: datetime | None = written["ready_at"]
    return ready_at
