"""Freeze 1 to 100 reviewed payloads as one request.

The order is part of the promise: form; permission of each payload, before the request id is looked up (ENQ-12);
replay (ENQ-03), before anything that may have changed since; connection; rules of the kind; event (ENQ-07, ENQ-08);
due time (ENQ-05, ENQ-09); what it waits for (DEP-01, DEP-06); rows. What takes the same number of statements for one
payload takes it for a hundred.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from lastcall.clubs.activity import log
from lastcall.clubs.policy import require_staff
from lastcall.connections.signals import work
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.deadlines.signals import Signal
from lastcall.errors import Conflict
from lastcall.operations.dependencies import (
    check_creations,
    creation_id,
    creation_ids,
    events_of,
    hold_creations,
)
from lastcall.operations.schedules import EventRelative, Schedule, due_time, late_at
from lastcall.operations.services.asked import Asked, check_form, check_rules, read_asked
from lastcall.operations.services.basis import (
    Current,
    EventHeld,
    hold_connection,
    hold_events,
    linked_event,
    refuse_banned,
    require_feature,
    require_own_places,
)
from lastcall.operations.signals import LATE_PENDING, changed
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

_KNOWN = (
    "select id, created_by, digest, due_at from operation_requests where club_id = $1 and request_key = $2"
)
_IDS = "select id from operations where club_id = $1 and request_id = $2 order by position"
_INSERT_REQUEST = """
    insert into operation_requests
           (club_id, id, request_key, kind, size, created_by, digest, schedule, due_at, created_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        on conflict (club_id, request_key) do nothing
"""
# The creation is probed row by row: joined as a set, it would be found by reading every operation of the club.
_INSERT_ROWS = """
    insert into operations
           (club_id, id, request_id, position, connection_id, epoch, kind, payload, target, grants, schedule_kind,
            offset_ms, due_at, ready_at, lane, actor_id, created_at,
            event_id, event_cancel_generation, event_tba_generation,
            code, depends_on, dependency_revision, dependency_event_id)
    select $1, r.id, $2, r.position - 1, $3, $4, $5, r.payload, r.target, r.grants::text[], $6,
           $7, $8, case when c.id is null or c.state = 'succeeded' then $8::timestamptz end, $9, $10, $11,
           coalesce($12::uuid, c.event_id),
           case when $12 is null then c.event_cancel_generation else $13 end,
           case when $12 is null then c.event_tba_generation else $14 end,
           case when c.state <> 'succeeded' then 'awaiting_instance_creation' end,
           c.id, case when c.id is not null then (r.payload ->> 'creationRevision')::integer end, c.event_id
      from unnest($15::uuid[], $16::jsonb[], $17::text[], $18::text[], $19::uuid[])
           with ordinality as r (id, payload, target, grants, creation_id, position)
      left join lateral (
           select o.* from operations o where o.club_id = $1 and o.id = r.creation_id limit 1) as c on true
"""
"""What waits for a creation has no ready time, and follows the creation's event where it names none (DEP-08)."""


@dataclass(frozen=True)
class Enqueued:
    """The operations of a request, in the order of its payloads. A replay gets the original ids and due
    time.
    """

    request_id: UUID
    operation_ids: tuple[UUID, ...]
    due_at: datetime
    is_replay: bool


@dataclass(frozen=True)
class _Basis:
    """What the rows of a request share, as it was judged."""

    connection: Current
    event: EventHeld | None
    due_at: datetime
    now: datetime


async def enqueue(
    db: Database,
    actor: Actor,
    club_id: UUID,
    request_key: str,
    payloads: Sequence[Mapping[str, Any]],
    schedule: Schedule,
    *,
    confirm_banned: Collection[str] = frozenset(),
    for_approval: bool = False,
) -> Enqueued:
    """Store the payloads for the club's connection, all or none, under the actor's authority.

    Each payload names its ``kind`` beside the fields of that kind. The same request again, by the same
    person, is answered with what it made the first time; under any other content its ``request_key`` is
    refused. ``confirm_banned`` are the people whom the actor chose although VRChat names them as banned.
    ``for_approval``: the ``request_key`` is an approval's, which nobody else may use. Raises ``NotFound`` off
    the staff, ``NotAllowed``, ``Invalid`` with the field, or ``Conflict``.
    """
    check_form(request_key, payloads, schedule, for_approval=for_approval)
    async with db.transaction() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.OPERATIONS)
        asked = read_asked(standing, request_key, payloads, schedule)
        known = await _replay(tx, actor, club_id, asked)
        if known is not None:
            return known
        connection = require_feature(await hold_connection(tx, club_id), asked.kind.feature)
        check_rules(asked)
        by_field = {f"payloads.{n}": payload for n, payload in enumerate(asked.payloads)}
        await refuse_banned(tx, club_id, connection, asked.kind, by_field, confirm_banned)
        require_own_places(connection, by_field)
        creations = creation_ids(asked.payloads)
        event_ids = [schedule.event_id, *await events_of(tx, club_id, creations)]
        event = linked_event(standing, schedule, await hold_events(tx, club_id, event_ids))
        now = connection.now if event is None else event.now
        due_at = due_time(schedule, now, None if event is None else event.starts_at)
        basis = _Basis(connection, event, due_at, now)
        request_id = new_id()
        if not await _insert_request(tx, actor, club_id, request_id, asked, basis):
            # Somebody else was first with this request id, and is committed by now.
            known = await _replay(tx, actor, club_id, asked)
            if known is None:
                raise _already_used()
            return known
        held = await hold_creations(tx, club_id, creations)
        check_creations(by_field, held, (connection.id, connection.epoch), due_at)
        ids = await _insert_rows(tx, actor, club_id, request_id, asked, basis)
        details = {"kind": asked.kind.name, "size": len(ids), "due_at": due_at.isoformat()}
        await log(tx, club_id, actor, "operations.enqueued", "operation_request", request_id, details)
        tx.publish(Signal(LATE_PENDING, late_at(due_at)))
        if not held or any(not creation.is_awaited for creation in held.values()):
            tx.publish(work(connection.account_id, due_at))
        tx.publish(changed(club_id))
    return Enqueued(request_id, ids, due_at, is_replay=False)


async def _replay(tx: Transaction, actor: Actor, club_id: UUID, asked: Asked) -> Enqueued | None:
    row = await tx.raw.fetchrow(_KNOWN, club_id, asked.request_key)
    if row is None:
        return None
    if row["created_by"] != actor.person_id or row["digest"] != asked.digest:
        raise _already_used()
    ids = await tx.raw.fetch(_IDS, club_id, row["id"])
    return Enqueued(row["id"], tuple(each["id"] for each in ids), row["due_at"], is_replay=True)


def _already_used() -> Conflict:
    return Conflict(
        "request_id_used",
        "Request ID already used.",
        advice="Review the action again; that makes a new request id.",
    )


async def _insert_request(
    tx: Transaction, actor: Actor, club_id: UUID, request_id: UUID, asked: Asked, basis: _Basis
) -> bool:
    tag = await tx.raw.execute(
        _INSERT_REQUEST,
        club_id,
        request_id,
        asked.request_key,
        asked.kind.name,
        len(asked.payloads),
        actor.person_id,
        asked.digest,
        msgspec.json.encode(asked.schedule.as_asked()).decode(),
        basis.due_at,
        basis.now,
    )
    return bool(tag == "INSERT 0 1")


async def _insert_rows(
    tx: Transaction, actor: Actor, club_id: UUID, request_id: UUID, asked: Asked, basis: _Basis
) -> tuple[UUID, ...]:
    ids = tuple(new_id() for _ in asked.payloads)
    event, kind = basis.event, asked.kind
    await tx.raw.execute(
        _INSERT_ROWS,
        club_id,
        request_id,
        basis.connection.id,
        basis.connection.epoch,
        kind.name,
        asked.schedule.kind,
        asked.schedule.offset_ms if isinstance(asked.schedule, EventRelative) else None,
        basis.due_at,
        kind.lane(len(ids)),
        actor.person_id,
        basis.now,
        *((None, None, None) if event is None else event.event_tie),
        ids,
        [msgspec.json.encode(payload).decode() for payload in asked.payloads],
        asked.targets,
        # An array of arrays would need them to be equally long.
        [f"{{{','.join(kind.grants_for(payload))}}}" for payload in asked.payloads],
        [creation_id(payload) for payload in asked.payloads],
    )
    return ids
