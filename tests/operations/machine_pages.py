"""What is gone through page by page in the plain Python model: what follows a change, and what an ended epoch left."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from machine_model import Model
from machine_things import CLEAN_UP_PAGE, FAN_OUT_PAGE, Event, Op, refused_state


def clean_up(model: Model) -> None:
    """One page of the connection that is over since the longest. A creation comes after what depends on it."""
    found = min(model.ended, key=lambda ended: (ended[0], ended[1].id))
    connection = found[1]
    left = model.left_of(connection)
    awaited = {op.creation.id for op in left if op.creation is not None}
    claimed = sorted((op for op in left if op.state == "claimed"), key=lambda op: (op.due, op.id))
    pending = sorted(
        (op for op in left if op.state == "pending"),
        key=lambda op: (op.lane, op.ready is None, op.ready or op.due, op.id),
    )
    page = [op for op in [*claimed, *pending] if op.id not in awaited][:CLEAN_UP_PAGE]
    for op in page:
        op.state, op.code, op.completed_at = "rejected", "connection_changed", model.now
        op.claim = op.expires = None
    for op in page:
        model.end(op)
    if not model.left_of(connection):
        model.ended.remove(found)


def fan_out(model: Model) -> None:
    """One page of the first note."""
    note = min(model.notes.values(), key=lambda note: (note.created_at, note.subject.id))
    subject = note.subject
    if isinstance(subject, Event):
        page = [op for op in _behind(model, note.after) if _follows(op, subject)][:FAN_OUT_PAGE]
        changes = [_event_change(model, op) for op in page]
    else:
        page = [op for op in _behind(model, note.after) if op.creation is subject][:FAN_OUT_PAGE]
        changes = [_creation_change(model, op) for op in page]
    if len(page) < FAN_OUT_PAGE:
        del model.notes[subject.id]
    else:
        note.after = page[-1].id
    changed = [(op, change) for op, change in zip(page, changes, strict=True) if change is not None]
    for op, change in changed:
        op.state, op.code, op.due, op.ready = change
        op.claim = op.expires = None
        op.completed_at = None if op.state == "pending" else model.now
    for op, _ in changed:
        if op.completed_at is not None:
            model.end(op)


def _behind(model: Model, after: UUID) -> list[Op]:
    return sorted((op for op in model.ops.values() if op.is_unsent and op.id > after), key=lambda op: op.id)


def _follows(op: Op, event: Event) -> bool:
    return op.event is event or (op.creation_event is event and op.event is not None)


Change = tuple[str, str | None, datetime, datetime | None]


def _event_change(model: Model, op: Op) -> Change | None:
    code, due = model.verdict(op)
    if code is None or (code == "awaiting_instance_creation" and op.ready is None):
        return None
    if code == "event_rescheduled":
        return "pending", op.code, due, _ready(op, due) if op.ready is not None else None
    ready = None if code == "awaiting_instance_creation" else op.ready
    return refused_state(code), code, op.due, ready


def _creation_change(model: Model, op: Op) -> Change | None:
    code, due = model.verdict(op)
    if (code == "awaiting_instance_creation" and op.ready is None) or (code is None and op.ready is not None):
        return None
    is_waiting = model.dependency_verdict(op, due) == "awaiting_instance_creation"
    state = "pending" if code is None else refused_state(code)
    return state, None if code == "event_rescheduled" else code, due, None if is_waiting else _ready(op, due)


def _ready(op: Op, due: datetime) -> datetime:
    return max(due, op.retry) if op.retry else due
