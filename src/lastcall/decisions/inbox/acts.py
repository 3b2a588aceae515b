"""Acting on many items at once, each by itself: what cannot be done to one of them holds up none of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from lastcall.clubs.policy import require_staff
from lastcall.db.database import Database
from lastcall.decisions.inbox.away import Until, put_away, show_again
from lastcall.decisions.inbox.item import Act
from lastcall.decisions.inbox.queries import PAGE_MOST
from lastcall.decisions.inbox.source import Chosen, Source, Verdict, on_its_page
from lastcall.decisions.retention.many import CONTROLS, Control
from lastcall.errors import Conflict, Invalid, LastcallError
from lastcall.mail.mailer import Mailer
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope


@dataclass(frozen=True)
class Ticked:
    """One item as the person saw it: ``seen`` is the version that a decision is compared with, ``version`` that of its
    retention, and ``activity_at`` what putting it away is; null for whatever it is by now (DEC-05)."""

    source: Source
    club_id: UUID
    id: UUID
    seen: int = 0
    version: int = 0
    activity_at: datetime | None = None


@dataclass(frozen=True)
class Said:
    """What goes with an act: a ``note`` for whoever asked, or how long to put items away."""

    note: str | None = None
    until: Until = field(default_factory=Until)
    mailer: Mailer | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of one item: done, or left as it is for a reason."""

    item: Ticked
    problem: LastcallError | None


async def act_on(db: Database, actor: Actor, act: Act, items: Sequence[Ticked], said: Said) -> list[Outcome]:
    """Do it to each item in a transaction of its own; the outcomes are in the order of ``items``.

    Raises ``Invalid`` for none and for more than a page. What one item alone would raise is its outcome: its source's
    ``NotFound``, ``NotAllowed``, ``Conflict`` with the fresh row when it moved since the person saw it.
    """
    if not 1 <= len(items) <= PAGE_MOST:
        raise Invalid(
            "items_out_of_range",
            f"Choose between one and {PAGE_MOST} items.",
            advice="Tick those that are meant.",
            field="items",
        )
    outcomes = []
    for item in items:
        problem = None
        try:
            await _act(db, actor, act, item, said)
        except LastcallError as refusal:
            problem = refusal
        outcomes.append(Outcome(item, problem))
    return outcomes


async def act_in_club(
    db: Database, actor: Actor, club_id: UUID, act: Act, items: Sequence[Ticked], said: Said
) -> list[Outcome]:
    """The same for items of one club, to its staff alone: raises ``NotFound`` for others, and ``NotAllowed`` for a
    token that may not do this to things of that kind."""
    async with db.read() as tx:
        for scope in sorted({item.source.scope for item in items} or {Scope.READ}):
            await require_staff(tx, actor, club_id, scope=scope)
    return await act_on(db, actor, act, items, said)


async def _act(db: Database, actor: Actor, act: Act, item: Ticked, said: Said) -> None:
    source = item.source
    match act:
        case Act.APPROVE | Act.REJECT:
            if source.decide is None:
                raise on_its_page()
            chosen = Chosen(item.club_id, item.id, item.seen, said.note, said.mailer)
            await source.decide(db, actor, Verdict(act), chosen)
        case Act.SNOOZE | Act.DISMISS:
            until = said.until if act is Act.SNOOZE else Until()
            await put_away(db, actor, item.club_id, source, item.id, until, seen=item.activity_at)
        case Act.SHOW:
            await show_again(db, actor, item.club_id, source, item.id)
        case Act.KEEP | Act.UNKEEP | Act.ARCHIVE | Act.REVIVE:
            if source.kind is None:
                raise Conflict(
                    "never_archived",
                    "What waits here is never archived.",
                    advice="Put it away for yourself instead.",
                )
            control = CONTROLS[Control(act)]
            await control(db, actor, item.club_id, source.kind, item.id, seen_version=item.version)
