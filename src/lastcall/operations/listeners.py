"""What operations do when a collector says hello, when an epoch ends or begins and when an event or the club changes;
``app.py`` lists that they are registered.
"""

from __future__ import annotations

from uuid import UUID

from lastcall.clubs.listeners import ClubChange, on_club_changed
from lastcall.connections.listeners import (
    EpochBegin,
    EpochEnd,
    HelloFacts,
    HelloFindings,
    ReportedSubmission,
    on_epoch_begin,
    on_epoch_end,
    on_hello,
)
from lastcall.connections.restored import RESTORED
from lastcall.connections.signals import work
from lastcall.db.ids import decode_id
from lastcall.db.transaction import Transaction
from lastcall.deadlines.signals import Signal
from lastcall.decisions.effects import offer_effect
from lastcall.errors import Conflict, Invalid
from lastcall.events.listeners import EventChange, on_event_change
from lastcall.operations.effects import OperationsEffect
from lastcall.operations.mails import ENDED_BADLY
from lastcall.operations.personal import SOURCES
from lastcall.operations.schedules import late_at
from lastcall.operations.signals import EPOCH_CLEANUP, FANOUT, LATE_PENDING, changed, say_ended
from lastcall.people.personal_data import holds
from lastcall.people.preferences import declare_topic

_RETURN = "select * from return_claims($1, $2)"
_UNATTEMPTED = "select * from settle_unattempted($1, $2, $3, $4::uuid[])"
_WAS_SUBMITTED = """
    select exists (
        select from operations
         where club_id = $1 and id = $2 and claim_nonce = $3 and submitted_at is not null)
"""
_SUBMITTED = "select count(*) from operations where club_id = $1 and state = 'submitted'"
_NOTE_EVENT = "select note_event_fanout($1, $2)"
_NOTE_ENDED = "select note_ended_epoch($1, $2, $3, $4)"
_NOTE_EARLIER = "select note_earlier_epochs($1, $2, $3, $4)"


def register() -> None:
    """Hang this room on ``connections/``. Doing it twice is doing it once."""
    holds(*SOURCES)
    declare_topic(ENDED_BADLY)
    offer_effect(OperationsEffect())
    on_hello(hello)
    on_epoch_begin(epoch_began)
    on_epoch_end(epoch_ended)
    on_club_changed(club_changed)
    on_event_change(event_changed)


async def hello(tx: Transaction, facts: HelloFacts) -> HelloFindings:
    """Return the worker's claims and settle its open submissions from what its journal proves."""
    returned = await tx.raw.fetch(_RETURN, facts.account_id, facts.worker_id)
    for row in returned:
        tx.publish(Signal(LATE_PENDING, late_at(row["due_at"])))
        tx.publish(work(facts.account_id, row["ready_at"]))
    nonces = {reported: _nonce(reported) for reported in facts.submissions}
    unattempted = []
    if facts.is_journal_intact:
        known = [nonce for nonce in nonces.values() if nonce is not None]
        unattempted = await tx.raw.fetch(
            _UNATTEMPTED, facts.account_id, facts.worker_id, facts.journal_id, known
        )
    for club_id in {row["club_id"] for row in unattempted}:
        await say_ended(tx, club_id)
    for club_id in {row["club_id"] for row in returned}:
        tx.publish(changed(club_id))
    return HelloFindings(
        claims_returned=len(returned),
        not_attempted=tuple(row["operation_id"] for row in unattempted),
        unknown=tuple(
            [reported for reported, nonce in nonces.items() if not await _is_known(tx, reported, nonce)]
        ),
    )


async def epoch_ended(tx: Transaction, end: EpochEnd) -> None:
    """What is unsent of the old epoch is rejected soon, and goes out in no case; after a restore its code says that it
    needs a new review."""
    code = "database_restored" if end.reason == RESTORED else "connection_changed"
    noted_at = await tx.raw.fetchval(_NOTE_ENDED, end.club_id, end.connection_id, end.epoch, code)
    if noted_at is not None:
        tx.publish(Signal(EPOCH_CLEANUP, noted_at))


async def epoch_began(tx: Transaction, begin: EpochBegin) -> None:
    """Connecting anew repeats the clean-up of everything that earlier epochs left (WRK-11)."""
    noted_at = await tx.raw.fetchval(
        _NOTE_EARLIER, begin.club_id, begin.connection_id, begin.epoch, "connection_changed"
    )
    if noted_at is not None:
        tx.publish(Signal(EPOCH_CLEANUP, noted_at))


async def event_changed(tx: Transaction, change: EventChange) -> None:
    """Whatever follows the event is gone through soon (EVT-01). A reinstated one wakes nothing: what its cancel has
    not reached yet stays cancelled (EVT-05)."""
    if not (change.is_moved or change.lost_time or change.is_cancelled or change.is_removed):
        return
    noted_at = await tx.raw.fetchval(_NOTE_EVENT, change.club_id, change.event_id)
    if noted_at is not None:
        tx.publish(Signal(FANOUT, noted_at))


async def club_changed(tx: Transaction, club_id: UUID, change: ClubChange) -> None:
    """A club is not deleted while something that was sent waits for its outcome: there would be nothing to record
    it in. Nothing new is sent meanwhile, because the club is archived."""
    if change is not ClubChange.DELETED:
        return
    waiting = await tx.raw.fetchval(_SUBMITTED, club_id)
    if waiting:
        raise Conflict(
            "operations_submitted",
            f"{waiting} {'action was' if waiting == 1 else 'actions were'} sent, and the outcome is not known yet.",
            advice="Try again in two minutes.",
        )


async def _is_known(tx: Transaction, reported: ReportedSubmission, nonce: UUID | None) -> bool:
    """Whether this database has authorized that submission; if not, it went back in time."""
    if nonce is None:
        return False
    found: bool = await tx.raw.fetchval(_WAS_SUBMITTED, reported.club_id, reported.operation_id, nonce)
    return found


def _nonce(reported: ReportedSubmission) -> UUID | None:
    try:
        return decode_id(reported.nonce)
    except Invalid:
        return None
