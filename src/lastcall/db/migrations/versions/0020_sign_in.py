"""Codes and browsers of sign-in links, what is known of a session, API tokens, mail preferences."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0020_sign_in"
down_revision = "0025_identities"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
NOW = sa.text("lastcall_now()")


def upgrade() -> None:
    extend_people()
    extend_links()
    extend_sessions()
    create_api_tokens()
    create_mail_preferences()


def extend_people() -> None:
    op.add_column("people", sa.Column("email_verified_at", MOMENT, nullable=True))
    op.add_column("people", sa.Column("erased_at", MOMENT, nullable=True))
    op.create_check_constraint(
        op.f("people_erased_is_blocked_check"), "people", "erased_at is null or blocked_at is not null"
    )


def extend_links() -> None:
    op.alter_column("sign_in_links", "person_id", nullable=True)
    op.add_column("sign_in_links", sa.Column("email", sa.Text(), nullable=True))
    op.add_column(
        "sign_in_links",
        sa.Column("purpose", sa.Text(), server_default=sa.text("'sign_in'"), nullable=False),
    )
    op.add_column("sign_in_links", sa.Column("browser_hash", sa.LargeBinary(), nullable=True))
    op.add_column("sign_in_links", sa.Column("code_hash", sa.LargeBinary(), nullable=True))
    op.add_column(
        "sign_in_links", sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False)
    )
    op.create_check_constraint(
        op.f("sign_in_links_purpose_check"), "sign_in_links", "purpose in ('sign_in', 'step_up', 'email')"
    )
    op.create_check_constraint(
        op.f("sign_in_links_for_whom_check"),
        "sign_in_links",
        "case when purpose = 'sign_in' then num_nonnulls(person_id, email) = 1"
        " when purpose = 'email' then num_nonnulls(person_id, email) = 2"
        " else person_id is not null and email is null end",
    )
    op.create_check_constraint(
        op.f("sign_in_links_code_has_browser_check"),
        "sign_in_links",
        "(browser_hash is null) = (code_hash is null)",
    )
    op.create_check_constraint(op.f("sign_in_links_attempts_check"), "sign_in_links", "attempts >= 0")
    op.create_index(
        op.f("sign_in_links_browser_hash_idx"),
        "sign_in_links",
        ["browser_hash"],
        postgresql_where=sa.text("used_at is null"),
    )


def extend_sessions() -> None:
    op.add_column(
        "sessions", sa.Column("user_agent", sa.Text(), server_default=sa.text("''"), nullable=False)
    )
    # Every earlier session came from a link.
    op.add_column(
        "sessions", sa.Column("signed_in_by", sa.Text(), server_default=sa.text("'link'"), nullable=False)
    )
    op.alter_column("sessions", "signed_in_by", server_default=None)
    for name in ("authenticated_at", "last_seen_at"):
        op.add_column("sessions", sa.Column(name, MOMENT, nullable=True))
    op.execute("update sessions set authenticated_at = created_at, last_seen_at = created_at")
    for name in ("authenticated_at", "last_seen_at"):
        op.alter_column("sessions", name, server_default=NOW, nullable=False)
    op.create_check_constraint(
        op.f("sessions_signed_in_by_check"),
        "sessions",
        "signed_in_by in ('link', 'code', 'passkey', 'provider', 'command line')",
    )


def create_api_tokens() -> None:
    op.create_table(
        "api_tokens",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("hint", sa.Text(), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("created_at", MOMENT, server_default=NOW, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("last_used_at", MOMENT, nullable=True),
        sa.Column("revoked_at", MOMENT, nullable=True),
        sa.CheckConstraint("octet_length(token_hash) = 32", name=op.f("api_tokens_token_hash_length_check")),
        sa.CheckConstraint("cardinality(scopes) > 0", name=op.f("api_tokens_scopes_not_empty_check")),
        sa.CheckConstraint(
            "expires_at <= created_at + interval '8784 hours'", name=op.f("api_tokens_at_most_a_year_check")
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("api_tokens_person_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("api_tokens_pkey")),
        sa.UniqueConstraint("token_hash", name=op.f("api_tokens_token_hash_key")),
    )
    op.create_index(op.f("api_tokens_person_id_idx"), "api_tokens", ["person_id"])


def create_mail_preferences() -> None:
    op.create_table(
        "mail_preferences",
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("is_on", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("mail_preferences_person_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("person_id", "topic", name=op.f("mail_preferences_pkey")),
    )
