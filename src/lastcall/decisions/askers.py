"""Who asked: a person, an agent, or a part of Lastcall itself. The columns are the same wherever something is asked."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import tenant_reference

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
    name of the part of Lastcall that asked.
    """

    requested_by_kind: Mapped[str]
    requested_by_person_id: Mapped[UUID | None] = mapped_column(ForeignKey("people.id"))
    requested_by_agent_id: Mapped[UUID | None]
    requested_by_system: Mapped[str | None]


def asker_constraints() -> tuple[CheckConstraint | ForeignKeyConstraint, ...]:
    """The constraints that go with the mixin."""
    return (
        CheckConstraint(ASKER, name="requested_by"),
        tenant_reference("agents", "requested_by_agent_id"),
    )
