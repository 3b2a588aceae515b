"""Approvals with their comments and revisions, decisions, and what agents report of their runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0102_approvals"
down_revision = "0100_agents"
branch_labels = None
depends_on = None

NOW = sa.text("lastcall_now()")
ASKER = (
    "case requested_by_kind"
    " when 'person' then requested_by_person_id is not null and requested_by_agent_id is null"
    " and requested_by_system is null"
    " when 'agent' then requested_by_agent_id is not null and requested_by_person_id is null"
    " and requested_by_system is null"
    " when 'system' then requested_by_system is not null and requested_by_person_id is null"
    " and requested_by_agent_id is null"
    " else false end"
)
OPEN = "status in ('pending', 'revision_requested')"
DECIDED = (
    f"case when {OPEN} then num_nonnulls(decided_at, decided_by, decision_note) = 0"
    " else decided_at is not null and (decided_by is null) = (status = 'withdrawn') end"
)
ANSWERED = (
    "(status = 'open') = (decided_at is null) and (status = 'decided') = (decided_option is not null)"
    " and (status = 'decided') = (decided_by is not null)"
    " and (status = 'decided' or (decision_note is null and action_result is null))"
)


def _id(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.Uuid, nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=nullable)


def _moment(name: str, *, nullable: bool = True) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _now(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, server_default=NOW)


def upgrade() -> None:
    _create_approvals()
    _index_approvals()
    _create_approval_comments()
    _create_approval_revisions()
    _create_decisions()
    _index_decisions()
    _create_agent_runs()
    _index_agent_runs()


def _create_approvals() -> None:
    op.create_table(
        "approvals",
        _id("club_id"),
        _id("id"),
        _text("type"),
        _text("title"),
        _text("body"),
        _text("subject_kind", nullable=True),
        _text("subject_key", nullable=True),
        sa.Column("is_only_one", sa.Boolean, server_default=sa.text("false"), nullable=False),
        _text("effect_name", nullable=True),
        sa.Column("effect_body", JSONB),
        sa.Column("effect_result", JSONB),
        sa.Column("status", sa.Text, server_default=sa.text("'pending'"), nullable=False),
        sa.Column("revision", sa.Integer, server_default=sa.text("1"), nullable=False),
        _text("idempotency_key", nullable=True),
        sa.Column("asked_digest", sa.LargeBinary),
        _now("activity_at"),
        _moment("archive_due_at"),
        _moment("decided_at"),
        _id("decided_by", nullable=True),
        _text("decision_note", nullable=True),
        _now("created_at"),
        _text("requested_by_kind"),
        _id("requested_by_person_id", nullable=True),
        _id("requested_by_agent_id", nullable=True),
        _text("requested_by_system", nullable=True),
        sa.CheckConstraint(
            ASKER,
            name="requested_by",
        ),
        sa.CheckConstraint(
            DECIDED,
            name="decided",
        ),
        sa.CheckConstraint(
            "effect_result is null or (effect_name is not null and status = 'approved')", name="effect_result"
        ),
        sa.CheckConstraint(
            "status in ('pending', 'revision_requested', 'approved', 'rejected', 'withdrawn')", name="status"
        ),
        sa.CheckConstraint("(effect_name is null) = (effect_body is null)", name="effect"),
        sa.CheckConstraint("(idempotency_key is null) = (asked_digest is null)", name="idempotency"),
        sa.CheckConstraint("(subject_kind is null) = (subject_key is null)", name="subject"),
        sa.CheckConstraint("char_length(body) <= 4000", name="body"),
        sa.CheckConstraint("char_length(title) between 1 and 200", name="title"),
        sa.CheckConstraint("not is_only_one or subject_key is not null", name="only_one"),
        sa.CheckConstraint("revision >= 1", name="revision"),
        sa.ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["decided_by"], ["people.id"]),
        sa.ForeignKeyConstraint(["requested_by_person_id"], ["people.id"]),
        sa.ForeignKeyConstraint(["club_id", "requested_by_agent_id"], ["agents.club_id", "agents.id"]),
        sa.PrimaryKeyConstraint("club_id", "id"),
        sa.UniqueConstraint("club_id", "requested_by_agent_id", "idempotency_key"),
        sa.UniqueConstraint("club_id", "requested_by_person_id", "idempotency_key"),
        sa.UniqueConstraint("club_id", "requested_by_system", "idempotency_key"),
    )


def _index_approvals() -> None:
    op.create_index(
        "approvals_archive_due_at_idx",
        "approvals",
        ["archive_due_at", "id"],
        postgresql_where=sa.text("status = 'pending' and archive_due_at is not null"),
    )
    op.create_index("approvals_club_id_activity_at_id_idx", "approvals", ["club_id", "activity_at", "id"])
    op.create_index(
        "approvals_of_agent_idx", "approvals", ["club_id", "requested_by_agent_id", "activity_at", "id"]
    )
    op.create_index(
        "approvals_of_person_idx", "approvals", ["requested_by_person_id", "club_id", "activity_at", "id"]
    )
    op.create_index(
        "approvals_only_one_key",
        "approvals",
        ["club_id", "type", "subject_kind", "subject_key"],
        unique=True,
        postgresql_where=sa.text("is_only_one and status in ('pending', 'revision_requested')"),
    )
    op.create_index(
        "approvals_pending_idx",
        "approvals",
        ["club_id", "activity_at", "id"],
        postgresql_where=sa.text("status = 'pending'"),
    )


def _create_approval_comments() -> None:
    op.create_table(
        "approval_comments",
        _id("club_id"),
        _id("id"),
        _id("approval_id"),
        sa.Column("kind", sa.Text, server_default=sa.text("'comment'"), nullable=False),
        _id("person_id", nullable=True),
        _id("agent_id", nullable=True),
        _text("body"),
        _now("created_at"),
        sa.CheckConstraint(
            "kind = 'comment' or (kind = 'revision_requested' and person_id is not null)", name="kind"
        ),
        sa.CheckConstraint("char_length(body) between 1 and 4000", name="body"),
        sa.CheckConstraint("num_nonnulls(person_id, agent_id) = 1", name="author"),
        sa.ForeignKeyConstraint(
            ["club_id", "approval_id"], ["approvals.club_id", "approvals.id"], ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"]),
        sa.ForeignKeyConstraint(["club_id", "agent_id"], ["agents.club_id", "agents.id"]),
        sa.PrimaryKeyConstraint("club_id", "id"),
    )
    op.create_index(
        "approval_comments_club_id_approval_id_created_at_id_idx",
        "approval_comments",
        ["club_id", "approval_id", "created_at", "id"],
    )
    op.create_index("approval_comments_person_id_idx", "approval_comments", ["person_id"])


def _create_approval_revisions() -> None:
    op.create_table(
        "approval_revisions",
        _id("club_id"),
        _id("id"),
        _id("approval_id"),
        sa.Column("revision", sa.Integer, nullable=False),
        _text("title"),
        _text("body"),
        sa.Column("effect_body", JSONB),
        _now("replaced_at"),
        sa.CheckConstraint("revision >= 1", name="revision"),
        sa.ForeignKeyConstraint(
            ["club_id", "approval_id"], ["approvals.club_id", "approvals.id"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("club_id", "id"),
        sa.UniqueConstraint("club_id", "approval_id", "revision"),
    )


def _create_decisions() -> None:
    op.create_table(
        "decisions",
        _id("club_id"),
        _id("id"),
        _text("title"),
        _text("body"),
        sa.Column("options", JSONB, nullable=False),
        _text("action_name", nullable=True),
        sa.Column("action_body", JSONB),
        sa.Column("action_result", JSONB),
        sa.Column("status", sa.Text, server_default=sa.text("'open'"), nullable=False),
        _text("idempotency_key", nullable=True),
        sa.Column("asked_digest", sa.LargeBinary),
        _now("activity_at"),
        _moment("expires_at", nullable=False),
        _text("decided_option", nullable=True),
        _moment("decided_at"),
        _id("decided_by", nullable=True),
        _text("decision_note", nullable=True),
        _now("created_at"),
        _text("requested_by_kind"),
        _id("requested_by_person_id", nullable=True),
        _id("requested_by_agent_id", nullable=True),
        _text("requested_by_system", nullable=True),
        sa.CheckConstraint(
            ANSWERED,
            name="decided",
        ),
        sa.CheckConstraint(
            ASKER,
            name="requested_by",
        ),
        sa.CheckConstraint(
            "jsonb_typeof(options) = 'array' and jsonb_array_length(options) between 2 and 10", name="options"
        ),
        sa.CheckConstraint("status in ('open', 'decided', 'expired', 'cancelled')", name="status"),
        sa.CheckConstraint("(action_name is null) = (action_body is null)", name="action"),
        sa.CheckConstraint("(idempotency_key is null) = (asked_digest is null)", name="idempotency"),
        sa.CheckConstraint("char_length(body) <= 4000", name="body"),
        sa.CheckConstraint("char_length(title) between 1 and 200", name="title"),
        sa.CheckConstraint("expires_at > created_at", name="expires_at"),
        sa.ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["decided_by"], ["people.id"]),
        sa.ForeignKeyConstraint(["requested_by_person_id"], ["people.id"]),
        sa.ForeignKeyConstraint(["club_id", "requested_by_agent_id"], ["agents.club_id", "agents.id"]),
        sa.PrimaryKeyConstraint("club_id", "id"),
        sa.UniqueConstraint("club_id", "requested_by_agent_id", "idempotency_key"),
        sa.UniqueConstraint("club_id", "requested_by_person_id", "idempotency_key"),
        sa.UniqueConstraint("club_id", "requested_by_system", "idempotency_key"),
    )


def _index_decisions() -> None:
    op.create_index("decisions_club_id_activity_at_id_idx", "decisions", ["club_id", "activity_at", "id"])
    op.create_index(
        "decisions_expires_at_idx",
        "decisions",
        ["expires_at", "id"],
        postgresql_where=sa.text("status = 'open'"),
    )
    op.create_index(
        "decisions_of_agent_idx", "decisions", ["club_id", "requested_by_agent_id", "activity_at", "id"]
    )
    op.create_index(
        "decisions_of_person_idx", "decisions", ["requested_by_person_id", "club_id", "activity_at", "id"]
    )
    op.create_index(
        "decisions_open_idx",
        "decisions",
        ["club_id", "activity_at", "id"],
        postgresql_where=sa.text("status = 'open'"),
    )
    op.create_index(
        "decisions_open_of_agent_idx",
        "decisions",
        ["club_id", "requested_by_agent_id"],
        postgresql_where=sa.text("status = 'open'"),
    )


def _create_agent_runs() -> None:
    op.create_table(
        "agent_runs",
        _id("club_id"),
        _id("id"),
        _id("agent_id"),
        _text("key"),
        _text("thread_key"),
        _text("title"),
        _text("status"),
        _text("detail", nullable=True),
        _text("error", nullable=True),
        _moment("started_at", nullable=False),
        _moment("finished_at"),
        _moment("superseded_at"),
        _now("created_at"),
        sa.CheckConstraint("(status = 'running') = (finished_at is null)", name="finished"),
        sa.CheckConstraint("error is null or status = 'failed'", name="error"),
        sa.CheckConstraint("status in ('running', 'succeeded', 'failed', 'cancelled')", name="status"),
        sa.CheckConstraint("char_length(detail) <= 4000 and char_length(error) <= 4000", name="texts"),
        sa.CheckConstraint("char_length(title) between 1 and 200", name="title"),
        sa.CheckConstraint("finished_at >= started_at", name="times"),
        sa.ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["club_id", "agent_id"], ["agents.club_id", "agents.id"]),
        sa.PrimaryKeyConstraint("club_id", "id"),
        sa.UniqueConstraint("club_id", "agent_id", "key"),
    )


def _index_agent_runs() -> None:
    op.create_index(
        "agent_runs_club_id_agent_id_started_at_id_idx",
        "agent_runs",
        ["club_id", "agent_id", "started_at", "id"],
    )
    op.create_index("agent_runs_club_id_started_at_id_idx", "agent_runs", ["club_id", "started_at", "id"])
    op.create_index(
        "agent_runs_current_idx",
        "agent_runs",
        ["club_id", "agent_id", "thread_key"],
        postgresql_where=sa.text("superseded_at is null"),
    )
    op.create_index(
        "agent_runs_failed_idx",
        "agent_runs",
        ["club_id", "finished_at", "id"],
        postgresql_where=sa.text("status = 'failed' and superseded_at is null"),
    )
