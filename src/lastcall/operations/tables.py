"""Requests and their operations, and results that came too late to count.

The constraints say what the machine says (``machine.py``): a row carries all claim fields or none, one that
was submitted says when, one that is over says when and why.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    SmallInteger,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base, TenantTable, tenant_reference

DATABASE_NOW = text("lastcall_now()")
RESULT_BYTES_MOST = 8192
"""The largest result that is stored; a result is bounded (WRK-04)."""

SHAPES = (
    "pending0000",
    "pending0001",
    "claimed7000",
    "submitted7100",
    "succeeded7110",
    "rejected7111",
    "rejected0011",
    "indeterminate7111",
    "cancelled0011",
    "missed0011",
)
"""The shapes a row may have: its state, how many claim fields (all seven or none), then whether it has a
submission, an end, a code. ``operation_is_whole`` in the database holds rows to it. What was never submitted
keeps no claim; a pending row has a code when it was deferred.
"""

SUBJECT = "lower(coalesce(payload ->> 'targetUserId', payload ->> 'worldId', payload ->> 'postId'))"
"""Whom or what an operation is about: the VRChat id of a person, a world or a post, in small letters."""

_BOUNDED = f"octet_length(result::text) <= {RESULT_BYTES_MOST}"


class OperationRequest(TenantTable, Base):
    """What made 1 to 100 operations at once; pages show it as a batch.

    ``digest`` is of what was asked, so that a replay is compared with that and not with rows that were edited
    since (ENQ-03). ``due_at`` is the due time as it was first set.
    """

    __tablename__ = "operation_requests"
    __table_args__ = (
        ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        UniqueConstraint("club_id", "request_key"),
        CheckConstraint("request_key ~ '^[A-Za-z0-9_-]{8,100}$'", name="request_key"),
        CheckConstraint("octet_length(digest) = 32", name="digest"),
        CheckConstraint("size between 1 and 100", name="size"),
    )

    request_key: Mapped[str]
    kind: Mapped[str]
    size: Mapped[int] = mapped_column(SmallInteger)
    created_by: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    digest: Mapped[bytes] = mapped_column(BYTEA)
    schedule: Mapped[dict[str, Any]]
    due_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class Operation(TenantTable, Base):
    """One reviewed write for one target.

    ``actor_id`` is the authorizing subject: under whose authority it is sent. ``due_at`` is the promise,
    ``ready_at`` when it is tried next (WRK-19). The claim fields stay on a row that was submitted, as history
    (WRK-20); on any other row that is not claimed they are empty. A null ``schedule_kind`` is a fixed time of
    an older release.

    ``event_id`` governs the operation, chosen or inherited from the creation that it depends on; the event's
    generations are those of the review, so that a cancel stays in force whatever the event says later (EVT-05).
    ``offset_ms`` is what an event-relative one adds to the event's start. ``dependency_revision`` and
    ``dependency_event_id`` are the creation's as they were reviewed (DEP-01, DEP-08). ``ready_at`` is null while it
    waits for its creation. ``retry_at`` is the end of the provider's backoff, which holds whatever happens to the due
    time (WRK-18). ``grants`` is what VRChat must allow the account for this payload.
    """

    __tablename__ = "operations"
    __table_args__ = (
        tenant_reference("operation_requests", "request_id", on_delete="cascade"),
        tenant_reference("connections", "connection_id", on_delete="cascade"),
        tenant_reference("operations", "depends_on", on_delete="cascade"),
        tenant_reference("events", "event_id", on_delete="cascade"),
        tenant_reference("events", "dependency_event_id", on_delete="cascade"),
        UniqueConstraint("club_id", "request_id", "target"),
        # One call on the whole row: PostgreSQL reads and prepares every CHECK of a table anew for each statement
        # that writes to it, and the longer its text the dearer. Written out here it was half of what an update
        # costs. The function is in migration 0068; a change of it is a migration that checks the rows again.
        CheckConstraint("operation_is_whole(operations)", name="whole"),
        # What may run next, lane by lane. The epoch is in the key so that rows of an older one are never
        # walked.
        Index(
            "operations_runnable_idx",
            "club_id",
            "connection_id",
            "epoch",
            "lane",
            "ready_at",
            "id",
            postgresql_where=text("state = 'pending'"),
        ),
        # Lateness, of each of the two unsent states apart (RCV-06), and what runs out. Two states share an index,
        # because each index costs every update of a row, whether or not the row is in it.
        Index(
            "operations_due_idx",
            "state",
            "due_at",
            "id",
            postgresql_where=text("state in ('pending', 'claimed')"),
        ),
        Index(
            "operations_expiry_idx",
            "state",
            "claim_expires_at",
            "id",
            postgresql_where=text("state in ('claimed', 'submitted')"),
        ),
        # The pages, kind by kind, because a reader may have the permission of some kinds only.
        # The state is in the key so that a page of a rare one is found without walking the others.
        Index(
            "operations_agenda_idx",
            "club_id",
            "kind",
            "state",
            "due_at",
            "id",
            postgresql_where=text("completed_at is null"),
        ),
        Index(
            "operations_past_idx",
            "club_id",
            "kind",
            "state",
            "completed_at",
            "id",
            postgresql_where=text("completed_at is not null"),
        ),
        # What was done to one person, world or post. Only what is over: an entry a row, and none for the claims.
        Index(
            "operations_subject_idx",
            "club_id",
            text(SUBJECT),
            "completed_at",
            "id",
            postgresql_where=text("completed_at is not null"),
        ),
        # What follows an event or a creation, for the fan-out (EVT-07).
        Index(
            "operations_event_idx",
            "club_id",
            "event_id",
            "id",
            postgresql_where=text("event_id is not null and completed_at is null"),
        ),
        Index(
            "operations_event_past_idx",
            "club_id",
            "event_id",
            "completed_at",
            "id",
            postgresql_where=text("event_id is not null and completed_at is not null"),
        ),
        Index(
            "operations_dependents_idx",
            "club_id",
            "depends_on",
            "id",
            postgresql_where=text("depends_on is not null and completed_at is null"),
        ),
    )

    request_id: Mapped[UUID]
    position: Mapped[int] = mapped_column(SmallInteger)
    connection_id: Mapped[UUID]
    epoch: Mapped[datetime]
    kind: Mapped[str]
    payload: Mapped[dict[str, Any]]
    target: Mapped[str]
    schedule_kind: Mapped[str | None]
    due_at: Mapped[datetime]
    ready_at: Mapped[datetime | None]
    lane: Mapped[int] = mapped_column(SmallInteger)
    state: Mapped[str] = mapped_column(server_default=text("'pending'"))
    revision: Mapped[int] = mapped_column(server_default=text("1"))
    actor_id: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    preflight_failures: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    claim_nonce: Mapped[UUID | None]
    claim_account_id: Mapped[UUID | None]
    claim_worker_id: Mapped[UUID | None]
    claim_journal_id: Mapped[UUID | None]
    claim_fencing_token: Mapped[int | None] = mapped_column(BigInteger)
    claim_generation: Mapped[int | None]
    claim_expires_at: Mapped[datetime | None]
    submitted_at: Mapped[datetime | None]
    result: Mapped[dict[str, Any] | None]
    code: Mapped[str | None]
    completed_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    event_id: Mapped[UUID | None]
    offset_ms: Mapped[int | None] = mapped_column(BigInteger)
    event_cancel_generation: Mapped[int | None]
    event_tba_generation: Mapped[int | None]
    depends_on: Mapped[UUID | None]
    dependency_revision: Mapped[int | None]
    dependency_event_id: Mapped[UUID | None]
    retry_at: Mapped[datetime | None]
    grants: Mapped[list[str]] = mapped_column(ARRAY(Text))


class OperationRevision(TenantTable, Base):
    """An operation as it was before an edit: what it said, under whose authority, and who changed it when
    (EDT-05)."""

    __tablename__ = "operation_revisions"
    __table_args__ = (
        tenant_reference("operations", "operation_id", on_delete="cascade"),
        UniqueConstraint("club_id", "operation_id", "revision"),
    )

    operation_id: Mapped[UUID]
    revision: Mapped[int]
    actor_id: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    payload: Mapped[dict[str, Any]]
    schedule: Mapped[dict[str, Any]]
    due_at: Mapped[datetime]
    edited_by: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    edited_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class OperationFanout(TenantTable, Base):
    """A note that what follows an event or a creation must be gone through, and how far that is: ``after`` is the last
    operation of the page before. Whoever changes the subject, and so holds its row, writes the note or starts it anew.
    """

    __tablename__ = "operation_fanouts"
    __table_args__ = (
        ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        UniqueConstraint("club_id", "subject_kind", "subject_id"),
        CheckConstraint("subject_kind in ('event', 'creation')", name="subject_kind"),
        Index(None, "created_at", "id"),
    )

    subject_kind: Mapped[str]
    subject_id: Mapped[UUID]
    after: Mapped[UUID | None]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class EndedEpoch(Base):
    """A note that an epoch of a connection ended and that unsent work of it is to be rejected, and with which code
    (WRK-11). The rows say how far that is.
    """

    __tablename__ = "ended_epochs"
    __table_args__ = (
        tenant_reference("connections", "connection_id", on_delete="cascade"),
        CheckConstraint("code in ('connection_changed', 'database_restored')", name="code"),
        Index(None, "ended_at", "connection_id"),
    )

    club_id: Mapped[UUID] = mapped_column(primary_key=True)
    connection_id: Mapped[UUID] = mapped_column(primary_key=True)
    epoch: Mapped[datetime] = mapped_column(primary_key=True)
    code: Mapped[str]
    ended_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class LateResult(TenantTable, Base):
    """What the collector reported for a submission after it had been recorded as unknown: evidence beside the
    row, which stays as it is (WRK-10). One a submission, the first.
    """

    __tablename__ = "late_results"
    __table_args__ = (
        tenant_reference("operations", "operation_id", on_delete="cascade"),
        UniqueConstraint("club_id", "operation_id"),
        CheckConstraint("outcome in ('succeeded', 'rejected', 'indeterminate')", name="outcome"),
        CheckConstraint(_BOUNDED, name="result"),
    )

    operation_id: Mapped[UUID]
    outcome: Mapped[str]
    code: Mapped[str | None]
    result: Mapped[dict[str, Any] | None]
    reported_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
