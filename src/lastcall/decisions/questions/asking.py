"""The asker's side of a decision: ask, call off."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.clubs.activity import System, log
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.transaction import Reader, Transaction
from lastcall.deadlines.signals import Signal
from lastcall.decisions.askers import BODY_MOST, TITLE_MOST
from lastcall.decisions.asking import (
    Asker,
    asked_row,
    digest_of,
    hold_agent,
    hold_asked,
    is_theirs,
    let_in,
    made_before,
    read_asked,
    require_asker,
    tell_asker,
    valid_text,
    valid_title,
)
from lastcall.decisions.deliveries.deliver import Message, Source
from lastcall.decisions.questions.actions import action_named
from lastcall.decisions.questions.tables import OPTIONS_FEWEST, OPTIONS_MOST, Decision
from lastcall.errors import Conflict, Invalid, NotFound
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.scopes import Scope

TOPIC = "decisions"  # of the hints for live pages
TABLE = Decision.__table__
DECISION_EXPIRY = "decision_expiry"  # the owner's name, which signals carry
LIFE = timedelta(days=7)
"""How long a decision stays open when its asker does not say."""
LIFE_LEAST, LIFE_MOST = timedelta(minutes=5), timedelta(days=30)
OPEN_MOST = 50
"""Open decisions of one agent."""
LABEL_MOST = 120  # characters
DETAIL_MOST = 1000  # characters
_OPTION = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")


class DecisionStatus(StrEnum):
    """Where a decision stands; all but the first are final."""

    OPEN = "open"
    DECIDED = "decided"
    EXPIRED = "expired"
    CANCELLED = "cancelled"

    @property
    def label(self) -> str:
        """The words that pages show."""
        return _LABELS[self]


_LABELS = {
    DecisionStatus.OPEN: "Open",
    DecisionStatus.DECIDED: "Decided",
    DecisionStatus.EXPIRED: "Expired undecided",
    DecisionStatus.CANCELLED: "Withdrawn",
}


@dataclass(frozen=True)
class Option:
    """One answer that can be chosen: its key, what people read, and what it means."""

    key: str
    label: str
    detail: str = ""


@dataclass(frozen=True)
class Question:
    """What is to be decided, by one of 2 to 10 options, within ``life``. ``action`` is the name and body of what
    choosing does (``questions.actions``), for decisions that Lastcall itself makes up."""

    title: str
    options: Sequence[Option]
    body: str = ""
    life: timedelta = LIFE
    action: tuple[str, Mapping[str, Any]] | None = None


async def ask_decision(
    db: Database, asker: Actor | AgentActor, club_id: UUID, question: Question, *, key: str | None = None
) -> UUID:
    """Put a question with options to staff; answers the id of the decision. Any staff may ask, and an agent with the
    grant ``ask``.

    The same asker, ``key`` and question again answer the decision that was made. Raises ``Conflict`` for another
    question under that key, for an agent with ``OPEN_MOST`` open ones, and in an archived club; ``Invalid`` for what
    breaks a rule.
    """
    async with db.transaction() as tx:
        await require_asker(tx, asker, club_id)
        return await ask_in(tx, asker, club_id, question, key=key)


async def ask_in(
    tx: Transaction, asker: Asker, club_id: UUID, question: Question, *, key: str | None = None
) -> UUID:
    """The same in the caller's transaction, for an asker whom the caller let in."""
    values = _valid(question)
    digest = digest_of({**values, "life": question.life.total_seconds()})
    if isinstance(asker, AgentActor):
        await hold_agent(tx, asker)
    before = await made_before(tx, TABLE, asker, club_id, key, digest)
    if before is not None:
        return before
    if isinstance(asker, AgentActor):
        await _require_room(tx, asker)
    made = await _insert(tx, asker, club_id, values, question.life, key, digest)
    if made is None:  # somebody else made it at this moment, by the same key
        made = await made_before(tx, TABLE, asker, club_id, key, digest)
    if made is None:
        raise AssertionError("What conflicts with a key is there, for decisions stay.")
    return made


async def cancel_decision(db: Database, asker: Actor | AgentActor, club_id: UUID, decision_id: UUID) -> None:
    """Call one's own decision off while it is open. Doing it again changes nothing; somebody else's is unknown."""
    async with db.transaction() as tx:
        await let_in(tx, asker, club_id, Scope.DECISIONS)
        row = await hold(tx, club_id, decision_id)
        if not is_theirs(row, asker):
            raise decision_unknown()
        if row.status == DecisionStatus.CANCELLED:
            return
        require_waiting(row)
        await end(tx, asker, row, DecisionStatus.CANCELLED, {})


def decision_unknown() -> NotFound:
    """The one answer for a decision that is not there and for one that the reader may not see."""
    return NotFound("decision_unknown", "There is no such decision.", advice="Go back to the inbox.")


async def read(tx: Reader, club_id: UUID, decision_id: UUID) -> Row[Any]:
    """The row as it stands. Raises ``NotFound``; who may see it is the caller's question."""
    return _known(await read_asked(tx, TABLE, club_id, decision_id))


async def hold(tx: Transaction, club_id: UUID, decision_id: UUID) -> Row[Any]:
    """The same under its lock."""
    return _known(await hold_asked(tx, TABLE, club_id, decision_id))


def _known(row: Row[Any] | None) -> Row[Any]:
    if row is None:
        raise decision_unknown()
    return row


def require_waiting(row: Any) -> None:
    """Raise ``Conflict`` with how it stands for a decision that is not open any more."""
    if row.status != DecisionStatus.OPEN:
        raise Conflict(
            "decision_ended",
            f"This stands as “{DecisionStatus(row.status).label}” already.",
            advice="Load it again.",
            fresh=fresh(row),
        )


@dataclass(frozen=True)
class DecisionNow:
    """How a decision stands, for whoever was refused because it ended."""

    id: UUID
    status: DecisionStatus
    option: str | None


def fresh(row: Any) -> DecisionNow:
    """How it stands, for a refusal."""
    return DecisionNow(row.id, DecisionStatus(row.status), row.decided_option)


async def end(
    tx: Transaction,
    actor: Actor | AgentActor | System,
    row: Any,
    status: DecisionStatus,
    values: Mapping[str, Any],
) -> None:
    """End an open decision whose row the caller holds, and tell its asker unless they ended it themselves."""
    await tx.execute(
        update(Decision)
        .where(Decision.club_id == row.club_id, Decision.id == row.id, Decision.status == "open")
        .values(status=status.value, decided_at=NOW, **values)
    )
    details = {"option": values["decided_option"]} if "decided_option" in values else {}
    await log(tx, row.club_id, actor, f"decision.{status}", "decision", row.id, details)
    if not is_theirs(row, actor):
        message = Message(f"decision.{status}", str(row.id), Source("decision", row.id), details)
        await tell_asker(tx, row.club_id, row, message)
    if status is not DecisionStatus.EXPIRED:
        tx.publish(Signal(DECISION_EXPIRY))  # its deadline is gone, so the next one is looked for
    tx.publish(Hint(row.club_id, TOPIC))


async def _insert(
    tx: Transaction,
    asker: Asker,
    club_id: UUID,
    values: dict[str, Any],
    life: timedelta,
    key: str | None,
    digest: bytes,
) -> UUID | None:
    row = values | await asked_row(tx, asker, club_id, key, digest)
    row["expires_at"] = row["created_at"] + life
    made: UUID | None = await tx.scalar(
        upsert(Decision).values(row).on_conflict_do_nothing().returning(Decision.id)
    )
    if made is None:
        return None
    deadline = await tx.scalar(select(func.ceil_to_millisecond(row["expires_at"])))
    tx.publish(Signal(DECISION_EXPIRY, deadline))
    await log(tx, club_id, asker, "decision.asked", "decision", made, {"action": values["action_name"]})
    tx.publish(Hint(club_id, TOPIC))
    return made


async def _require_room(tx: Transaction, agent: AgentActor) -> None:
    open_now = await tx.scalar(
        select(func.count())
        .select_from(Decision)
        .where(
            Decision.club_id == agent.club_id,
            Decision.requested_by_agent_id == agent.agent_id,
            Decision.status == "open",
        )
    )
    if open_now >= OPEN_MOST:
        raise Conflict(
            "decisions_most",
            f"{OPEN_MOST} decisions of this agent are open.",
            advice="Wait until some are decided, or withdraw some.",
        )


def _valid(question: Question) -> dict[str, Any]:
    if not LIFE_LEAST <= question.life <= LIFE_MOST:
        raise Invalid(
            "life_out_of_range",
            "A decision stays open for 5 minutes to 30 days.",
            advice="Choose a time within that.",
            field="expiresIn",
        )
    options = question.options
    if not OPTIONS_FEWEST <= len(options) <= OPTIONS_MOST or len({o.key for o in options}) != len(options):
        raise Invalid(
            "options_malformed",
            f"A decision has {OPTIONS_FEWEST} to {OPTIONS_MOST} options, each with its own key.",
            advice="Give it that many.",
            field="options",
        )
    if question.action is not None:
        action_named(question.action[0])
    return {
        "title": valid_title(question.title, most=TITLE_MOST),
        "body": valid_text(question.body, "body", most=BODY_MOST),
        "options": [_valid_option(option) for option in options],
        "action_name": None if question.action is None else question.action[0],
        "action_body": None if question.action is None else dict(question.action[1]),
    }


def _valid_option(option: Option) -> dict[str, str]:
    if not _OPTION.match(option.key):
        raise Invalid(
            "option_malformed",
            "An option's key is one word of small letters, digits and _.",
            advice="Choose such a key.",
            field="options",
        )
    try:
        label = valid_title(option.label, most=LABEL_MOST)
    except Invalid as error:
        error.field = "options"
        raise
    return {
        "key": option.key,
        "label": label,
        "detail": valid_text(option.detail, "options", most=DETAIL_MOST),
    }
