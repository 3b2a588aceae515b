"""The life of a club, descriptions of roles, visibility; the activity log keeps no names of people."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0035_clubs"
down_revision = "0046_access_indexes"
branch_labels = None
depends_on = None

NOW = sa.text("lastcall_now()")


def upgrade() -> None:
    _change_clubs()
    _create_visibility()
    op.add_column(
        "staff_roles", sa.Column("description", sa.Text(), server_default=sa.text("''"), nullable=False)
    )
    op.drop_constraint("activity_log_actor_check", "activity_log")
    op.execute("update activity_log set actor_name = null where actor_kind = 'person'")
    op.create_check_constraint(
        op.f("activity_log_actor_check"),
        "activity_log",
        "case actor_kind when 'person' then actor_id is not null and actor_name is null"
        " when 'system' then actor_id is null and actor_name is not null else false end",
    )


def _change_clubs() -> None:
    for name in ("paused_at", "archived_at"):
        op.add_column("clubs", sa.Column(name, sa.DateTime(timezone=True), nullable=True))
    op.add_column("clubs", sa.Column("pause_reason", sa.Text(), nullable=True))
    op.add_column(
        "clubs", sa.Column("updated_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False)
    )
    op.execute("update clubs set paused_at = updated_at, pause_reason = 'manual' where state = 'paused'")
    op.execute("update clubs set archived_at = updated_at where state = 'archived'")
    op.drop_constraint("clubs_state_check", "clubs")
    op.create_check_constraint(
        op.f("clubs_state_check"), "clubs", "state in ('active', 'paused', 'archived', 'deleting')"
    )
    op.create_check_constraint(
        op.f("clubs_paused_check"),
        "clubs",
        "(state = 'paused') = (paused_at is not null) and (state = 'paused') = (pause_reason is not null)"
        " and pause_reason in ('manual', 'budget', 'system')",
    )
    op.create_check_constraint(
        op.f("clubs_archived_check"),
        "clubs",
        "(state in ('archived', 'deleting')) = (archived_at is not null)",
    )
    op.create_index(
        "clubs_deleting_idx",
        "clubs",
        ["updated_at", "id"],
        postgresql_where=sa.text("state = 'deleting'"),
    )


def _create_visibility() -> None:
    op.create_table(
        "visibility",
        sa.Column("club_id", sa.Uuid(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("audience", sa.Text(), nullable=False),
        sa.Column("role_ids", postgresql.ARRAY(sa.Uuid()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.CheckConstraint(
            "case audience when 'roles' then cardinality(role_ids) > 0"
            " when 'public' then role_ids = '{}' and category <> 'individual_membership_history'"
            " when 'staff' then role_ids = '{}' when 'owner' then role_ids = '{}' else false end",
            name=op.f("visibility_audience_check"),
        ),
        sa.ForeignKeyConstraint(
            ["club_id"], ["clubs.id"], name=op.f("visibility_club_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("club_id", "category", name=op.f("visibility_pkey")),
    )
