"""What an approval carries, in the words of the review that whoever approves confirms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lastcall.connections.queries import connection_card
from lastcall.db.ids import decode_id
from lastcall.db.transaction import Reader
from lastcall.errors import LastcallError
from lastcall.events.queries import EventView, event
from lastcall.operations.kinds import kind_named
from lastcall.web.club import ClubPage
from lastcall.web.compose.fields import Field, Given, fields_for, values_of
from lastcall.web.compose.options import Options, known_roles
from lastcall.web.looks import KINDS, KindLook


@dataclass(frozen=True)
class CarriedActions:
    """Actions that are queued when somebody approves. ``due_at`` is the time that follows now from what was asked, None
    for at once; ``moves`` tells one that follows its event, for which the approver confirms the time that they see."""

    label: str
    look: KindLook
    fields: Sequence[Field]
    actions: Sequence[Given]
    options: Options
    due_at: datetime | None
    moves: bool
    offset: timedelta
    event: EventView | None

    @property
    def has_no_time(self) -> bool:
        """Its event has no exact start now, so nothing can be queued by it."""
        return self.moves and self.due_at is None


async def carried_actions(tx: Reader, page: ClubPage, body: Mapping[str, Any]) -> CarriedActions:
    """What the effect ``operations`` would queue. The body was judged when it was asked for."""
    payloads, schedule = body["payloads"], body["schedule"]
    kind = kind_named(payloads[0]["kind"])
    moves = schedule["kind"] == "event_relative"
    offset = timedelta(milliseconds=schedule.get("offset_ms") or 0)
    found = await _event(tx, page, schedule.get("event_id"))
    due_at = None
    if schedule["kind"] == "fixed":
        due_at = datetime.fromisoformat(schedule["due_at"])
    elif moves and found is not None and found.starts_at is not None:
        due_at = found.starts_at + offset
    return CarriedActions(
        label=kind.words.label,
        look=KINDS[kind.name],
        fields=fields_for(kind),
        actions=[Given(values_of(kind, payload)) for payload in payloads],
        options=known_roles(await connection_card(tx, page.club.id)),
        due_at=due_at,
        moves=moves,
        offset=offset,
        event=found,
    )


async def _event(tx: Reader, page: ClubPage, event_id: str | None) -> EventView | None:
    if event_id is None:
        return None
    try:
        return await event(tx, page.standing, page.club.id, decode_id(event_id))
    except LastcallError:
        return None
