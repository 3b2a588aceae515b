"""Clubs and their gate, staff roles, assignments, visibility and the activity log."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ColumnElement,
    ForeignKey,
    Index,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base, TenantTable, tenant_reference
from lastcall.db.clock import NOW

DATABASE_NOW = text("lastcall_now()")
DEFAULT_RETENTION_DAYS = 90  # the retention contract's archive deadline
DELETING_INDEX = "clubs_deleting_idx"
MAX_RETENTION_DAYS = 3650  # the widest span a queue may name


def tables_of_clubs() -> list[Table]:
    """Every table whose rows belong to a club, by the schema, those that others refer to first."""
    return [table for table in Base.metadata.sorted_tables if "club_id" in table.columns]


class Forward:
    """Mixin of rows whose edits are optimistic: each change moves ``updated_at`` strictly forward."""

    updated_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW, sort_order=1)

    @classmethod
    def forward(cls) -> ColumnElement[datetime]:
        """The next ``updated_at``: now, and never a value that the row had before."""
        return func.greatest(NOW, cls.updated_at + text("interval '1 microsecond'"))


class Club(Forward, Base):
    """A tenant. Its slug is unique through the directory; ``retention_days`` null means nothing is ever
    archived by itself. A day of retention is 24 hours.

    A club that is ``deleting`` exists for nobody any more; its rows go page by page. ``updated_at`` moves
    strictly forward with every change and is what an edit is compared with.
    """

    __tablename__ = "clubs"
    __table_args__ = (
        CheckConstraint("state in ('active', 'paused', 'archived', 'deleting')", name="state"),
        CheckConstraint(
            "(state = 'paused') = (paused_at is not null) and (state = 'paused') = (pause_reason is not null)"
            " and pause_reason in ('manual', 'budget', 'system')",
            name="paused",
        ),
        CheckConstraint("(state in ('archived', 'deleting')) = (archived_at is not null)", name="archived"),
        CheckConstraint(f"retention_days between 1 and {MAX_RETENTION_DAYS}", name="retention_days"),
        Index(None, "owner_id"),
        Index(DELETING_INDEX, "updated_at", "id", postgresql_where=text("state = 'deleting'")),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    slug: Mapped[str]
    name: Mapped[str]
    zone: Mapped[str]
    state: Mapped[str] = mapped_column(server_default=text("'active'"))
    owner_id: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    retention_days: Mapped[int | None] = mapped_column(server_default=text(str(DEFAULT_RETENTION_DAYS)))
    paused_at: Mapped[datetime | None]
    pause_reason: Mapped[str | None]
    archived_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class ClubGate(Base):
    """The row that whoever takes authority away updates, and that authorize holds ``FOR SHARE``."""

    __tablename__ = "club_gates"

    club_id: Mapped[UUID] = mapped_column(ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True)
    generation: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))


class StaffRole(Forward, TenantTable, Base):
    """What a group of staff may do. ``assignable_role_ids``: the roles its holders may hand on when they have
    ``manage_staff``; ``permitted_provider_role_ids``: the VRChat roles they may assign when they have
    ``assign_vrchat_roles``, stored in lower case."""

    __tablename__ = "staff_roles"
    __table_args__ = (
        CheckConstraint("state in ('active', 'deleted')", name="state"),
        CheckConstraint(
            "permitted_provider_role_ids::text = lower(permitted_provider_role_ids::text)",
            name="provider_roles_lower",
        ),
    )

    club_id: Mapped[UUID] = mapped_column(
        ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True, sort_order=-2
    )
    name: Mapped[str]
    description: Mapped[str] = mapped_column(server_default=text("''"))
    permissions: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    assignable_role_ids: Mapped[list[UUID]] = mapped_column(ARRAY(Uuid), server_default=text("'{}'"))
    permitted_provider_role_ids: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    preset_key: Mapped[str | None]
    state: Mapped[str] = mapped_column(server_default=text("'active'"))
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class StaffAssignment(TenantTable, Base):
    """A person holds a role. The owner holds everything and has no row here."""

    __tablename__ = "staff_assignments"
    __table_args__ = (
        tenant_reference("staff_roles", "role_id", on_delete="cascade"),
        UniqueConstraint("club_id", "person_id", "role_id"),
        Index(None, "person_id"),
        Index(None, "club_id", "role_id"),
    )

    role_id: Mapped[UUID]
    person_id: Mapped[UUID] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class Visibility(Forward, Base):
    """Who may see one category of a club's data. No row: the category's default (``clubs.visibility``).

    The roles are an array without references: ``roles.delete_role`` takes a deleted one out of it.
    """

    __tablename__ = "visibility"
    __table_args__ = (
        CheckConstraint(
            "case audience when 'roles' then cardinality(role_ids) > 0"
            " when 'public' then role_ids = '{}' and category <> 'individual_membership_history'"
            " when 'staff' then role_ids = '{}' when 'owner' then role_ids = '{}' else false end",
            name="audience",
        ),
    )

    club_id: Mapped[UUID] = mapped_column(ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True)
    category: Mapped[str] = mapped_column(primary_key=True)
    audience: Mapped[str]
    role_ids: Mapped[list[UUID]] = mapped_column(ARRAY(Uuid), server_default=text("'{}'"))


class ActivityEntry(TenantTable, Base):
    """One thing that happened in a club, and who did it: a person, an agent, or the system under a name.

    A person's name is not kept here: it is read from the person, so that it goes when they are erased. An agent's is:
    the entry says under which name it acted.
    """

    __tablename__ = "activity_log"
    __table_args__ = (
        CheckConstraint(
            "case actor_kind when 'person' then actor_id is not null and actor_name is null"
            " when 'agent' then actor_id is not null and actor_name is not null"
            " when 'system' then actor_id is null and actor_name is not null else false end",
            name="actor",
        ),
        Index(None, "club_id", "created_at", "id"),
        Index(None, "club_id", "entity_type", "entity_id", "created_at"),
    )

    club_id: Mapped[UUID] = mapped_column(
        ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True, sort_order=-2
    )
    actor_kind: Mapped[str]
    actor_id: Mapped[UUID | None]
    actor_name: Mapped[str | None]
    action: Mapped[str]
    entity_type: Mapped[str]
    entity_id: Mapped[UUID]
    details: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'::jsonb"))
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
