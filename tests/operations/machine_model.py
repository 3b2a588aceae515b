"""The operation queue in plain Python: what a club, its collectors and its events have made of each operation.

It knows no SQL and no locks. The stateful tests do everything twice, here and through the services and owners, and
compare. Times are the database's, which stands still in these tests until they move it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from machine_things import (
    BADLY,
    CLAIM_LIFE,
    EVIDENCE_LIFE,
    FAILED,
    GRACE,
    NOBODY,
    PERMISSIONS,
    PROTECTIVE,
    SAME_READ,
    SUBMISSION_LIFE,
    Claim,
    Club,
    Connection,
    Event,
    Lease,
    Note,
    Op,
    Seen,
    feature_of,
    refused_state,
)


@dataclass
class Model:
    now: datetime
    owner_id: UUID
    clubs: list[Club] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    ops: dict[UUID, Op] = field(default_factory=dict)
    notes: dict[UUID, Note] = field(default_factory=dict)
    ended: list[tuple[datetime, Connection]] = field(default_factory=list)
    """Connections that are over and of which something unsent is left, and since when."""
    log: list[str] = field(default_factory=list)
    """The club, the action and the person, for each thing that somebody did."""
    notices: int = 0
    revisions: int = 0
    is_fleet_off: bool = False
    is_account_off: bool = False

    def did(self, club: Club, action: str, person: UUID | None) -> None:
        self.log.append(f"{club.id} {action}{f' {person}' if person else ''}")

    # What stands for and against.

    def holds(self, club: Club, person: UUID, kind: str) -> bool:
        return person == self.owner_id or PERMISSIONS[kind] in club.permissions

    def may_assign(self, club: Club, person: UUID) -> bool:
        return person == self.owner_id or (club.may_assign and PERMISSIONS["assign_role"] in club.permissions)

    def account_obstacle(self) -> str | None:
        if self.is_fleet_off:
            return "fleet_switch"
        return "account_switch" if self.is_account_off else None

    def obstacle(self, connection: Connection) -> str | None:
        if connection.is_over:
            return "epoch"
        if self.account_obstacle() is not None:
            return self.account_obstacle()
        if connection.is_frozen:
            return "frozen"
        return "connection_switch" if connection.is_switched_off else None

    def is_current(self, lease: Lease) -> bool:
        held = lease.connection.lease
        return (
            held is not None
            and (held.worker_id, held.token) == (lease.worker_id, lease.token)
            and not held.is_released
            and held.expires_at > self.now
        )

    def is_held(self, op: Op, claim: Claim) -> bool:
        return (
            op.state == "claimed" and op.claim == claim and op.expires is not None and op.expires > self.now
        )

    def left_of(self, connection: Connection) -> list[Op]:
        """What is unsent of it."""
        return [op for op in self.ops.values() if op.connection is connection and op.is_unsent]

    # What events and creations say.

    def event_verdict(self, op: Op) -> tuple[str | None, datetime]:
        event, creation = op.event, op.creation
        other = None
        if creation is not None and creation.event is not None and creation.event is op.creation_event:
            other = creation.event
        due = op.due
        if event is not None and op.offset is not None and event.starts_at is not None:
            due = event.starts_at + op.offset
        if (event is not None and event.is_removed) or (other is not None and other.is_removed):
            return "event_deleted", due
        for tied, cancels in ((event, op.cancels), (other, creation.cancels if creation else None)):
            if tied is not None and (tied.is_cancelled or tied.cancels != cancels):
                return "event_cancelled", due
        if (
            op.offset is not None
            and event is not None
            and (event.starts_at is None or event.losses != op.losses)
        ):
            return "event_time_tba", due
        return ("event_rescheduled" if due != op.due else None), due

    def creation_due(self, creation: Op) -> datetime:
        event = creation.event
        if creation.is_unsent and event is not None and creation.offset is not None and event.starts_at:
            return event.starts_at + creation.offset
        return creation.due

    def dependency_verdict(self, op: Op, due: datetime) -> str | None:
        creation = op.creation
        if creation is None:
            return None
        if (
            creation.connection is not op.connection
            or creation.revision != op.creation_revision
            or creation.event is not op.creation_event
        ):
            return "dependency_unavailable"
        if creation.state in FAILED:
            return "instance_creation_failed"
        if self.creation_due(creation) > due:
            return "instance_creation_rescheduled"
        if creation.state != "succeeded":
            return "awaiting_instance_creation"
        return None if creation.has_destination else "dependency_destination_unavailable"

    def verdict(self, op: Op) -> tuple[str | None, datetime]:
        if op.event is None and not op.is_dependent:
            return None, op.due
        code, due = self.event_verdict(op)
        if code not in (None, "event_rescheduled"):
            return code, due
        dependency = self.dependency_verdict(op, due)
        if code is not None and dependency == "awaiting_instance_creation":
            return code, due
        return dependency or code, due

    # How a row changes.

    def end(self, op: Op) -> None:
        op.completed_at = self.now
        if op.state in BADLY:
            self.notices += 1
        self.note_dependents(op)

    def note_dependents(self, creation: Op) -> None:
        if any(op.creation is creation and op.completed_at is None for op in self.ops.values()):
            self.note(creation)

    def note(self, subject: Event | Op) -> None:
        known = self.notes.setdefault(subject.id, Note(self.now, subject))
        known.after = NOBODY

    def settle(self, op: Op, state: str, code: str | None) -> None:
        op.state, op.code, op.claim, op.expires = state, code, None, None
        if state != "pending":
            self.end(op)

    def move(self, op: Op, due: datetime) -> None:
        op.state, op.due, op.claim, op.expires = "pending", due, None, None
        if op.ready is not None:
            op.ready = max(due, op.retry) if op.retry else due

    def settle_verdict(self, op: Op, code: str, due: datetime) -> None:
        if code == "event_rescheduled":
            self.move(op, due)
            return
        self.settle(op, refused_state(code), code)
        if code == "awaiting_instance_creation":
            op.ready = None

    def is_late(self, due: datetime) -> bool:
        return self.now > due + GRACE

    # What a collector asks for.

    def claim(self, lease: Lease, worker_id: UUID, is_any_lane: bool) -> Op | str | None:
        """The operation that is handed out, why nothing may be, or None."""
        if lease.worker_id != worker_id or not self.is_current(lease):
            return "stale_lease"
        obstacle = self.obstacle(lease.connection)
        if obstacle is not None:
            return obstacle
        lanes = [1, 2, 3]
        if is_any_lane:
            firsts = [(first.ready, lane) for lane in lanes if (first := self.first(lease, lane)) is not None]
            lanes = [lane for _, lane in sorted(firsts)]
        while True:
            found = next((op for lane in lanes if (op := self.first(lease, lane)) is not None), None)
            if found is None:
                return None
            found.code = None
            code, due = self.verdict(found)
            if code is None:
                found.state = "claimed"
                found.expires = min(self.now + CLAIM_LIFE, lease.expires_at)
                return found
            self.settle_verdict(found, code, due)

    def first(self, lease: Lease, lane: int) -> Op | None:
        earliest = self.now - GRACE
        runnable = [
            (op.ready, op.id)
            for op in self.ops.values()
            if op.connection is lease.connection and op.lane == lane and op.state == "pending"
            if op.ready is not None and earliest <= op.ready <= self.now and op.due >= earliest
        ]
        return self.ops[min(runnable)[1]] if runnable else None

    def claim_refusal(self, op: Op, claim: Claim, lease: Lease) -> str | None:
        if not self.is_held(op, claim):
            return "claim_unavailable"
        return None if self.is_current(lease) else "stale_lease"

    def authorize(self, op: Op, claim: Claim, lease: Lease, seen: Seen, friend_at: datetime | None) -> str:
        refusal = self.claim_refusal(op, claim, lease)
        if refusal is not None:
            return refusal
        code, due = self.verdict(op)
        if code is None:
            self.keep(op.connection, seen)
            code = self.authority(op)
        if code is None and op.is_dependent and not self.is_fresh(friend_at):
            code = "recipient_eligibility"
        if code == "collector_disabled":
            return code
        if code is not None:
            self.settle_verdict(op, code, due)
            return code
        op.state, op.submitted_at, op.expires = "submitted", self.now, self.now + SUBMISSION_LIFE
        return "authorized"

    def is_fresh(self, at: datetime | None) -> bool:
        return at is not None and self.now - EVIDENCE_LIFE <= at <= self.now

    def keep(self, connection: Connection, seen: Seen) -> None:
        kept = connection.evidence
        if kept is None or (kept.at < seen.at and not (kept.says(seen) and seen.at - SAME_READ <= kept.at)):
            connection.evidence = seen

    def authority(self, op: Op) -> str | None:
        connection = op.connection
        club, seen = connection.club, connection.evidence
        obstacle = self.obstacle(connection)
        if obstacle is not None:
            return {
                "epoch": "connection_changed",
                "frozen": "connection_paused",
                "connection_switch": "connection_paused",
            }.get(obstacle, "collector_disabled")
        if self.is_late(op.due):
            return "late_window_elapsed"
        if not self.holds(club, op.actor, op.kind):
            return "staff_permission"
        if feature_of(op.kind) not in connection.features:
            return "feature_disabled"
        if seen is None or not self.is_fresh(seen.at):
            return "provider_authority"
        if not seen.is_member:
            return "membership"
        if not seen.is_granted and not op.is_dependent:
            return "provider_permissions"
        if op.kind in PROTECTIVE and op.number == 0:
            return "protected_target"
        if op.kind == "assign_role" and not seen.has_role:
            return "role_scope"
        if op.kind == "assign_role" and not self.may_assign(club, op.actor):
            return "role_not_assignable"
        return None
