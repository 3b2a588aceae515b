"""The things of the plain model: clubs, connections, leases, events and operations as the stateful tests know them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

GRACE = timedelta(minutes=15)
CLAIM_LIFE = timedelta(seconds=240)
SUBMISSION_LIFE = timedelta(seconds=120)
LEASE_LIFE = timedelta(minutes=5)
EVIDENCE_LIFE = timedelta(seconds=60)
SAME_READ = timedelta(seconds=1)
TRANSIENT_RETRIES = 2
FAN_OUT_PAGE = 2
"""Rows of a page of the fan-out in these tests, so that one event has several."""
CLEAN_UP_PAGE = 2
"""Rows of a page of an ended epoch's clean-up in these tests."""
NOBODY = UUID(int=0)

UNSENT = ("pending", "claimed")
FAILED = ("rejected", "indeterminate", "cancelled", "missed")
BADLY = ("rejected", "indeterminate", "missed")
PERMISSIONS = {
    "assign_role": "assign_vrchat_roles",
    "invite_member": "invite_group_members",
    "ban_member": "manage_bans",
    "create_instance": "manage_instances",
    "invite_to_created_instance": "manage_instances",
}
ALL_PERMISSIONS = frozenset(PERMISSIONS.values())
PROTECTIVE = ("assign_role", "ban_member")
EVENT_CODES = ("event_deleted", "event_cancelled", "event_time_tba")


def feature_of(kind: str) -> str:
    return "instances" if kind.endswith("_instance") else "membership_management"


@dataclass(eq=False)
class Club:
    id: UUID
    group_id: str
    role_id: UUID
    permissions: frozenset[str]
    may_assign: bool = True
    connection: Connection | None = None


@dataclass
class Seen:
    """What a collector says that VRChat said, and when."""

    at: datetime
    is_member: bool = True
    is_granted: bool = True
    has_role: bool = True

    def says(self, other: Seen) -> bool:
        return replace(self, at=other.at) == other


@dataclass(eq=False)
class Connection:
    id: UUID
    club: Club
    epoch: datetime
    features: frozenset[str]
    is_over: bool = False
    is_switched_off: bool = False
    is_frozen: bool = False
    lease_generation: int = 0
    lease: Lease | None = None
    evidence: Seen | None = None


@dataclass(eq=False)
class Lease:
    connection: Connection
    worker_id: UUID
    token: int
    expires_at: datetime
    is_released: bool = False


@dataclass(eq=False)
class Event:
    id: UUID
    club: Club
    starts_at: datetime | None
    is_cancelled: bool = False
    is_removed: bool = False
    cancels: int = 0
    losses: int = 0
    revision: int = 1


@dataclass(frozen=True)
class Claim:
    nonce: UUID
    worker_id: UUID
    journal_id: UUID
    token: int


@dataclass(eq=False)
class Op:
    id: UUID
    request_id: UUID
    connection: Connection
    kind: str
    number: int
    """Whom it is about; 0 is the group's owner."""
    actor: UUID
    lane: int
    schedule_kind: str
    due: datetime
    ready: datetime | None
    offset: timedelta | None = None
    event: Event | None = None
    cancels: int | None = None
    losses: int | None = None
    creation: Op | None = None
    creation_revision: int | None = None
    creation_event: Event | None = None
    code: str | None = None
    state: str = "pending"
    revision: int = 1
    failures: int = 0
    retry: datetime | None = None
    claim: Claim | None = None
    expires: datetime | None = None
    submitted_at: datetime | None = None
    completed_at: datetime | None = None
    has_destination: bool = False

    @property
    def is_unsent(self) -> bool:
        return self.state in UNSENT

    @property
    def is_dependent(self) -> bool:
        return self.creation is not None

    def follow(self, tied: Event | None, cancels: int | None, losses: int | None) -> None:
        self.event, self.cancels, self.losses = tied, cancels, losses


@dataclass
class Note:
    """What the fan-out has before it."""

    created_at: datetime
    subject: Event | Op
    after: UUID = NOBODY


def refused_state(code: str) -> str:
    if code in ("connection_paused", "event_rescheduled", "awaiting_instance_creation"):
        return "pending"
    if code == "late_window_elapsed":
        return "missed"
    return "cancelled" if code in EVENT_CODES else "rejected"
