-- What archiving by itself writes, for every kind of item: the caller holds the item's row and has judged it due.
-- Answers the number of this archive. The club is told of it at the end of the day.
create or replace function archive_idle(
    p_club uuid, p_id uuid, p_kind text, p_activity timestamptz, p_now timestamptz, p_log_id uuid
)
returns bigint
language plpgsql as $$
declare
    v_archive_version bigint;
begin
    insert into retention as r (
        club_id, id, join_request_id, approval_id, archived_at, archived_reason, archived_by_kind,
        archive_version, source_activity_at, created_at, updated_at
    )
    values (
        p_club, p_id, case p_kind when 'join_request' then p_id end, case p_kind when 'approval' then p_id end, p_now, 'idle', 'system',
        1, p_activity, p_now, p_now
    )
    on conflict (club_id, id) do update
    set archived_at = excluded.archived_at,
        archived_reason = excluded.archived_reason,
        archived_by_kind = excluded.archived_by_kind,
        version = r.version + 1,
        archive_version = r.archive_version + 1,
        source_activity_at = excluded.source_activity_at,
        updated_at = excluded.updated_at
    returning r.archive_version into v_archive_version;

    insert into activity_log (
        club_id, id, actor_kind, actor_name, action, entity_type, entity_id, details, created_at
    )
    values (
        p_club, p_log_id, 'system', 'retention', 'retention.archived', p_kind, p_id,
        jsonb_build_object('reason', 'idle', 'archiveVersion', v_archive_version), p_now
    );
    perform note_retention_digest(p_club, p_now);
    return v_archive_version;
end
$$;
