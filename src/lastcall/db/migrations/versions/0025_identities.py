"""Passkeys, identities at providers, and sign-in flows under way."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0025_identities"
down_revision = "0011_unknown_submissions"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_passkeys()
    create_identities()
    create_sign_in_flows()


def create_passkeys() -> None:
    op.create_table(
        "passkeys",
        sa.Column("id", sa.Uuid(), nullable=False),
        _person(nullable=False),
        sa.Column("credential_id", sa.LargeBinary(), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("transports", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("is_backed_up", sa.Boolean(), nullable=False),
        _created(),
        _time("last_used_at"),
        sa.CheckConstraint("sign_count >= 0", name=op.f("passkeys_sign_count_check")),
        _of_person("passkeys"),
        sa.PrimaryKeyConstraint("id", name=op.f("passkeys_pkey")),
        sa.UniqueConstraint("credential_id", name=op.f("passkeys_credential_id_key")),
    )
    op.create_index(op.f("passkeys_person_id_idx"), "passkeys", ["person_id"])


def create_identities() -> None:
    op.create_table(
        "identities",
        sa.Column("id", sa.Uuid(), nullable=False),
        _person(nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        _created(),
        _time("last_used_at"),
        _of_person("identities"),
        sa.PrimaryKeyConstraint("id", name=op.f("identities_pkey")),
        sa.UniqueConstraint("issuer", "subject", name=op.f("identities_issuer_subject_key")),
    )
    op.create_index(op.f("identities_person_id_idx"), "identities", ["person_id"])


def create_sign_in_flows() -> None:
    op.create_table(
        "sign_in_flows",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        _person(nullable=True),
        sa.Column("provider", sa.Text(), nullable=True),
        sa.Column("state_hash", sa.LargeBinary(), nullable=False),
        sa.Column("browser_hash", sa.LargeBinary(), nullable=False),
        sa.Column("next", sa.Text(), server_default=sa.text("'/'"), nullable=False),
        _created(),
        _time("expires_at", nullable=False),
        _time("used_at"),
        sa.CheckConstraint("kind in ('passkey', 'provider')", name=op.f("sign_in_flows_kind_check")),
        sa.CheckConstraint(
            "(kind = 'provider') = (provider is not null)", name=op.f("sign_in_flows_provider_check")
        ),
        sa.CheckConstraint(
            "purpose in ('sign_in', 'add', 'step_up')", name=op.f("sign_in_flows_purpose_check")
        ),
        sa.CheckConstraint(
            "(purpose = 'sign_in') = (person_id is null)", name=op.f("sign_in_flows_person_check")
        ),
        sa.CheckConstraint(
            "octet_length(state_hash) = 32", name=op.f("sign_in_flows_state_hash_length_check")
        ),
        sa.CheckConstraint(
            "octet_length(browser_hash) = 32", name=op.f("sign_in_flows_browser_hash_length_check")
        ),
        _of_person("sign_in_flows"),
        sa.PrimaryKeyConstraint("id", name=op.f("sign_in_flows_pkey")),
        sa.UniqueConstraint("state_hash", name=op.f("sign_in_flows_state_hash_key")),
    )
    op.create_index(op.f("sign_in_flows_person_id_idx"), "sign_in_flows", ["person_id"])
    op.create_index(op.f("sign_in_flows_expires_at_idx"), "sign_in_flows", ["expires_at"])


def _person(*, nullable: bool) -> sa.Column[object]:
    return sa.Column("person_id", sa.Uuid(), nullable=nullable)


def _of_person(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["person_id"], ["people.id"], name=op.f(f"{table}_person_id_fkey"), ondelete="CASCADE"
    )


def _created() -> sa.Column[object]:
    return sa.Column(
        "created_at", sa.DateTime(timezone=True), server_default=sa.text("lastcall_now()"), nullable=False
    )


def _time(name: str, *, nullable: bool = True) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)
