"""The rest of the plain Python model: what staff, the clock and collectors that begin anew make of operations."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from machine_model import Model
from machine_things import (
    EVENT_CODES,
    FAILED,
    GRACE,
    TRANSIENT_RETRIES,
    Claim,
    Club,
    Connection,
    Event,
    Lease,
    Op,
    feature_of,
    refused_state,
)

FURTHEST = timedelta(days=366)


@dataclass(frozen=True)
class Asked:
    """A schedule as somebody asks for it: now, a fixed time, or an offset from an event's start as it was reviewed."""

    kind: str
    due: datetime | None = None
    event: Event | None = None
    offset: timedelta | None = None


# What staff do: each answers why it is refused, or None and has done it.


def due_of(model: Model, asked: Asked) -> datetime | str:
    event = asked.event
    if event is not None:
        if event.is_removed:
            return "event_unknown"
        if event.is_cancelled:
            return "event_cancelled"
        if asked.offset is not None and event.starts_at is None:
            return "event_time_tba"
    if asked.kind == "immediate":
        return model.now
    assert asked.due is not None
    earliest = model.now - GRACE
    if event is not None and asked.offset is not None:
        assert event.starts_at is not None
        if event.starts_at + asked.offset != asked.due:
            return "event_moved"
        earliest = model.now + timedelta(microseconds=1)
    if asked.due < earliest:
        return "time_too_early"
    return "time_too_far" if asked.due > model.now + FURTHEST else asked.due


def creation_refusal(
    model: Model, creation: Op, revision: int, current: Connection, due: datetime
) -> str | None:
    if creation.kind != "create_instance" or creation.connection is not current:
        return "creation_unknown"
    if creation.revision != revision:
        return "creation_changed"
    if creation.state in FAILED:
        return "instance_creation_failed"
    if creation.state == "succeeded" and not creation.has_destination:
        return "dependency_destination_unavailable"
    verdict, _ = model.event_verdict(creation)
    if verdict in EVENT_CODES and (creation.is_unsent or verdict != "event_time_tba"):
        return verdict
    return "before_creation" if due < model.creation_due(creation) else None


def enqueue_refusal(
    model: Model, club: Club, person: UUID, kind: str, asked: Asked, creation: Op | None, revision: int | None
) -> datetime | str:
    """The due time of what is asked for, or why it is refused."""
    connection = club.connection
    if connection is None:
        return "connection_inactive"
    if feature_of(kind) not in connection.features:
        return "feature_disabled"
    due = due_of(model, asked)
    if isinstance(due, datetime) and creation is not None:
        assert revision is not None
        return creation_refusal(model, creation, revision, connection, due) or due
    return due


def permission_refusal(model: Model, club: Club, person: UUID, kind: str) -> str | None:
    if not model.holds(club, person, kind):
        return "permission_missing"
    if kind == "assign_role" and not model.may_assign(club, person):
        return "role_not_assignable"
    return None


def tie(op: Op, asked: Asked) -> None:
    """The event that governs the operation: the one it names, else its creation's."""
    if asked.event is not None:
        op.follow(asked.event, asked.event.cancels, asked.event.losses)
    elif op.creation is not None:
        op.follow(op.creation.event, op.creation.cancels, op.creation.losses)
    else:
        op.follow(None, None, None)


def edit(model: Model, op: Op, person: UUID, seen: int, number: int, asked: Asked) -> str | None:
    club = op.connection.club
    if not model.holds(club, person, op.kind):
        return "operation_unknown"
    if person not in (op.actor, model.owner_id):
        return "permission_missing"
    if op.state != "pending":
        return "operation_not_editable"
    if op.revision != seen:
        return "revision_stale"
    if club.connection is not op.connection:
        return "connection_changed"
    event = op.event
    if event is not None:
        if event.is_removed:
            return "event_deleted"
        if event.is_cancelled or event.cancels != op.cancels:
            return "event_cancelled"
        if op.offset is not None and event.losses != op.losses:
            return "event_time_tba"
    verdict = model.dependency_verdict(op, op.due)
    if verdict not in (None, "awaiting_instance_creation", "instance_creation_rescheduled"):
        return verdict
    if op.kind == "assign_role" and not model.may_assign(club, person):
        return "role_not_assignable"
    due = due_of(model, asked)
    if isinstance(due, str):
        return due
    if op.creation is not None:
        assert op.creation_revision is not None
        refusal = creation_refusal(model, op.creation, op.creation_revision, op.connection, due)
        if refusal is not None:
            return refusal
    op.number, op.schedule_kind, op.offset, op.due = number, asked.kind, asked.offset, due
    if op.ready is not None:
        op.ready, op.code = max(due, op.retry) if op.retry else due, None
    tie(op, asked)
    op.actor, op.revision, op.failures = person, op.revision + 1, 0
    model.revisions += 1
    model.did(club, "operation.edited", person)
    model.note_dependents(op)
    return None


def cancel(model: Model, op: Op, person: UUID, seen: int) -> str | None:
    club = op.connection.club
    if not model.holds(club, person, op.kind):
        return "operation_unknown"
    if person not in (op.actor, model.owner_id):
        return "permission_missing"
    if op.state == "cancelled":
        return None
    if not op.is_unsent:
        return "operation_not_cancellable"
    if op.revision != seen:
        return "revision_stale"
    model.settle(op, "cancelled", "cancelled_by_staff")
    model.did(club, "operation.cancelled", person)
    return None


def cancel_request(model: Model, ops: list[Op], person: UUID) -> str | None:
    club = ops[0].connection.club
    if not model.holds(club, person, ops[0].kind):
        return "request_unknown"
    unsent = [op for op in ops if op.is_unsent]
    if any(person not in (op.actor, model.owner_id) for op in unsent):
        return "permission_missing"
    for op in unsent:
        model.settle(op, "cancelled", "cancelled_by_staff")
    if unsent:
        model.did(club, "operations.cancelled", person)
    return None


def disconnect(model: Model, club: Club, person: UUID) -> None:
    connection = club.connection
    assert connection is not None
    end_lease(connection)
    if model.left_of(connection):
        model.ended.append((model.now, connection))
    connection.is_over, club.connection = True, None
    model.did(club, "connection.disconnected", person)
    model.did(club, "connection.abandoned", person)


def change_event(model: Model, event: Event, *, stops: bool) -> None:
    """After a write of the event; ``stops``: it moved, lost its time, was cancelled or removed."""
    event.revision += 1
    if stops and any(
        op.completed_at is None
        and (op.event is event or (op.creation_event is event and op.event is not None))
        for op in model.ops.values()
    ):
        model.note(event)


# What collectors report.


def complete(model: Model, op: Op, claim: Claim, state: str, code: str | None, *, is_place: bool) -> str:
    if op.claim != claim or op.submitted_at is None:
        return "claim_unavailable"
    if op.state != "submitted":
        return "already_settled"
    op.state, op.code, op.has_destination = state, code, is_place and state == "succeeded"
    model.end(op)
    return "recorded"


def preflight_refusal(model: Model, op: Op, claim: Claim, lease: Lease) -> str | None:
    refusal = model.claim_refusal(op, claim, lease)
    if refusal is not None or model.obstacle(op.connection) is None:
        return refusal
    return "collector_disabled" if model.account_obstacle() is not None else "claim_unavailable"


def reject(model: Model, op: Op, claim: Claim, lease: Lease, code: str) -> str:
    refusal = preflight_refusal(model, op, claim, lease)
    if refusal is None:
        model.settle(op, "rejected", code)
    return refusal or "recorded"


def defer(model: Model, op: Op, claim: Claim, lease: Lease, code: str, delay: timedelta) -> str:
    refusal = preflight_refusal(model, op, claim, lease)
    if refusal is not None:
        return refusal
    verdict, due = model.event_verdict(op)
    delay = max(delay, timedelta(seconds=1))
    if verdict in EVENT_CODES:
        model.settle(op, refused_state(verdict), verdict)
        return "recorded"
    if op.failures >= TRANSIENT_RETRIES:
        state, code = "rejected", "preflight_retries_exhausted"
    elif model.now + delay > due + GRACE:
        state, code = "missed", "late_window_elapsed"
    else:
        state = "pending"
        op.failures += 1
        op.retry = op.ready = model.now + delay
    if verdict is not None:
        model.move(op, due)
    model.settle(op, state, code)
    return "recorded"


def hello(
    model: Model,
    connections: Iterable[Connection],
    worker_id: UUID,
    journal_id: UUID,
    known: Collection[UUID] | None,
) -> None:
    """``known``: the nonces that an intact journal tells of; None when its end is torn."""
    for connection in connections:
        if connection.lease is not None and connection.lease.worker_id == worker_id:
            end_lease(connection)
    for op in sorted(model.ops.values(), key=lambda op: op.id):
        claim = op.claim
        if claim is None or claim.worker_id != worker_id:
            continue
        if op.state == "claimed":
            model.settle(op, "pending", None)
        elif (
            op.state == "submitted"
            and known is not None
            and claim.journal_id == journal_id
            and claim.nonce not in known
            and op.expires is not None
            and op.expires > model.now
        ):
            op.state, op.code = "rejected", "submission_not_attempted"
            model.end(op)


def end_lease(connection: Connection) -> None:
    if connection.lease is not None and not connection.lease.is_released:
        connection.lease.is_released = True
        connection.lease_generation += 1


# What ends by itself, and what follows a change.


def expire(model: Model, op: Op, nonce: UUID, expires: datetime) -> None:
    if is_over(model, op, "claimed", nonce, expires):
        model.settle(op, "pending", None)


def recover(model: Model, op: Op, nonce: UUID, expires: datetime) -> None:
    if is_over(model, op, "submitted", nonce, expires):
        op.state, op.code = "indeterminate", "submission_outcome_unknown"
        model.end(op)


def is_over(model: Model, op: Op, state: str, nonce: UUID, expires: datetime) -> bool:
    return (
        op.state == state
        and op.claim is not None
        and op.claim.nonce == nonce
        and op.expires == expires
        and expires <= model.now
    )


def miss(model: Model, ops: Iterable[Op]) -> None:
    for op in sorted(ops, key=lambda op: op.id):
        if not op.is_unsent:
            continue
        code, due = model.event_verdict(op) if op.event is not None else (None, op.due)
        if code == "event_rescheduled":
            model.move(op, due)
            code = None
        if code is None and model.is_late(due):
            code = "late_window_elapsed"
        if code is not None:
            model.settle(op, refused_state(code), code)
