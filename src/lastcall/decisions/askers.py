"""What was asked, by whom (a person, an agent, or a part of Lastcall itself), and what became of it: the columns are
the same wherever something is asked."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Constraint, ForeignKey, LargeBinary, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import tenant_reference

DATABASE_NOW = text("lastcall_now()")
TITLE_MOST = 200  # characters
BODY_MOST = 4000  # characters, of the text of what is asked, and of what is said about it
ASKER = (
    "case requested_by_kind"
    " when 'person' then requested_by_person_id is not null and requested_by_agent_id is null"
    " and requested_by_system is null"
    " when 'agent' then requested_by_agent_id is not null and requested_by_person_id is null"
    " and requested_by_system is null"
    " when 'system' then requested_by_system is not null and requested_by_person_id is null"
    " and requested_by_agent_id is null"
    " else false end"
)


class Asked:
    """Mixin of what somebody asked: ``requested_by_kind`` says which one of the other three is set. ``system`` is the
    name of the part of Lastcall that asked. ``idempotency_key`` is the asker's own name for it, and ``asked_digest``
    what was asked under it. ``activity_at`` is when the asker last changed it. ``decided_at`` is its end, whoever ended
    it.
    """

    requested_by_kind: Mapped[str]
    requested_by_person_id: Mapped[UUID | None] = mapped_column(ForeignKey("people.id"))
    requested_by_agent_id: Mapped[UUID | None]
    requested_by_system: Mapped[str | None]
    title: Mapped[str]
    body: Mapped[str]
    idempotency_key: Mapped[str | None]
    asked_digest: Mapped[bytes | None] = mapped_column(LargeBinary)
    activity_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    decided_at: Mapped[datetime | None]
    decided_by: Mapped[UUID | None] = mapped_column(ForeignKey("people.id"))
    decision_note: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


def asked_constraints() -> tuple[Constraint, ...]:
    """The constraints that go with the mixin."""
    return (
        CheckConstraint(ASKER, name="requested_by"),
        tenant_reference("agents", "requested_by_agent_id"),
        CheckConstraint("(idempotency_key is null) = (asked_digest is null)", name="idempotency"),
        CheckConstraint(f"char_length(title) between 1 and {TITLE_MOST}", name="title"),
        CheckConstraint(f"char_length(body) <= {BODY_MOST}", name="body"),
        UniqueConstraint("club_id", "requested_by_person_id", "idempotency_key"),
        UniqueConstraint("club_id", "requested_by_agent_id", "idempotency_key"),
        UniqueConstraint("club_id", "requested_by_system", "idempotency_key"),
    )
