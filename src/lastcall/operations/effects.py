"""Approvals that carry operations: what somebody prepared is queued under the authority of whoever approves it.

All the checks of an enqueue are made when it is approved, against the approver; the approval is the request, so that
approving twice queues once.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct

from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Invalid
from lastcall.operations.dependencies import creation_ids, events_of
from lastcall.operations.schedules import Schedule, read_schedule
from lastcall.operations.services.asked import APPROVAL_KEY, check_form, check_rules, read_asked
from lastcall.operations.services.basis import hold_connection, hold_events
from lastcall.operations.services.enqueue import enqueue
from lastcall.people.actor import Actor

OPERATIONS = "operations"
"""What an approval calls this effect."""

_PREPARED = f"{APPROVAL_KEY}prepared"
"""In place of a request id, which comes with the approval."""

_HOLD_CLUB = "select from club_gates where club_id = $1 for share"


class _Body(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What was prepared. ``schedule`` is in the words of ``Schedule.as_asked``; ``reviewed_due_at`` is the time that
    followed from its event when it was prepared.
    """

    payloads: list[dict[str, Any]]
    schedule: dict[str, Any]
    reviewed_due_at: datetime | None = None


class _Reviewed(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What the approver confirms beyond it: the time that follows from the event now, and people who are banned."""

    reviewed_due_at: datetime | None = None
    confirm_banned: list[str] = []


_Form = TypeVar("_Form", _Body, _Reviewed)


class OperationsEffect:
    """Queues the prepared payloads."""

    name = OPERATIONS

    def validate(self, body: Mapping[str, Any]) -> None:
        """Raises ``Invalid`` for what no enqueue would take, whoever asks and whenever."""
        prepared = _read(body, _Body)
        schedule = _schedule(prepared, _Reviewed())
        check_form(_PREPARED, prepared.payloads, schedule, for_approval=True)
        check_rules(read_asked(None, _PREPARED, prepared.payloads, schedule))

    async def lock(self, tx: Transaction, club_id: UUID, body: Mapping[str, Any]) -> None:
        """The gates and the events, which come before the approval's row."""
        prepared = _read(body, _Body)
        asked = read_asked(None, _PREPARED, prepared.payloads, _schedule(prepared, _Reviewed()))
        await tx.raw.fetch(_HOLD_CLUB, club_id)
        await hold_connection(tx, club_id)
        events = await events_of(tx, club_id, creation_ids(asked.payloads))
        await hold_events(tx, club_id, [asked.schedule.event_id, *events])

    async def apply(
        self,
        db: Database,
        approver: Actor,
        club_id: UUID,
        approval_id: UUID,
        body: Mapping[str, Any],
        reviewed: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Queue it as the approver; answers the request and its operations. Raises what ``enqueue`` does."""
        prepared, confirmed = _read(body, _Body), _read(reviewed, _Reviewed)
        made = await enqueue(
            db,
            approver,
            club_id,
            _request_key(approval_id),
            prepared.payloads,
            _schedule(prepared, confirmed),
            confirm_banned=frozenset(confirmed.confirm_banned),
            for_approval=True,
        )
        return {
            "requestId": encode_id(made.request_id),
            "operationIds": [encode_id(operation_id) for operation_id in made.operation_ids],
            "dueAt": made.due_at.isoformat(),
        }


def _request_key(approval_id: UUID) -> str:
    return f"{APPROVAL_KEY}{encode_id(approval_id)}"


def _schedule(prepared: _Body, confirmed: _Reviewed) -> Schedule:
    return read_schedule(prepared.schedule, confirmed.reviewed_due_at or prepared.reviewed_due_at)


def _read(fields: Mapping[str, Any], form: type[_Form]) -> _Form:
    try:
        return msgspec.convert(dict(fields), form)
    except msgspec.ValidationError as error:
        raise Invalid(
            "effect_invalid", f"What it would queue is not in form: {error}.", field="body"
        ) from None
