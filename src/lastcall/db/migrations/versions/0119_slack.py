"""A club's Slack workspace, the links its people were given, who is who, and where an invite came from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0119_slack"
down_revision = "0122_forgotten_addresses"
branch_labels = None
depends_on = None


def _at(name: str) -> sa.Column[object]:
    now = sa.text("lastcall_now()")
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, server_default=now)


def _key(*references: sa.ForeignKey) -> tuple[sa.Column[object], sa.Column[object]]:
    return (
        sa.Column("club_id", sa.Uuid, *references, primary_key=True),
        sa.Column("id", sa.Uuid, primary_key=True),
    )


def _of_installation() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["club_id", "installation_id"],
        ["slack_installations.club_id", "slack_installations.id"],
        ondelete="CASCADE",
    )


def upgrade() -> None:
    op.add_column("invites", sa.Column("source", sa.Text, server_default=sa.text("'staff'"), nullable=False))
    op.create_check_constraint("source", "invites", "source in ('staff', 'slack')")
    op.create_table(
        "slack_installations",
        *_key(sa.ForeignKey("clubs.id", ondelete="CASCADE")),
        sa.Column("team_id", sa.Text, nullable=False),
        sa.Column("team_name", sa.Text, nullable=False),
        sa.Column("token_sealed", sa.LargeBinary, nullable=False),
        sa.Column("role_id", sa.Uuid, nullable=False),
        sa.Column("installed_by", sa.Uuid, sa.ForeignKey("people.id"), nullable=False),
        _at("installed_at"),
        sa.UniqueConstraint("club_id"),
        sa.ForeignKeyConstraint(["club_id", "role_id"], ["staff_roles.club_id", "staff_roles.id"]),
    )
    op.create_index("slack_installations_installed_by_idx", "slack_installations", ["installed_by"])
    op.create_table(
        "slack_links",
        *_key(),
        sa.Column("installation_id", sa.Uuid, nullable=False),
        sa.Column("slack_user_id", sa.Text, nullable=False),
        sa.Column("slack_name", sa.Text, nullable=False),
        sa.Column("token_hash", sa.LargeBinary, nullable=False),
        sa.Column("request_hash", sa.LargeBinary, nullable=False),
        _at("created_at"),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True)),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        _of_installation(),
        sa.UniqueConstraint("club_id", "token_hash"),
        sa.UniqueConstraint("club_id", "request_hash"),
        sa.CheckConstraint(
            "octet_length(token_hash) = 32 and octet_length(request_hash) = 32", name="hash_length"
        ),
    )
    op.create_index("slack_links_club_id_slack_user_id_idx", "slack_links", ["club_id", "slack_user_id"])
    op.create_index("slack_links_expires_at_idx", "slack_links", ["expires_at"])
    op.create_table(
        "slack_people",
        *_key(),
        sa.Column("installation_id", sa.Uuid, nullable=False),
        sa.Column("slack_user_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Uuid, sa.ForeignKey("people.id"), nullable=False),
        _at("linked_at"),
        _of_installation(),
        sa.UniqueConstraint("club_id", "slack_user_id"),
        sa.UniqueConstraint("club_id", "person_id"),
    )
    op.create_index("slack_people_person_id_idx", "slack_people", ["person_id"])
