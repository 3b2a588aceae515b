"""Clubs with their gate, staff roles, assignments and the activity log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003_clubs"
down_revision = "0002_people"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_clubs()
    create_activity_log()
    create_club_gates()
    create_staff_roles()
    create_staff_assignments()


def create_clubs() -> None:
    op.create_table(
        "clubs",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("zone", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'active'"), nullable=False),
        sa.Column("owner_id", sa.Uuid(), nullable=False),
        sa.Column("retention_days", sa.Integer(), server_default=sa.text("90"), nullable=True),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("lastcall_now()"), nullable=False
        ),
        sa.CheckConstraint("state in ('active', 'paused', 'archived')", name=op.f("clubs_state_check")),
        sa.CheckConstraint("retention_days between 1 and 3650", name=op.f("clubs_retention_days_check")),
        sa.ForeignKeyConstraint(["owner_id"], ["people.id"], name=op.f("clubs_owner_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("clubs_pkey")),
    )
    op.create_index(op.f("clubs_owner_id_idx"), "clubs", ["owner_id"], unique=False)


def create_activity_log() -> None:
    op.create_table(
        "activity_log",
        sa.Column("club_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("actor_kind", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Uuid(), nullable=True),
        sa.Column("actor_name", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("entity_type", sa.Text(), nullable=False),
        sa.Column("entity_id", sa.Uuid(), nullable=False),
        sa.Column(
            "details",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("lastcall_now()"), nullable=False
        ),
        sa.CheckConstraint(
            "case actor_kind when 'person' then actor_id is not null"
            " when 'system' then actor_id is null and actor_name is not null else false end",
            name=op.f("activity_log_actor_check"),
        ),
        sa.ForeignKeyConstraint(
            ["club_id"], ["clubs.id"], name=op.f("activity_log_club_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("club_id", "id", name=op.f("activity_log_pkey")),
    )
    op.create_index(
        op.f("activity_log_club_id_created_at_id_idx"),
        "activity_log",
        ["club_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        op.f("activity_log_club_id_entity_type_entity_id_created_at_idx"),
        "activity_log",
        ["club_id", "entity_type", "entity_id", "created_at"],
        unique=False,
    )


def create_club_gates() -> None:
    op.create_table(
        "club_gates",
        sa.Column("club_id", sa.Uuid(), nullable=False),
        sa.Column("generation", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["club_id"], ["clubs.id"], name=op.f("club_gates_club_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("club_id", name=op.f("club_gates_pkey")),
    )


def create_staff_roles() -> None:
    op.create_table(
        "staff_roles",
        sa.Column("club_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("permissions", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column(
            "assignable_role_ids", postgresql.ARRAY(sa.Uuid()), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column(
            "permitted_provider_role_ids",
            postgresql.ARRAY(sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column("preset_key", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), server_default=sa.text("'active'"), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("lastcall_now()"), nullable=False
        ),
        sa.Column(
            "updated_at", sa.DateTime(timezone=True), server_default=sa.text("lastcall_now()"), nullable=False
        ),
        sa.CheckConstraint("state in ('active', 'deleted')", name=op.f("staff_roles_state_check")),
        sa.CheckConstraint(
            "permitted_provider_role_ids::text = lower(permitted_provider_role_ids::text)",
            name=op.f("staff_roles_provider_roles_lower_check"),
        ),
        sa.ForeignKeyConstraint(
            ["club_id"], ["clubs.id"], name=op.f("staff_roles_club_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("club_id", "id", name=op.f("staff_roles_pkey")),
    )


def create_staff_assignments() -> None:
    op.create_table(
        "staff_assignments",
        sa.Column("club_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("role_id", sa.Uuid(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("lastcall_now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["club_id", "role_id"],
            ["staff_roles.club_id", "staff_roles.id"],
            name=op.f("staff_assignments_club_id_role_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("staff_assignments_person_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("club_id", "id", name=op.f("staff_assignments_pkey")),
        sa.UniqueConstraint(
            "club_id", "person_id", "role_id", name=op.f("staff_assignments_club_id_person_id_role_id_key")
        ),
    )
    op.create_index(
        op.f("staff_assignments_club_id_role_id_idx"),
        "staff_assignments",
        ["club_id", "role_id"],
        unique=False,
    )
    op.create_index(op.f("staff_assignments_person_id_idx"), "staff_assignments", ["person_id"], unique=False)
