"""Invitations to an instance that another operation creates: what ties them to it, and what the tie allows.

The creation is held for share from here to the commit. So whoever ends or edits it either comes first and is seen, or
comes later and sees the invitation (DEP-01); nothing is left that waits for a creation which is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from lastcall.db.ids import decode_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid, LastcallError
from lastcall.operations.kinds.invite_to_created_instance import InviteToCreatedInstance
from lastcall.operations.kinds.kind import Payload
from lastcall.operations.machine import TERMINAL, UNSENT, State

_EVENTS = """
    select distinct event_id
      from operations
     where club_id = $1 and id = any ($2::uuid[]) and event_id is not null
"""
_HOLD = "select from operations where club_id = $1 and id = any ($2::uuid[]) order by id for share"
_CREATIONS = """
    select c.id, c.connection_id, c.epoch, c.revision, c.state, c.event_id, c.event_cancel_generation,
           c.event_tba_generation, creation_due(c.club_id, c.id) as due_at,
           (select v.code from event_verdict(c.club_id, c.id) as v) as verdict,
           is_destination(c.payload, c.result, n.group_id) as has_destination
      from operations c
      join connections n on n.club_id = c.club_id and n.id = c.connection_id
     where c.club_id = $1 and c.id = any ($2::uuid[]) and c.kind = 'create_instance'
"""

_STOPS = frozenset({"event_cancelled", "event_deleted"})
"""These stop invitations also when the instance is there already; a start that was lost only what is not sent."""

EventTie = tuple[UUID | None, int | None, int | None]
"""An event, and its two generations as they were reviewed."""

_FIELDS = {"creation_operation_id": "creationOperationId", "creation_revision": "creationRevision"}

_REVIEW = "Review the invitation anew, with the creation as it is now."


@dataclass(frozen=True)
class Creation:
    """A creation as it stands while it is held. ``due_at``: when it is due in truth, its event's move included;
    ``verdict``: why its event stops it, or None."""

    id: UUID
    connection_id: UUID
    epoch: datetime
    revision: int
    state: State
    event_id: UUID | None
    event_cancel_generation: int | None
    event_tba_generation: int | None
    due_at: datetime
    verdict: str | None
    has_destination: bool

    @property
    def event_tie(self) -> EventTie:
        """What ties an operation to the event of this creation."""
        return self.event_id, self.event_cancel_generation, self.event_tba_generation

    @property
    def is_awaited(self) -> bool:
        """There may be an instance yet."""
        return self.state not in TERMINAL


def creation_id(payload: Payload) -> UUID | None:
    """The creation that the payload waits for, if its kind is one that waits."""
    if not isinstance(payload, InviteToCreatedInstance):
        return None
    return decode_id(payload.creation_operation_id)


def creation_ids(payloads: Iterable[Payload]) -> list[UUID]:
    """The creations that these payloads wait for, each once."""
    return sorted({found for payload in payloads if (found := creation_id(payload)) is not None})


async def events_of(tx: Transaction, club_id: UUID, creations: Iterable[UUID]) -> set[UUID]:
    """The events of these creations, which are held before the creations are. One that an edit changes in between
    goes with the creation's revision, so that the check refuses it."""
    wanted = list(creations)
    if not wanted:
        return set()
    return {row["event_id"] for row in await tx.raw.fetch(_EVENTS, club_id, wanted)}


async def hold_creations(tx: Transaction, club_id: UUID, creations: Iterable[UUID]) -> dict[UUID, Creation]:
    """These creations of the club, held in the order of their ids; what is none is absent."""
    wanted = list(creations)
    if not wanted:
        return {}
    await tx.raw.fetch(_HOLD, club_id, wanted)
    return {
        row["id"]: Creation(
            id=row["id"],
            connection_id=row["connection_id"],
            epoch=row["epoch"],
            revision=row["revision"],
            state=State(row["state"]),
            event_id=row["event_id"],
            event_cancel_generation=row["event_cancel_generation"],
            event_tba_generation=row["event_tba_generation"],
            due_at=row["due_at"],
            verdict=None if row["verdict"] == "event_rescheduled" else row["verdict"],
            has_destination=row["has_destination"],
        )
        for row in await tx.raw.fetch(_CREATIONS, club_id, wanted)
    }


def check_creations(
    payloads: Mapping[str, Payload],
    creations: Mapping[UUID, Creation],
    connection: tuple[UUID, datetime],
    due_at: datetime,
) -> None:
    """Raise ``Invalid`` or ``Conflict`` unless each invitation may wait for its creation, or go to what it made.

    ``payloads`` are by the field that holds each; ``connection`` is the current one's id and epoch. Judged by what is
    held: the creation is of this connection and epoch, in the very revision that was reviewed (DEP-01), not failed
    (DEP-05), not stopped by its event, and not due after the invitation (DEP-06).
    """
    for where, payload in payloads.items():
        if not isinstance(payload, InviteToCreatedInstance):
            continue
        creation = creations.get(decode_id(payload.creation_operation_id))
        if creation is None or (creation.connection_id, creation.epoch) != connection:
            raise Invalid(
                "creation_unknown",
                "There is no such action that creates an instance.",
                advice="Choose a creation of the club's present connection.",
                field=f"{where}.creationOperationId",
            )
        problem = _obstacle(payload, creation, where) or _place_obstacle(creation)
        if problem is not None:
            raise problem
        if due_at < creation.due_at:
            raise Invalid(
                "before_creation",
                "The invitation is due before its instance is created.",
                advice="Choose a time that is not before the creation's.",
                field="schedule.dueAt",
            )


def _obstacle(payload: InviteToCreatedInstance, creation: Creation, where: str) -> LastcallError | None:
    if payload.creation_revision is None:
        return Invalid(
            "creation_unreviewed",
            "The revision of the creation that was reviewed is missing.",
            advice=_REVIEW,
            field=f"{where}.creationRevision",
        )
    if payload.creation_revision != creation.revision:
        return Conflict("creation_changed", "The creation was changed since you reviewed it.", advice=_REVIEW)
    return None


def _place_obstacle(creation: Creation) -> LastcallError | None:
    if creation.state in TERMINAL - {State.SUCCEEDED}:
        return Conflict(
            "instance_creation_failed",
            f"There is no instance to invite to: its creation is {creation.state.label.lower()}.",
            advice="Queue a new creation, then invite to that one.",
        )
    if creation.state is State.SUCCEEDED and not creation.has_destination:
        return Conflict(
            "dependency_destination_unavailable",
            "VRChat did not open the instance that was asked for.",
            advice="Invite to an open instance instead.",
        )
    if creation.verdict in _STOPS or (creation.verdict is not None and creation.state in UNSENT):
        return Conflict(
            creation.verdict,
            "The creation's event was cancelled or lost its time, so there will be no instance.",
            advice="Queue a new creation, then invite to that one.",
        )
    return None


def require_same_creation(before: Payload, after: Payload) -> None:
    """Raise ``Invalid`` when an edit names another creation, or approves another revision of it (DEP-03)."""
    if not isinstance(before, InviteToCreatedInstance) or not isinstance(after, InviteToCreatedInstance):
        return
    for name in ("creation_operation_id", "creation_revision"):
        if getattr(before, name) != getattr(after, name):
            raise Invalid(
                "creation_fixed",
                "An edit keeps the creation and the revision of it that were reviewed.",
                advice="Cancel this invitation, then review and queue a new one.",
                field=f"payload.{_FIELDS[name]}",
            )
