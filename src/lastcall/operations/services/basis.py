"""What a new or edited operation stands on: the club's connection, its event, and whom VRChat says is banned.

Each is held before it is read, in the house's order (connection gate, event, then operations), so that what is judged
stays true until the commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from lastcall.clubs.policy import Standing
from lastcall.connections.evidence import banned_now
from lastcall.connections.states import USABLE, ConnectionState, Feature
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid
from lastcall.events.queries import Publication, may_see_drafts
from lastcall.operations.dependencies import EventTie
from lastcall.operations.kinds.fields import group_of
from lastcall.operations.kinds.kind import Kind, Payload, fields_of, target_user_id
from lastcall.operations.schedules import EventRelative, Schedule

_HOLD_GATES = "select from connection_gates where club_id = $1 order by connection_id for share"
_CONNECTION = """
    select id, account_id, group_id, epoch, state, features, lastcall_now() as now
      from connections
     where club_id = $1 and state <> 'disconnected'
"""
_HOLD_EVENTS = "select from events where club_id = $1 and id = any ($2::uuid[]) order by id for share"
_EVENTS = """
    select id, starts_at, status, publication, cancel_generation, tba_generation, lastcall_now() as now
      from events
     where club_id = $1 and id = any ($2::uuid[]) and removed_at is null
"""


@dataclass(frozen=True)
class Current:
    """The club's connection as it stands, and the database's time when it was read."""

    id: UUID
    account_id: UUID
    group_id: str
    epoch: datetime
    state: ConnectionState
    features: frozenset[str]
    now: datetime


@dataclass(frozen=True)
class EventHeld:
    """An event as it stands while it is held: nobody moves, cancels or removes it before the commit."""

    id: UUID
    starts_at: datetime | None
    is_cancelled: bool
    is_draft: bool
    cancel_generation: int
    tba_generation: int
    now: datetime

    @property
    def event_tie(self) -> EventTie:
        """What ties an operation to this event."""
        return self.id, self.cancel_generation, self.tba_generation


async def hold_connection(tx: Transaction, club_id: UUID) -> Current | None:
    """The club's connection, held: an epoch that ends meanwhile either sees what is written here or is seen."""
    await tx.raw.fetch(_HOLD_GATES, club_id)
    row = await tx.raw.fetchrow(_CONNECTION, club_id)
    if row is None:
        return None
    return Current(
        id=row["id"],
        account_id=row["account_id"],
        group_id=row["group_id"],
        epoch=row["epoch"],
        state=ConnectionState(row["state"]),
        features=frozenset(row["features"]),
        now=row["now"],
    )


def require_feature(connection: Current | None, feature: Feature) -> Current:
    """Raises ``Conflict`` where nothing of this feature can be asked for now."""
    if connection is None or connection.state not in USABLE:
        raise connection_missing()
    if feature not in connection.features:
        raise Conflict(
            "feature_disabled",
            f"“{feature.label}” is switched off for this club's connection.",
            advice="Switch it on at the connection page first.",
        )
    return connection


def connection_missing() -> Conflict:
    """What everybody is told who asks for something that needs the group."""
    return Conflict(
        "connection_inactive",
        "The club has no active connection to its VRChat group.",
        advice="Look at the connection page first.",
    )


def require_own_places(connection: Current, payloads: Mapping[str, Payload]) -> None:
    """Raises ``Invalid`` for an instance that is not the connected group's. ``payloads`` are by the field that holds
    each.
    """
    for where, payload in payloads.items():
        instance_id = fields_of(payload).get("instanceId")
        if instance_id is not None and group_of(instance_id) != connection.group_id.lower():
            raise Invalid(
                "destination_scope",
                "This instance does not belong to the club's group.",
                advice="Choose one of the group's own instances.",
                field=f"{where}.instanceId",
            )


async def refuse_banned(
    tx: Transaction,
    club_id: UUID,
    connection: Current,
    kind: Kind[Any],
    payloads: Mapping[str, Payload],
    confirmed: Collection[str],
) -> None:
    """Raises ``Invalid`` for people whom VRChat named as banned a moment ago, when the kind would lift their ban and
    the asker has not confirmed just them. ``payloads`` are by the field that holds each. Nobody is asked: without
    evidence nothing is refused.
    """
    if not kind.lifts_ban:
        return
    fields = {str(target_user_id(fields_of(payload))).lower(): where for where, payload in payloads.items()}
    chosen = {user_id.lower() for user_id in confirmed}
    asked = [user_id for user_id in fields if user_id not in chosen]
    banned = await banned_now(tx, club_id, connection.id, connection.epoch, connection.now, asked)
    wrong = [fields[user_id] for user_id in asked if user_id in banned]
    if wrong:
        sentence = "This person is banned from the group, and the invitation would lift the ban."
        error = Invalid(
            "target_banned",
            sentence,
            advice="Leave them out, or confirm that the ban is to be lifted.",
            field=f"{wrong[0]}.targetUserId",
        )
        error.others = [(f"{where}.targetUserId", sentence) for where in wrong[1:]]
        raise error


async def hold_events(
    tx: Transaction, club_id: UUID, event_ids: Iterable[UUID | None]
) -> dict[UUID, EventHeld]:
    """These events of the club, None being none, held in the order of their ids; what is missing or removed is
    absent."""
    wanted = {event_id for event_id in event_ids if event_id is not None}
    if not wanted:
        return {}
    await tx.raw.fetch(_HOLD_EVENTS, club_id, wanted)
    rows = await tx.raw.fetch(_EVENTS, club_id, wanted)
    return {
        row["id"]: EventHeld(
            id=row["id"],
            starts_at=row["starts_at"],
            is_cancelled=row["status"] == "cancelled",
            is_draft=row["publication"] == Publication.DRAFT,
            cancel_generation=row["cancel_generation"],
            tba_generation=row["tba_generation"],
            now=row["now"],
        )
        for row in rows
    }


def linked_event(standing: Standing, schedule: Schedule, held: Mapping[UUID, EventHeld]) -> EventHeld | None:
    """The event that the schedule names, if it may: of this club, known to the asker (a draft is to those who manage
    events), not cancelled (ENQ-07), and with an exact start for what is reckoned from it (ENQ-08).
    """
    if schedule.event_id is None:
        return None
    event = held.get(schedule.event_id)
    if event is None or (event.is_draft and not may_see_drafts(standing)):
        raise Invalid(
            "event_unknown",
            "There is no such event.",
            advice="Load the list of events again.",
            field="schedule.eventId",
        )
    if event.is_cancelled:
        raise Conflict(
            "event_cancelled",
            "That event is cancelled.",
            advice="Choose another event, or none.",
        )
    if isinstance(schedule, EventRelative) and event.starts_at is None:
        raise Conflict(
            "event_time_tba",
            "That event has no exact start time, so nothing can be timed by it.",
            advice="Choose a fixed time, or wait until the event has its time.",
        )
    return event
