"""One control on many items, each by itself: what cannot be done to one of them holds up none of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from lastcall.clubs.policy import require_staff
from lastcall.db.database import Database
from lastcall.decisions.retention import controls
from lastcall.decisions.retention.kind import Kind
from lastcall.decisions.retention.view import RetentionView
from lastcall.errors import Invalid, LastcallError
from lastcall.people.actor import Actor

MOST_ITEMS = 100
"""Items of one call: a page of the inbox."""


class Control(StrEnum):
    """What can be done by hand."""

    KEEP = "keep"
    UNKEEP = "unkeep"
    ARCHIVE = "archive"
    REVIVE = "revive"


@dataclass(frozen=True)
class Seen:
    """An item, and the version that the person saw of it."""

    kind: Kind
    id: UUID
    version: int


@dataclass(frozen=True)
class Outcome:
    """What became of one item: its retention afterwards, or why not."""

    item: Seen
    retention: RetentionView | None
    refusal: LastcallError | None


CONTROLS = {
    Control.KEEP: controls.keep,
    Control.UNKEEP: controls.unkeep,
    Control.ARCHIVE: controls.archive,
    Control.REVIVE: controls.revive,
}


async def control_many(
    db: Database, actor: Actor, club_id: UUID, control: Control, items: Sequence[Seen]
) -> list[Outcome]:
    """Do it to each item in a transaction of its own; the outcomes are in the order of ``items``.

    Raises ``Invalid`` for none and for more than ``MOST_ITEMS``, and ``NotFound`` off the club's staff. What one item
    alone would raise is its outcome.
    """
    if not 1 <= len(items) <= MOST_ITEMS:
        raise Invalid(
            "items_out_of_range",
            f"Choose between one and {MOST_ITEMS} items.",
            advice="Do the rest afterwards.",
            field="items",
        )
    async with db.read() as tx:
        for scope in sorted({item.kind.scope for item in items}):
            await require_staff(tx, actor, club_id, scope=scope)
    act = CONTROLS[control]
    outcomes = []
    for item in items:
        try:
            view = await act(db, actor, club_id, item.kind, item.id, seen_version=item.version)
        except LastcallError as refusal:
            outcomes.append(Outcome(item, None, refusal))
        else:
            outcomes.append(Outcome(item, view, None))
    return outcomes
