"""Import documents: what a calendar elsewhere holds, for somebody to review."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0061_calendar_imports"
down_revision = "0067_operation_events"
branch_labels = None
depends_on = None

NOW = sa.text("lastcall_now()")


def _tenant_key() -> list[sa.schema.SchemaItem]:
    return [sa.Column("club_id", sa.Uuid, primary_key=True), sa.Column("id", sa.Uuid, primary_key=True)]


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _notes() -> sa.Column[list[str]]:
    return sa.Column("notes", postgresql.ARRAY(sa.Text), nullable=False, server_default=sa.text("'{}'"))


def upgrade() -> None:
    op.create_table(
        "calendar_imports",
        *_tenant_key(),
        _text("source_kind"),
        _text("source"),
        _text("name"),
        _text("zone"),
        _notes(),
        sa.Column("revision", sa.Integer, nullable=False, server_default=sa.text("1")),
        sa.Column("created_by", sa.Uuid, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=NOW),
        sa.ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        sa.CheckConstraint("source_kind in ('file', 'feed')", name="source_kind"),
    )
    op.create_index(
        "calendar_imports_club_id_created_at_id_idx", "calendar_imports", ["club_id", "created_at", "id"]
    )
    op.create_index("calendar_imports_created_at_idx", "calendar_imports", ["created_at"])
    _create_items()


def _create_items() -> None:
    op.create_table(
        "calendar_import_items",
        *_tenant_key(),
        sa.Column("import_id", sa.Uuid, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        _text("uid"),
        _text("change"),
        sa.Column("fields", postgresql.JSONB, nullable=False),
        _notes(),
        sa.Column("event_id", sa.Uuid),
        sa.Column("event_revision", sa.Integer),
        sa.Column("decision", sa.Text),
        sa.Column("problem", sa.Text),
        sa.ForeignKeyConstraint(
            ["club_id", "import_id"], ["calendar_imports.club_id", "calendar_imports.id"], ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["club_id", "event_id"], ["events.club_id", "events.id"]),
        sa.UniqueConstraint("club_id", "import_id", "position"),
        sa.CheckConstraint(
            "change in ('new', 'changed', 'same', 'cancelled', 'unreadable')"
            " and (change <> 'unreadable' or problem is not null)",
            name="change",
        ),
        sa.CheckConstraint(
            "(decision is null or decision in ('applied', 'skipped'))"
            " and (decision is distinct from 'applied' or event_id is not null)"
            " and (change not in ('changed', 'same', 'cancelled') or event_id is not null)"
            " and (event_revision is null or event_id is not null)",
            name="decision",
        ),
    )
    op.create_index(
        "calendar_import_items_club_id_event_id_idx",
        "calendar_import_items",
        ["club_id", "event_id"],
        postgresql_where=sa.text("event_id is not null"),
    )
