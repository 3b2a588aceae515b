"""Between the wire's words and the services': ids, leases, claims, durations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lastcall.connections.listeners import ReportedSubmission
from lastcall.connections.worker import LeaseHeld
from lastcall.db.ids import decode_id
from lastcall.errors import Invalid
from lastcall.operations.services.worker import ClaimHeld
from lastcall.protocol.messages import ClaimRef, KnownSubmission, LeaseRef
from lastcall.protocol.reads import ReadRef
from lastcall.reads.worker import ReadHeld


def lease_held(lease: LeaseRef) -> LeaseHeld:
    return LeaseHeld(
        decode_id(lease.club_id), decode_id(lease.connection_id), instant(lease.epoch), lease.fencing_token
    )


def claim_held(claim: ClaimRef) -> ClaimHeld:
    return ClaimHeld(
        decode_id(claim.club_id),
        decode_id(claim.connection_id),
        instant(claim.epoch),
        claim.fencing_token,
        operation_id=decode_id(claim.operation_id),
        nonce=decode_id(claim.nonce),
    )


def read_held(claim: ReadRef) -> ReadHeld:
    return ReadHeld(
        decode_id(claim.club_id),
        decode_id(claim.connection_id),
        instant(claim.epoch),
        claim.fencing_token,
        read_id=decode_id(claim.read_id),
        nonce=decode_id(claim.nonce),
    )


def reported(submission: KnownSubmission) -> ReportedSubmission:
    return ReportedSubmission(
        club_id=decode_id(submission.club_id),
        connection_id=decode_id(submission.connection_id),
        operation_id=decode_id(submission.operation_id),
        nonce=submission.nonce,
        is_answered=submission.is_answered,
    )


def instant(sent: datetime, field: str = "epoch") -> datetime:
    """The moment in UTC; ``Invalid`` for one beyond the years that have it, naming ``field``."""
    try:
        return sent.astimezone(UTC)
    except OverflowError as error:
        raise Invalid(
            "malformed_call", f"The call is malformed in “{field}”: no such time.", field=field
        ) from error


def milliseconds(span: timedelta) -> int:
    """Whole milliseconds, rounded down: what the other side waits for is never told longer than it is."""
    return max(0, span // timedelta(milliseconds=1))


def milliseconds_up(span: timedelta) -> int:
    """Whole milliseconds, rounded up: who comes back after them is not early."""
    return -(-span // timedelta(milliseconds=1))
