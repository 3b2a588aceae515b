"""Fewer indexes to keep with each step of an operation, and a cheaper look at its row.

Every index costs each update of a row as much as the whole look at the lease does, whether or not the row is in it. The
deadlines of two states share one; the few invitations that follow another event than their creation have none, because
claim, authorize and lateness ask both events.
"""

from __future__ import annotations

from alembic import op

from lastcall.db.migrations.indexes import create_index_concurrently, drop_index_concurrently

revision = "0068_operation_deadlines"
down_revision = "0061_calendar_imports"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(_LINKS_ARE_WHOLE)
    op.execute(_OPERATION_IS_WHOLE)
    create_index_concurrently(
        "operations_due_idx", "operations", ["state", "due_at", "id"], where="state in ('pending', 'claimed')"
    )
    create_index_concurrently(
        "operations_expiry_idx",
        "operations",
        ["state", "claim_expires_at", "id"],
        where="state in ('claimed', 'submitted')",
    )
    for name in ("pending_due", "claimed_due", "claimed_expiry", "submitted_expiry", "dependency_event"):
        drop_index_concurrently(f"operations_{name}_idx", "operations")


# What both ask is what 0065 asks, so no row needs to be looked at again. A step's first look prepares every part of the
# expression that it meets: the parts that only linked and waiting rows need are kept out of its way.
_OPERATION_IS_WHOLE = """
    create or replace function operation_is_whole(p_row record) returns boolean
    language plpgsql immutable
    as $$
    begin
        return strpos(
                ' pending0000 pending0001 claimed7000 submitted7100 succeeded7110 rejected7111 rejected0011 '
                'indeterminate7111 cancelled0011 missed0011 ',
                concat(
                    ' ', p_row.state,
                    num_nonnulls(
                        p_row.claim_nonce, p_row.claim_account_id, p_row.claim_worker_id, p_row.claim_journal_id,
                        p_row.claim_fencing_token, p_row.claim_generation, p_row.claim_expires_at),
                    num_nonnulls(p_row.submitted_at), num_nonnulls(p_row.completed_at), num_nonnulls(p_row.code),
                    ' ')) > 0
            and p_row.lane between 1 and 3
            and (p_row.result is null or octet_length(p_row.result::text) <= 8192)
            and case
                when p_row.schedule_kind in ('immediate', 'fixed')
                     and p_row.ready_at >= greatest(p_row.due_at, p_row.retry_at)
                     and num_nonnulls(
                         p_row.event_id, p_row.event_cancel_generation, p_row.event_tba_generation, p_row.offset_ms,
                         p_row.depends_on, p_row.dependency_revision, p_row.dependency_event_id) = 0
                    then true
                else operation_links_are_whole(p_row)
            end;
    end
    $$
"""
_LINKS_ARE_WHOLE = """
    create or replace function operation_links_are_whole(p_row record) returns boolean
    language plpgsql immutable
    as $$
    begin
        return coalesce(p_row.ready_at >= greatest(p_row.due_at, p_row.retry_at), p_row.depends_on is not null)
            and (p_row.schedule_kind is null or p_row.schedule_kind in ('immediate', 'fixed', 'event_relative'))
            and num_nonnulls(p_row.event_id, p_row.event_cancel_generation, p_row.event_tba_generation) in (0, 3)
            and (p_row.offset_ms is not null) = (p_row.schedule_kind is not distinct from 'event_relative')
            and (p_row.offset_ms is null or p_row.event_id is not null)
            and (p_row.depends_on is not null
                 or num_nonnulls(p_row.dependency_revision, p_row.dependency_event_id) = 0);
    end
    $$
"""
