"""What ties an operation to an event and to another operation, what VRChat must allow for it, its earlier revisions,
and the notes of what is to be fanned out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0065_operation_links"
down_revision = "0047_privacy_indexes"
branch_labels = None
depends_on = None

NOW = sa.text("lastcall_now()")


def upgrade() -> None:
    _add_columns()
    op.execute(_OPERATION_IS_WHOLE)
    # Added anew, so that the next revision can check the rows that are there without keeping writers out.
    op.execute("alter table operations drop constraint operations_whole_check")
    op.execute(
        "alter table operations add constraint operations_whole_check check (operation_is_whole(operations)) not valid"
    )
    op.execute(
        "alter table operations add constraint operations_club_id_depends_on_fkey foreign key (club_id, depends_on)"
        " references operations (club_id, id) on delete cascade not valid"
    )
    _create_revisions()
    _create_fanouts()


def _time(name: str, *, nullable: bool = False, default: sa.TextClause | None = None) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable, server_default=default)


def _tenant_key() -> list[sa.schema.SchemaItem]:
    return [sa.Column("club_id", sa.Uuid, primary_key=True), sa.Column("id", sa.Uuid, primary_key=True)]


def _add_columns() -> None:
    for column in (
        sa.Column("event_id", sa.Uuid),
        sa.Column("offset_ms", sa.BigInteger),
        sa.Column("event_cancel_generation", sa.Integer),
        sa.Column("event_tba_generation", sa.Integer),
        sa.Column("depends_on", sa.Uuid),
        sa.Column("dependency_revision", sa.Integer),
        sa.Column("dependency_event_id", sa.Uuid),
        _time("retry_at", nullable=True),
        sa.Column("grants", postgresql.ARRAY(sa.Text), nullable=False, server_default=sa.text("'{}'")),
    ):
        op.add_column("operations", column)
    op.alter_column("operations", "ready_at", nullable=True)
    # Only what may still be sent is asked for its grants; history is not rewritten.
    op.execute(_BACKFILL)
    op.alter_column("operations", "grants", server_default=None)


_BACKFILL = """
    update operations o
       set grants = case o.kind
               when 'assign_role' then array['group-roles-assign', 'group-members-manage']
               when 'ban_member' then array['group-bans-manage', 'group-members-manage']
               when 'invite_member' then array['group-invites-manage']
           end,
           retry_at = case when o.preflight_failures > 0 and o.ready_at > o.due_at then o.ready_at end
     where o.state in ('pending', 'claimed')
"""


# As in revision 0007, and what the new columns may say: the generations of an event stand beside its id, an offset
# beside an event-relative schedule, what a dependency says beside the dependency. Without a ready time waits only what
# depends on something.
_OPERATION_IS_WHOLE = """
    create or replace function operation_is_whole(p_row record) returns boolean
    language plpgsql immutable
    as $$
    begin
        return concat(
                p_row.state,
                num_nonnulls(
                    p_row.claim_nonce, p_row.claim_account_id, p_row.claim_worker_id, p_row.claim_journal_id,
                    p_row.claim_fencing_token, p_row.claim_generation, p_row.claim_expires_at),
                num_nonnulls(p_row.submitted_at), num_nonnulls(p_row.completed_at), num_nonnulls(p_row.code)
            ) in (
                'pending0000', 'pending0001', 'claimed7000', 'submitted7100', 'succeeded7110', 'rejected7111',
                'rejected0011', 'indeterminate7111', 'cancelled0011', 'missed0011')
            and coalesce(p_row.ready_at >= greatest(p_row.due_at, p_row.retry_at), p_row.depends_on is not null)
            and p_row.lane between 1 and 3
            and (p_row.schedule_kind is null or p_row.schedule_kind in ('immediate', 'fixed', 'event_relative'))
            and num_nonnulls(p_row.event_id, p_row.event_cancel_generation, p_row.event_tba_generation) in (0, 3)
            and (p_row.offset_ms is not null) = (p_row.schedule_kind is not distinct from 'event_relative')
            and (p_row.offset_ms is null or p_row.event_id is not null)
            and (p_row.depends_on is not null
                 or num_nonnulls(p_row.dependency_revision, p_row.dependency_event_id) = 0)
            and (p_row.result is null or octet_length(p_row.result::text) <= 8192);
    end
    $$
"""


def _create_revisions() -> None:
    op.create_table(
        "operation_revisions",
        *_tenant_key(),
        sa.Column("operation_id", sa.Uuid, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("actor_id", sa.Uuid, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("payload", postgresql.JSONB, nullable=False),
        sa.Column("schedule", postgresql.JSONB, nullable=False),
        _time("due_at"),
        sa.Column("edited_by", sa.Uuid, sa.ForeignKey("people.id"), nullable=False),
        _time("edited_at", default=NOW),
        sa.ForeignKeyConstraint(
            ["club_id", "operation_id"], ["operations.club_id", "operations.id"], ondelete="CASCADE"
        ),
        sa.UniqueConstraint("club_id", "operation_id", "revision"),
    )


def _create_fanouts() -> None:
    op.create_table(
        "operation_fanouts",
        *_tenant_key(),
        sa.Column("subject_kind", sa.Text, nullable=False),
        sa.Column("subject_id", sa.Uuid, nullable=False),
        sa.Column("after", sa.Uuid),
        _time("created_at", default=NOW),
        sa.ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        sa.UniqueConstraint("club_id", "subject_kind", "subject_id"),
        sa.CheckConstraint("subject_kind in ('event', 'creation')", name="subject_kind"),
    )
    op.create_index("operation_fanouts_created_at_id_idx", "operation_fanouts", ["created_at", "id"])
