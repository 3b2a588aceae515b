"""Events of clubs and their worlds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0060_events"
down_revision = "0075_operation_lists"
branch_labels = None
depends_on = None

NOW = sa.text("lastcall_now()")


def _time(name: str, *, nullable: bool = True, default: sa.TextClause | None = None) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable, server_default=default)


def _text(name: str, default: str | None = None) -> sa.Column[str]:
    return sa.Column(
        name, sa.Text, nullable=False, server_default=None if default is None else sa.text(default)
    )


def _count(name: str, default: int) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, server_default=sa.text(str(default)))


def upgrade() -> None:
    _create_events()
    _create_worlds()


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("club_id", sa.Uuid, primary_key=True),
        sa.Column("id", sa.Uuid, primary_key=True),
        _text("title"),
        _text("description", "''"),
        _text("schedule_kind"),
        _time("starts_at"),
        _time("ends_at"),
        _time("doors_at"),
        sa.Column("event_date", sa.Date),
        _text("zone"),
        _time("sort_at", nullable=False),
        _time("over_at", nullable=False),
        _text("status", "'scheduled'"),
        _text("publication", "'draft'"),
        _count("cancel_generation", 0),
        _count("tba_generation", 0),
        _count("revision", 1),
        _time("removed_at"),
        sa.Column("import_uid", sa.Text),
        sa.Column("created_by", sa.Uuid, sa.ForeignKey("people.id"), nullable=False),
        _time("created_at", nullable=False, default=NOW),
        _time("updated_at", nullable=False, default=NOW),
        sa.ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        sa.CheckConstraint(
            "case schedule_kind"
            " when 'timed' then starts_at is not null and event_date is null"
            " when 'date_only' then starts_at is null and event_date is not null"
            " when 'tba' then starts_at is null else false end",
            name="schedule",
        ),
        sa.CheckConstraint(
            "(starts_at is not null or num_nonnulls(ends_at, doors_at) = 0)"
            " and (ends_at is null or starts_at < ends_at) and (doors_at is null or doors_at <= starts_at)",
            name="times",
        ),
        sa.CheckConstraint("status in ('scheduled', 'cancelled')", name="status"),
        sa.CheckConstraint("publication in ('draft', 'published')", name="publication"),
        sa.CheckConstraint(
            "cancel_generation >= 0 and tba_generation >= 0 and revision >= 1"
            " and (status <> 'cancelled' and removed_at is null or cancel_generation > 0)",
            name="generations",
        ),
    )
    op.create_index(
        "events_club_id_sort_at_id_idx",
        "events",
        ["club_id", "sort_at", "id"],
        postgresql_where=sa.text("removed_at is null"),
    )
    op.create_index(
        "events_import_uid_idx",
        "events",
        ["club_id", "import_uid"],
        unique=True,
        postgresql_where=sa.text("import_uid is not null and removed_at is null"),
    )


def _create_worlds() -> None:
    op.create_table(
        "event_worlds",
        sa.Column("club_id", sa.Uuid, primary_key=True),
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("event_id", sa.Uuid, nullable=False),
        _text("world_id"),
        _text("name", "''"),
        _text("confirmation", "'suggested'"),
        _time("created_at", nullable=False, default=NOW),
        sa.ForeignKeyConstraint(["club_id", "event_id"], ["events.club_id", "events.id"], ondelete="CASCADE"),
        sa.UniqueConstraint("club_id", "event_id", "world_id"),
        sa.CheckConstraint("confirmation in ('suggested', 'confirmed')", name="confirmation"),
    )
