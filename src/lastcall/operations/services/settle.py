"""Say what became of an operation whose outcome is unknown: beside the row, which stays as it is (WRK-10)."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from lastcall.clubs.activity import log
from lastcall.clubs.policy import require_staff
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.jsonb import jsonb_text
from lastcall.errors import Conflict, Invalid
from lastcall.names import valid_note
from lastcall.operations.machine import State
from lastcall.operations.notice_tables import NOTE_MOST
from lastcall.operations.queries import operation
from lastcall.operations.settling import EvidenceItem, Finding, Verdict, evidence_of, findings_of
from lastcall.operations.signals import changed
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

_LOCK = "select from operations where club_id = $1 and id = $2 for no key update"
_IS_OPEN = """
    select o.claim_expires_at > lastcall_now() from operations o where o.club_id = $1 and o.id = $2
"""
_INSERT = """
    insert into operation_findings
           (club_id, id, operation_id, number, verdict, note, evidence, settled_by, settled_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, lastcall_now())
"""


async def settle_unknown(
    db: Database,
    actor: Actor,
    club_id: UUID,
    operation_id: UUID,
    verdict: Verdict,
    note: str,
    evidence: Sequence[str] = (),
    *,
    seen: int = 0,
) -> Finding:
    """Record that the write happened, or was not seen, by what ``evidence`` (the ``ref`` of each) or the ``note`` says.

    Nothing is sent, and the operation stays *Outcome unknown*. ``seen`` is the number of the newest finding that the
    person saw, 0 for none. Raises ``NotFound`` for what the reader may not see; ``Conflict`` when the outcome is
    known, while the write could still be under way, and when somebody else found something meanwhile (with the
    findings as they are now); ``Invalid`` without a reason, and for evidence that is not there or says nothing of the
    time after.
    """
    note = _checked(note, evidence)
    async with db.transaction() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.OPERATIONS)
        await tx.raw.fetch(_LOCK, club_id, operation_id)
        row = await operation(tx, standing, actor, club_id, operation_id)
        if row.state is not State.INDETERMINATE:
            raise Conflict(
                "outcome_known",
                f"There is nothing to settle: this action is {row.state.label.lower()}.",
                advice="Only an action with an unknown outcome is settled by hand.",
            )
        if await tx.raw.fetchval(_IS_OPEN, club_id, operation_id):
            raise Conflict(
                "submission_window_open",
                "It may still be on its way.",
                advice="Look again in two minutes: only what is read after that can tell.",
            )
        found = await findings_of(tx, standing, actor, club_id, operation_id)
        if len(found) != seen:
            raise Conflict(
                "finding_moved",
                "Somebody recorded a finding meanwhile.",
                advice="Read it, then add yours if it is still needed.",
                fresh=found,
            )
        known = {item.ref: item for item in await evidence_of(tx, standing, actor, club_id, operation_id)}
        relied_on = jsonb_text([_telling(known.get(ref)).as_kept() for ref in dict.fromkeys(evidence)])
        finding = (seen + 1, verdict.value, note, relied_on)
        await tx.raw.execute(_INSERT, club_id, new_id(), operation_id, *finding, actor.person_id)
        details = {"verdict": verdict.value, "number": seen + 1}
        await log(tx, club_id, actor, "operation.settled", "operation", operation_id, details)
        tx.publish(changed(club_id))
        return (await findings_of(tx, standing, actor, club_id, operation_id))[-1]


def _checked(note: str, evidence: Sequence[str]) -> str:
    kept = valid_note(note, most=NOTE_MOST) or ""
    if not kept and not evidence:
        raise Invalid(
            "reason_missing",
            "A finding needs a reason.",
            advice="Choose the evidence that shows it, or write down what you saw and where.",
            field="note",
        )
    return kept


def _telling(item: EvidenceItem | None) -> EvidenceItem:
    if item is None:
        raise Invalid(
            "evidence_unknown",
            "There is no such evidence any more.",
            advice="Load the evidence again.",
            field="evidence",
        )
    if not item.is_telling:
        raise Invalid(
            "evidence_too_early",
            "That was read while the write could still be on its way, so it says nothing about it.",
            advice="Read it anew, or write down what you saw.",
            field="evidence",
        )
    return item
