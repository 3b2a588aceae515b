"""What the fields of a form offer to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lastcall.connections.queries import ConnectionCard
from lastcall.db.ids import encode_id
from lastcall.db.transaction import Reader
from lastcall.errors import LastcallError
from lastcall.events.queries import PickedEvent, event, timed_picker
from lastcall.operations.kinds import create_instance
from lastcall.operations.kinds.kind import Kind
from lastcall.operations.lists import INVITING, ListView, recipient_lists
from lastcall.operations.machine import State
from lastcall.operations.queries import Filter, history, upcoming
from lastcall.operations.views import OperationView
from lastcall.people.actor import Actor
from lastcall.protocol.messages import RoleSeen
from lastcall.web.club import ClubPage
from lastcall.web.fields import known_id

CREATIONS_MOST = 50
DONE_MOST = 10


@dataclass(frozen=True)
class Creation:
    """An action that opens an instance; ``value`` names it in its present revision."""

    value: str
    world_id: str
    due_at: datetime
    state: State


@dataclass(frozen=True)
class EventChoice:
    """An event in the picker. ``world_id`` is what it fills in, empty for nothing."""

    id: str
    title: str
    starts_at: datetime | None
    world_id: str


@dataclass(frozen=True)
class Options:
    roles: Sequence[RoleSeen]
    """Those that the reader may give and take."""
    group_roles: Sequence[RoleSeen]
    events: Sequence[EventChoice]
    has_more_events: bool
    creations: Sequence[Creation]
    lists: Sequence[ListView]

    def creation(self, value: str) -> Creation | None:
        return next((one for one in self.creations if one.value == value), None)

    def event(self, event_id: str) -> EventChoice | None:
        return next((one for one in self.events if one.id == event_id), None)

    def role_name(self, role_id: str) -> str | None:
        return next((one.name for one in self.group_roles if one.id.lower() == role_id.lower()), None)


async def read_options(
    tx: Reader, page: ClubPage, actor: Actor, kind: Kind[Any], card: ConnectionCard | None, event_id: str = ""
) -> Options:
    """``event_id``: the event that the form names already, which is offered wherever it stands."""
    club_id, standing = page.club.id, page.standing
    picked, more = await timed_picker(tx, standing, club_id)
    events = [_choice(one) for one in picked]
    if event_id and all(one.id != event_id for one in events):
        events += await _named(tx, page, event_id)
    fields = kind.payload.__struct_fields__
    creations = await _creations(tx, page, actor) if "creation_operation_id" in fields else []
    takes_lists = kind.is_bulk and any(standing.holds(permission) for permission in INVITING)
    lists, _ = await recipient_lists(tx, standing, club_id) if takes_lists else ((), None)
    roles = () if card is None else card.roles
    return Options(
        [role for role in roles if standing.may_assign(role.id)],
        roles,
        events,
        more is not None,
        creations,
        lists,
    )


def _choice(one: PickedEvent) -> EventChoice:
    return EventChoice(encode_id(one.id), one.title, one.starts_at, one.world_id or "")


async def _named(tx: Reader, page: ClubPage, event_id: str) -> list[EventChoice]:
    try:
        found = await event(tx, page.standing, page.club.id, known_id(event_id))
    except LastcallError:
        return []
    return [EventChoice(event_id, found.title, found.starts_at, "")]


async def _creations(tx: Reader, page: ClubPage, actor: Actor) -> list[Creation]:
    reader = (page.standing, actor, page.club.id)
    kinds = [create_instance.KIND.name]
    waiting = await upcoming(tx, *reader, Filter(kinds=kinds), limit=CREATIONS_MOST)
    done = await history(tx, *reader, Filter(kinds=kinds, states=[State.SUCCEEDED]), limit=DONE_MOST)
    return [_creation(row) for row in (*waiting, *done)]


def _creation(row: OperationView) -> Creation:
    return Creation(
        f"{encode_id(row.id)}.{row.revision}", str(row.payload.get("worldId", "")), row.due_at, row.state
    )


def known_roles(card: ConnectionCard | None) -> Options:
    """What names the roles of something that is only shown."""
    roles = () if card is None else card.roles
    return Options((), roles, (), False, (), ())
