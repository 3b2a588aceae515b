"""Invites and join requests; the index of what is due comes by itself, concurrently."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004_access"
down_revision = "0003_clubs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_invites()
    create_join_requests()


def create_invites() -> None:
    op.create_table(
        "invites",
        sa.Column("club_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("invited_by", sa.Uuid(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("accepted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("lastcall_now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["club_id"], ["clubs.id"], name=op.f("invites_club_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["invited_by"], ["people.id"], name=op.f("invites_invited_by_fkey")),
        sa.PrimaryKeyConstraint("club_id", "id", name=op.f("invites_pkey")),
    )


def create_join_requests() -> None:
    op.create_table(
        "join_requests",
        sa.Column("club_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("invite_id", sa.Uuid(), nullable=False),
        sa.Column("subject_kind", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=True),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("agent_name", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), server_default=sa.text("'pending_approval'"), nullable=False),
        sa.Column(
            "activity_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("lastcall_now()"),
            nullable=False,
        ),
        sa.Column("archive_due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("lastcall_now()"), nullable=False
        ),
        sa.CheckConstraint(
            "case subject_kind"
            " when 'person' then agent_name is null and (person_id is not null or email is not null)"
            " when 'agent' then agent_name is not null and person_id is null and email is null"
            " else false end",
            name=op.f("join_requests_subject_check"),
        ),
        sa.CheckConstraint(
            "status in ('pending_approval', 'approved', 'rejected', 'withdrawn')",
            name=op.f("join_requests_status_check"),
        ),
        sa.ForeignKeyConstraint(
            ["club_id", "invite_id"],
            ["invites.club_id", "invites.id"],
            name=op.f("join_requests_club_id_invite_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("join_requests_person_id_fkey")),
        sa.PrimaryKeyConstraint("club_id", "id", name=op.f("join_requests_pkey")),
        sa.UniqueConstraint("club_id", "invite_id", name=op.f("join_requests_club_id_invite_id_key")),
    )
    op.create_index(
        "join_requests_pending_email_key",
        "join_requests",
        ["club_id", sa.literal_column("lower(email)")],
        unique=True,
        postgresql_where=sa.text("status = 'pending_approval' and subject_kind = 'person'"),
    )
    op.create_index(
        "join_requests_pending_person_key",
        "join_requests",
        ["club_id", "person_id"],
        unique=True,
        postgresql_where=sa.text("status = 'pending_approval' and subject_kind = 'person'"),
    )
