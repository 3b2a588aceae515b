"""Tables of this room: what was asked, and by whom. Everything here lives for fifteen minutes."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, text
from sqlalchemy.dialects.postgresql import BYTEA, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base, TenantTable, tenant_reference
from lastcall.reads.states import ReadState

_STATES = ", ".join(repr(state.value) for state in ReadState)


class ProviderRead(TenantTable, Base):
    """One page of one kind, asked of VRChat through one connection.

    It belongs to the epoch, the account and the generation of its key under which it was asked: what was read under
    others is shown to nobody. ``params_key`` is the SHA-256 of kind and params, ids without regard to case.
    ``observed_at`` is when VRChat was asked. A running read carries all claim fields, any other none.
    ``evidence_subject``: under which subject ``connections/`` keeps what it told; null when it tells nothing.
    """

    __tablename__ = "provider_reads"
    __table_args__ = (
        tenant_reference("connections", "connection_id", on_delete="cascade"),
        CheckConstraint(f"state in ({_STATES})", name="state"),
        CheckConstraint(
            "(claim_worker_id is null) = (state <> 'running') and (claim_fencing_token is null) = (state <> 'running')"
            " and (claim_nonce is null) = (state <> 'running') and (claimed_at is null) = (state <> 'running')",
            name="claim",
        ),
        CheckConstraint(
            "(items is null) = (state <> 'succeeded') and (observed_at is null) = (state <> 'succeeded')",
            name="items",
        ),
        CheckConstraint("(code is null) = (state <> 'failed')", name="code"),
        Index(
            "provider_reads_waiting_idx",
            "club_id",
            "connection_id",
            "requested_at",
            "id",
            postgresql_where=text("state in ('pending', 'running')"),
        ),
        Index("provider_reads_same_idx", "club_id", "connection_id", "params_key", "requested_at"),
        Index(None, "requested_at", "id"),
    )

    connection_id: Mapped[UUID]
    epoch: Mapped[datetime]
    account_id: Mapped[UUID] = mapped_column(ForeignKey("accounts.id"))
    credential_generation: Mapped[int]
    kind: Mapped[str]
    params: Mapped[dict[str, Any]]
    params_key: Mapped[bytes] = mapped_column(BYTEA)
    evidence_subject: Mapped[str | None]
    state: Mapped[str] = mapped_column(server_default=text("'pending'"))
    requested_at: Mapped[datetime]
    claim_worker_id: Mapped[UUID | None]
    claim_fencing_token: Mapped[int | None] = mapped_column(BigInteger)
    claim_nonce: Mapped[UUID | None]
    claimed_at: Mapped[datetime | None]
    observed_at: Mapped[datetime | None]
    items: Mapped[list[dict[str, Any]] | None] = mapped_column(JSONB)
    next_offset: Mapped[int | None]
    total: Mapped[int | None]
    code: Mapped[str | None]


class ProviderReadAsker(Base):
    """Somebody who waits for a read. One of them must hold the permission when it is done."""

    __tablename__ = "provider_read_askers"
    __table_args__ = (tenant_reference("provider_reads", "read_id", on_delete="cascade"),)

    club_id: Mapped[UUID] = mapped_column(primary_key=True)
    read_id: Mapped[UUID] = mapped_column(primary_key=True)
    person_id: Mapped[UUID] = mapped_column(ForeignKey("people.id"), primary_key=True)
