"""People, sign-in links, sessions and the audit log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002_people"
down_revision = "0001_clock"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_people()
    create_audit_log()
    create_sessions()
    create_sign_in_links()


def create_people() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("display_name", sa.Text(), nullable=False),
        sa.Column("is_operator", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("blocked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("lastcall_now()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("people_pkey")),
    )
    op.create_index("people_lower_email_key", "people", [sa.literal_column("lower(email)")], unique=True)


def create_audit_log() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("actor_person_id", sa.Uuid(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column(
            "details",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("lastcall_now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["actor_person_id"],
            ["people.id"],
            name=op.f("audit_log_actor_person_id_fkey"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("audit_log_pkey")),
    )
    op.create_index(op.f("audit_log_created_at_id_idx"), "audit_log", ["created_at", "id"], unique=False)


def create_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("lastcall_now()"), nullable=False
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("octet_length(token_hash) = 32", name=op.f("sessions_token_hash_length_check")),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("sessions_person_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("sessions_pkey")),
        sa.UniqueConstraint("token_hash", name=op.f("sessions_token_hash_key")),
    )
    op.create_index(op.f("sessions_person_id_idx"), "sessions", ["person_id"], unique=False)


def create_sign_in_links() -> None:
    op.create_table(
        "sign_in_links",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("lastcall_now()"), nullable=False
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "octet_length(token_hash) = 32", name=op.f("sign_in_links_token_hash_length_check")
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("sign_in_links_person_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("sign_in_links_pkey")),
        sa.UniqueConstraint("token_hash", name=op.f("sign_in_links_token_hash_key")),
    )
    op.create_index(op.f("sign_in_links_person_id_idx"), "sign_in_links", ["person_id"], unique=False)
