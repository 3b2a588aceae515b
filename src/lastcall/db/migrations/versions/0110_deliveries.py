"""What people and agents are told, by which channel, and which clubs have something to be told of retention."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0110_deliveries"
down_revision = "0099_findings"
branch_labels = None
depends_on = None

NOW = sa.text("lastcall_now()")
OPEN = "state in ('pending', 'delivering')"


def upgrade() -> None:
    _create_deliveries()
    _index_deliveries()
    _create_tellings()


def _create_deliveries() -> None:
    op.create_table(
        "deliveries",
        sa.Column("club_id", sa.Uuid, primary_key=True),
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("person_id", sa.Uuid, sa.ForeignKey("people.id")),
        sa.Column("agent_id", sa.Uuid),
        sa.Column("approval_id", sa.Uuid),
        sa.Column("decision_id", sa.Uuid),
        sa.Column("dedup", sa.Text, nullable=False),
        sa.Column("data", JSONB, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("next_at", sa.DateTime(timezone=True)),
        sa.Column("mail_id", sa.Uuid),
        sa.Column("last_error", sa.Text),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=NOW),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("dismissed_at", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        sa.UniqueConstraint("club_id", "person_id", "channel", "kind", "dedup"),
        sa.UniqueConstraint("club_id", "agent_id", "kind", "dedup"),
        sa.CheckConstraint(
            "case when channel = 'agent' then agent_id is not null and person_id is null"
            " else channel in ('app', 'mail', 'slack') and person_id is not null and agent_id is null end",
            name="recipient",
        ),
        sa.CheckConstraint("num_nonnulls(approval_id, decision_id) <= 1", name="source"),
        sa.CheckConstraint(
            "state in ('pending', 'delivering', 'delivered', 'unknown', 'dead', 'dropped')", name="state"
        ),
        sa.CheckConstraint(
            f"({OPEN}) = (next_at is not null) and ({OPEN}) = (ended_at is null)", name="open"
        ),
        sa.CheckConstraint("char_length(dedup) between 1 and 200", name="dedup"),
        sa.CheckConstraint("attempts >= 0", name="attempts"),
        sa.CheckConstraint("mail_id is null or channel = 'mail'", name="mail"),
        sa.CheckConstraint("dismissed_at is null or channel = 'app'", name="dismissed"),
    )


def _index_deliveries() -> None:
    for name, columns, where in (
        ("deliveries_sent_idx", ["next_at", "id"], "next_at is not null and channel <> 'agent'"),
        (
            "deliveries_fetched_idx",
            ["club_id", "agent_id", "next_at", "id"],
            "next_at is not null and channel = 'agent'",
        ),
        (
            "deliveries_notices_idx",
            ["club_id", "person_id", "created_at", "id"],
            "channel = 'app' and dismissed_at is null",
        ),
        ("deliveries_dead_idx", ["ended_at", "id"], "state = 'dead'"),
        ("deliveries_dead_of_club_idx", ["club_id", "ended_at", "id"], "state = 'dead'"),
    ):
        op.create_index(name, "deliveries", columns, postgresql_where=sa.text(where))
    op.create_index("deliveries_ended_at_idx", "deliveries", ["ended_at"])


def _create_tellings() -> None:
    op.create_table(
        "retention_tellings",
        sa.Column("club_id", sa.Uuid, sa.ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("day", sa.Date, primary_key=True),
        sa.Column("tell_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind in ('reminder', 'digest')", name="kind"),
    )
    for kind in ("reminder", "digest"):
        op.create_index(
            f"retention_tellings_{kind}_idx",
            "retention_tellings",
            ["tell_at", "club_id"],
            postgresql_where=sa.text(f"kind = '{kind}'"),
        )
