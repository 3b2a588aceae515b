"""Notices of operations, the mails that told of them, findings about unknown outcomes, recipient lists and drafts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0080_notices"
down_revision = "0077_event_history"
branch_labels = None
depends_on = None

NOW = sa.text("lastcall_now()")
OUTCOME = "outcome in ('rejected', 'indeterminate', 'missed')"


def _id(name: str, *, nullable: bool = False, key: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.Uuid, nullable=nullable, primary_key=key)


def _person(name: str, *, key: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.Uuid, sa.ForeignKey("people.id"), nullable=False, primary_key=key)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _now(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, server_default=NOW)


def _to(table: str, column: str, *, ondelete: str | None = None) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["club_id", column], [f"{table}.club_id", f"{table}.id"], ondelete=ondelete
    )


def upgrade() -> None:
    _create_digests()
    _create_notices()
    _create_settlements()
    _create_lists()
    _create_drafts()


def _create_digests() -> None:
    op.create_table(
        "operation_digests",
        _id("club_id", key=True),
        _id("id", key=True),
        _id("request_id"),
        _number("revision"),
        _text("outcome"),
        _person("person_id"),
        _now("created_at"),
        _to("operation_requests", "request_id", ondelete="CASCADE"),
        sa.UniqueConstraint("club_id", "request_id", "revision", "outcome", "person_id"),
        sa.CheckConstraint(OUTCOME, name="outcome"),
    )


def _create_notices() -> None:
    op.create_table(
        "operation_notices",
        _id("club_id", key=True),
        _id("id", key=True),
        _id("request_id"),
        _number("revision"),
        _text("outcome"),
        _person("actor_id"),
        sa.Column("mail_at", sa.DateTime(timezone=True)),
        _id("digest_id", nullable=True),
        _now("created_at"),
        _to("operations", "id", ondelete="CASCADE"),
        _to("operation_requests", "request_id", ondelete="CASCADE"),
        _to("operation_digests", "digest_id"),
        sa.CheckConstraint(OUTCOME, name="outcome"),
        sa.CheckConstraint("mail_at is null or digest_id is null", name="mail"),
    )
    op.create_index(
        "operation_notices_club_id_actor_id_created_at_id_idx",
        "operation_notices",
        ["club_id", "actor_id", "created_at", "id"],
    )
    waiting = sa.text("mail_at is not null")
    op.create_index(
        "operation_notices_mail_at_idx", "operation_notices", ["mail_at", "id"], postgresql_where=waiting
    )
    op.create_index(
        "operation_notices_waiting_idx",
        "operation_notices",
        ["club_id", "request_id"],
        postgresql_where=waiting,
    )
    op.create_table(
        "operation_notice_reads",
        _id("club_id", key=True),
        _person("person_id", key=True),
        _id("notice_id", key=True),
        _now("read_at"),
        _to("operation_notices", "notice_id", ondelete="CASCADE"),
    )


def _create_settlements() -> None:
    op.create_table(
        "operation_settlements",
        _id("club_id", key=True),
        _id("id", key=True),
        _id("operation_id"),
        _number("number"),
        _text("verdict"),
        _text("note"),
        sa.Column("evidence", JSONB, nullable=False),
        _person("settled_by"),
        _now("settled_at"),
        _to("operations", "operation_id", ondelete="CASCADE"),
        sa.UniqueConstraint("club_id", "operation_id", "number"),
        sa.CheckConstraint("verdict in ('happened', 'not_seen')", name="verdict"),
        sa.CheckConstraint("number >= 1", name="number"),
        sa.CheckConstraint("char_length(note) <= 2000", name="note"),
        sa.CheckConstraint("note <> '' or jsonb_array_length(evidence) > 0", name="reason"),
    )


def _create_lists() -> None:
    op.create_table(
        "recipient_lists",
        _id("club_id", key=True),
        _id("id", key=True),
        _text("name"),
        sa.Column("user_ids", ARRAY(sa.Text), nullable=False),
        _number("revision"),
        _person("created_by"),
        _person("updated_by"),
        _now("created_at"),
        _now("updated_at"),
        sa.ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        sa.CheckConstraint("char_length(name) between 1 and 80", name="name"),
        sa.CheckConstraint("cardinality(user_ids) between 1 and 100", name="user_ids"),
        sa.CheckConstraint("revision >= 1", name="revision"),
    )
    op.create_index(
        "recipient_lists_club_id_updated_at_id_idx", "recipient_lists", ["club_id", "updated_at", "id"]
    )


def _create_drafts() -> None:
    op.create_table(
        "post_drafts",
        _id("club_id", key=True),
        _id("id", key=True),
        _person("created_by"),
        sa.Column("fields", JSONB, nullable=False),
        sa.Column("schedule", JSONB, nullable=False),
        _number("revision"),
        _id("request_id", nullable=True),
        _now("created_at"),
        _now("updated_at"),
        sa.ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        _to("operation_requests", "request_id"),
        sa.CheckConstraint("revision >= 1", name="revision"),
    )
    op.create_index(
        "post_drafts_club_id_created_by_updated_at_id_idx",
        "post_drafts",
        ["club_id", "created_by", "updated_at", "id"],
    )
