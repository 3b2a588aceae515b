"""What staff are told of operations that did not end well, and what they found out about those that ended unknown."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base, TenantTable, tenant_reference
from lastcall.operations.tables import DATABASE_NOW

NOTE_MOST = 2000
"""Characters of the note of a finding."""

_OUTCOME = "outcome in ('rejected', 'indeterminate', 'missed')"


class OperationNotice(TenantTable, Base):
    """An operation that failed, was missed or ended unknown: one an operation, revision and outcome (RCV-05).

    It has the id of its operation, which ends once; what else it holds is the operation's own and does not change any
    more. For whom it is, is judged when it is shown and when it is mailed. ``mail_at``: from when on it is to be
    mailed; null when it was, or will not be. ``digest_id`` is the mail that told of it.
    """

    __tablename__ = "operation_notices"
    __table_args__ = (
        tenant_reference("operations", "id", on_delete="cascade"),
        tenant_reference("operation_requests", "request_id", on_delete="cascade"),
        tenant_reference("operation_digests", "digest_id"),
        CheckConstraint(_OUTCOME, name="outcome"),
        CheckConstraint("mail_at is null or digest_id is null", name="mail"),
        Index(None, "club_id", "actor_id", "created_at", "id"),
        Index("operation_notices_mail_at_idx", "mail_at", "id", postgresql_where=text("mail_at is not null")),
        Index(
            "operation_notices_waiting_idx",
            "club_id",
            "request_id",
            postgresql_where=text("mail_at is not null"),
        ),
    )

    request_id: Mapped[UUID]
    revision: Mapped[int]
    outcome: Mapped[str]
    actor_id: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    mail_at: Mapped[datetime | None]
    digest_id: Mapped[UUID | None]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class OperationNoticeRead(Base):
    """Who dismissed a notice, each for themselves."""

    __tablename__ = "operation_notice_reads"
    __table_args__ = (tenant_reference("operation_notices", "notice_id", on_delete="cascade"),)

    club_id: Mapped[UUID] = mapped_column(primary_key=True)
    person_id: Mapped[UUID] = mapped_column(ForeignKey("people.id"), primary_key=True)
    notice_id: Mapped[UUID] = mapped_column(primary_key=True)
    read_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class OperationDigest(TenantTable, Base):
    """The one mail to one person about a request's operations of one revision that ended the same way. The row is the
    claim: whoever writes it may send, once. It has the id of its mail in the ledger of outgoing mail, which says what
    became of that for ninety days.
    """

    __tablename__ = "operation_digests"
    __table_args__ = (
        tenant_reference("operation_requests", "request_id", on_delete="cascade"),
        UniqueConstraint("club_id", "request_id", "revision", "outcome", "person_id"),
        CheckConstraint(_OUTCOME, name="outcome"),
    )

    request_id: Mapped[UUID]
    revision: Mapped[int]
    outcome: Mapped[str]
    person_id: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class OperationFinding(TenantTable, Base):
    """What a person found out about an operation whose outcome is unknown. The operation stays as it is; a later
    finding has the next ``number`` and stands beside the earlier ones. ``evidence`` is a copy of what they relied on.
    """

    __tablename__ = "operation_findings"
    __table_args__ = (
        tenant_reference("operations", "operation_id", on_delete="cascade"),
        UniqueConstraint("club_id", "operation_id", "number"),
        CheckConstraint("verdict in ('happened', 'not_seen')", name="verdict"),
        CheckConstraint("number >= 1", name="number"),
        CheckConstraint(f"char_length(note) <= {NOTE_MOST}", name="note"),
        CheckConstraint("note <> '' or jsonb_array_length(evidence) > 0", name="reason"),
    )

    operation_id: Mapped[UUID]
    number: Mapped[int]
    verdict: Mapped[str]
    note: Mapped[str]
    evidence: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    settled_by: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    settled_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
