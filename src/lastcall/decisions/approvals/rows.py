"""The approval's row under its lock, and how its status is written: for the services of this room alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn
from uuid import UUID

from sqlalchemy import Row, func, update

from lastcall.clubs.activity import System, log
from lastcall.clubs.policy import Standing
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.transaction import Reader, Transaction
from lastcall.decisions.approvals.machine import Event, Status, Transition, transition
from lastcall.decisions.approvals.tables import Approval
from lastcall.decisions.asking import Asker, hold_asked, is_theirs, let_decide, read_asked, tell_asker
from lastcall.decisions.deliveries.deliver import Message, Source
from lastcall.decisions.retention.due import refresh
from lastcall.decisions.retention.kinds.approval import APPROVAL, approval_unknown
from lastcall.errors import Conflict
from lastcall.people.actor import Actor, AgentActor

TABLE = APPROVAL.table
TOPIC = APPROVAL.topic
STALE = "approval_moved"


@dataclass(frozen=True)
class ApprovalNow:
    """How an approval stands, for whoever was refused because it moved."""

    id: UUID
    status: Status
    revision: int


async def read(tx: Reader, club_id: UUID, approval_id: UUID) -> Row[Any]:
    """The row as it stands. Raises ``NotFound``; who may see it is the caller's question."""
    return _known(await read_asked(tx, TABLE, club_id, approval_id))


async def hold(tx: Transaction, club_id: UUID, approval_id: UUID) -> Row[Any]:
    """The same under its lock."""
    return _known(await hold_asked(tx, TABLE, club_id, approval_id))


def _known(row: Row[Any] | None) -> Row[Any]:
    if row is None:
        raise approval_unknown()
    return row


def require_theirs(row: Any, asker: Asker) -> None:
    """Raise ``NotFound`` for whoever did not ask for it."""
    if not is_theirs(row, asker):
        raise approval_unknown()


def require_decider(row: Any, actor: Actor, standing: Standing) -> None:
    """Let an approver go on. To others who may not see it, it is unknown; its asker is refused as such."""
    let_decide(row, actor, standing, own="own_approval", unknown=approval_unknown())


def require_seen(row: Any, seen_revision: int) -> None:
    """Raise ``Conflict`` when what it says is not what they saw (DEC-05)."""
    if row.revision != seen_revision:
        raise Conflict(
            STALE,
            "This was changed after you looked at it.",
            advice="Read it again, and decide then.",
            fresh=fresh(row),
        )


def move_of(row: Any, event: Event) -> Transition:
    """The move that ``event`` is for this row. Raises ``Conflict`` with how it stands where there is none."""
    move = transition(Status(row.status), event)
    if move is None:
        _refuse(row)
    return move


def _refuse(row: Any) -> NoReturn:
    raise Conflict(
        "approval_decided" if not Status(row.status).is_open else "approval_not_waiting",
        f"This stands as “{Status(row.status).label}” already.",
        advice="Load it again.",
        fresh=fresh(row),
    )


def fresh(row: Any) -> ApprovalNow:
    """How it stands, for a refusal."""
    return ApprovalNow(row.id, Status(row.status), row.revision)


async def write(
    tx: Transaction,
    actor: Actor | AgentActor | System,
    row: Any,
    move: Transition,
    values: Mapping[str, Any],
    *,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Set the status that ``move`` leads to, with ``values``, and let everything that hangs on it follow: when it is
    archived by itself (ACC-19), the log, the asker, and open pages. The row is locked by the caller.
    """
    await tx.execute(
        update(Approval)
        .where(Approval.club_id == row.club_id, Approval.id == row.id, Approval.status == row.status)
        .values(status=move.target.value, **values)
    )
    await refresh(tx, row.club_id, [row.id], kind=APPROVAL)
    action = f"approval.{_ACTIONS[move.event]}"
    await log(
        tx, row.club_id, actor, action, "approval", row.id, {"revision": row.revision, **(details or {})}
    )
    if move.told is not None:
        await tell(tx, row, move.told, f"{row.id}:{row.revision}")
    tx.publish(Hint(row.club_id, TOPIC))


async def tell(tx: Transaction, row: Any, kind: str, dedup: str) -> None:
    """Tell the asker, once a ``dedup``."""
    data = {"revision": row.revision}
    await tell_asker(tx, row.club_id, row, Message(kind, dedup, Source("approval", row.id), data))


def moved_now() -> Any:
    """The activity time moves to the database's now, never back."""
    return func.greatest(Approval.activity_at, NOW)


_ACTIONS = {
    Event.ASK: "asked",
    Event.RESUBMIT: "resubmitted",
    Event.REQUEST_REVISION: "revision_requested",
    Event.APPROVE: "approved",
    Event.REJECT: "rejected",
    Event.WITHDRAW: "withdrawn",
}
