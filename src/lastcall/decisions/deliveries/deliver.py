"""How a room tells people and agents something: in the transaction that makes it so, once a recipient and channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from sqlalchemy.dialects.postgresql import insert

from lastcall.clubs.activity import redacted
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.deadlines.signals import Signal
from lastcall.decisions.deliveries.channels import channels
from lastcall.decisions.deliveries.kinds import kind_of
from lastcall.decisions.deliveries.signals import DELIVERIES, NOTICES, for_agent
from lastcall.decisions.deliveries.tables import Delivery
from lastcall.people.data_retention import data_written

APP, MAIL, AGENT = "app", "mail", "agent"


@dataclass(frozen=True)
class ToPerson:
    """A recipient on the staff. Whether they may still know of it is judged when it is shown and before it is sent."""

    id: UUID


@dataclass(frozen=True)
class ToAgent:
    """A recipient that fetches what it is told."""

    id: UUID


Recipient = ToPerson | ToAgent


@dataclass(frozen=True)
class Source:
    """The item that a message is about. The message goes with it."""

    kind: Literal["approval", "decision"]
    id: UUID


@dataclass(frozen=True)
class Message:
    """What is told. Two of one ``kind`` and ``dedup`` are the same message, and nobody is told it twice.

    ``data`` holds ids, counts and choices, never a title or a text of the source: it is ``redacted``, handed to agents
    as it is, and people's words are made of it.
    """

    kind: str
    dedup: str
    source: Source | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


async def deliver(tx: Transaction, club_id: UUID, recipients: Sequence[Recipient], message: Message) -> None:
    """Tell each recipient by every channel that reaches them, once this is committed: people by a notice, by mail
    and by what is registered besides, agents when they fetch. Telling the same again changes nothing.

    A person can be told only of a declared kind (``declare_kind``), else ``ValueError``.
    """
    agents = sorted({one.id for one in recipients if isinstance(one, ToAgent)})
    people = sorted({one.id for one in recipients if isinstance(one, ToPerson)})
    if people and kind_of(message.kind) is None:
        raise ValueError(f"Nobody declared what the message {message.kind!r} says to people.")
    rows = [_row(club_id, message, AGENT, agent_id=agent_id) for agent_id in agents]
    rows += [_row(club_id, message, APP, person_id=person_id) for person_id in people]
    rows += [_row(club_id, message, MAIL, person_id=person_id) for person_id in people]
    for channel in channels():
        for person_id in sorted(await channel.reaches(tx, club_id, people)) if people else ():
            rows.append(_row(club_id, message, channel.name, person_id=person_id))
    if not rows:
        return
    told = (
        insert(Delivery).values(rows).on_conflict_do_nothing().returning(Delivery.channel, Delivery.next_at)
    )
    found = (await tx.execute(told)).all()
    due = [row.next_at for row in found if row.channel not in (APP, AGENT)]
    if due:
        tx.publish(Signal(DELIVERIES, min(due)))
    for agent_id in agents:
        tx.publish(for_agent(club_id, agent_id))
    if people:
        tx.publish(Hint(club_id, NOTICES))
    data_written(tx)


def _row(
    club_id: UUID,
    message: Message,
    channel: str,
    *,
    person_id: UUID | None = None,
    agent_id: UUID | None = None,
) -> dict[str, Any]:
    source = message.source
    return {
        "club_id": club_id,
        "id": new_id(),
        "kind": message.kind,
        "channel": channel,
        "person_id": person_id,
        "agent_id": agent_id,
        "approval_id": source.id if source is not None and source.kind == "approval" else None,
        "decision_id": source.id if source is not None and source.kind == "decision" else None,
        "dedup": message.dedup,
        "data": redacted(message.data),
        "state": "delivered" if channel == APP else "pending",
        "next_at": None if channel == APP else NOW,
        "ended_at": NOW if channel == APP else None,
    }
