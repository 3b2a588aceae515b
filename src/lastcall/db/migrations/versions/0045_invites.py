"""Invites carry what they give and are found by a token; a decided request says who decided and when."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0045_invites"
down_revision = "0055_idempotency_keys"
branch_labels = None
depends_on = None


def upgrade() -> None:
    extend_invites()
    extend_join_requests()


def extend_invites() -> None:
    op.add_column("invites", sa.Column("kind", sa.Text(), server_default=sa.text("'person'"), nullable=False))
    op.add_column("invites", sa.Column("token_hash", sa.LargeBinary(), nullable=True))
    op.add_column(
        "invites", sa.Column("role_ids", ARRAY(sa.Uuid()), server_default=sa.text("'{}'"), nullable=False)
    )
    op.add_column("invites", sa.Column("email", sa.Text(), nullable=True))
    op.add_column(
        "invites", sa.Column("approves", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
    op.add_column("invites", sa.Column("note", sa.Text(), nullable=True))
    op.add_column(
        "invites",
        sa.Column(
            "accepted_by",
            sa.Uuid(),
            sa.ForeignKey("people.id", name="invites_accepted_by_fkey"),
            nullable=True,
        ),
    )
    # Earlier invites had no token: theirs is the hash of one that nobody knows.
    op.execute("update invites set token_hash = sha256(convert_to(gen_random_uuid()::text, 'utf8'))")
    op.execute(
        "insert into directory (kind, key, club_id)"
        " select 'invite', encode(token_hash, 'hex'), club_id from invites"
    )
    op.alter_column("invites", "token_hash", nullable=False)
    op.create_unique_constraint("invites_club_id_token_hash_key", "invites", ["club_id", "token_hash"])
    op.create_check_constraint("kind", "invites", "kind in ('person', 'agent', 'both')")
    op.create_check_constraint("token_hash_length", "invites", "octet_length(token_hash) = 32")
    op.create_check_constraint(
        "approves", "invites", "not approves or (kind <> 'agent' and cardinality(role_ids) > 0)"
    )
    op.create_check_constraint("accepted", "invites", "accepted_by is null or accepted_at is not null")


def extend_join_requests() -> None:
    op.add_column("join_requests", sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column(
        "join_requests",
        sa.Column(
            "decided_by",
            sa.Uuid(),
            sa.ForeignKey("people.id", name="join_requests_decided_by_fkey"),
            nullable=True,
        ),
    )
    op.add_column("join_requests", sa.Column("decision_note", sa.Text(), nullable=True))
    op.execute("update join_requests set decided_at = activity_at where status <> 'pending_approval'")
    op.create_check_constraint(
        "decided",
        "join_requests",
        "case status when 'pending_approval' then num_nonnulls(decided_at, decided_by, decision_note) = 0"
        " else decided_at is not null end",
    )
