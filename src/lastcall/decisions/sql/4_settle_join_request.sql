-- One row of the sweep, in its own transaction: lock, judge in new statements by the facts, archive or refresh.
-- Answers archived, not_due (the row was refreshed, so it is not found again) or gone.
-- Never by scan: a plan made while retention was empty would go on scanning it as it fills (270 rows a second and
-- falling, against 700 and steady, in one run of 4 500 rows).
create or replace function settle_join_request(p_club uuid, p_id uuid, p_retention_id uuid, p_log_id uuid)
returns text
language plpgsql set enable_seqscan to off as $$
declare
    v_now timestamptz;
    v_activity timestamptz;
    v_due timestamptz;
    v_archive_version bigint;
begin
    -- A writer that holds the row is waited for here and seen below (RET-10, RET-11).
    perform
    from join_requests j
    where j.club_id = p_club and j.id = p_id
    for no key update;
    if not found then
        return 'gone';
    end if;
    v_now := lastcall_now();

    select d.activity_at, d.due_at into v_activity, v_due
    from join_request_due(p_club, array[p_id]) d;
    if v_due is null or v_due > v_now then
        update join_requests j
        set archive_due_at = v_due
        where j.club_id = p_club and j.id = p_id and j.archive_due_at is distinct from v_due;
        return 'not_due';
    end if;

    insert into retention as r (
        club_id, id, join_request_id, archived_at, archived_reason, archived_by_kind,
        archive_version, source_activity_at, created_at, updated_at
    )
    values (p_club, p_retention_id, p_id, v_now, 'idle', 'system', 1, v_activity, v_now, v_now)
    on conflict (club_id, join_request_id) do update
    set archived_at = excluded.archived_at,
        archived_reason = excluded.archived_reason,
        archived_by_kind = excluded.archived_by_kind,
        version = r.version + 1,
        archive_version = r.archive_version + 1,
        source_activity_at = excluded.source_activity_at,
        updated_at = excluded.updated_at
    returning r.archive_version into v_archive_version;

    update join_requests j
    set archive_due_at = null
    where j.club_id = p_club and j.id = p_id;

    insert into activity_log (
        club_id, id, actor_kind, actor_name, action, entity_type, entity_id, details, created_at
    )
    values (
        p_club, p_log_id, 'system', 'retention', 'retention.archived', 'join_request', p_id,
        jsonb_build_object('reason', 'idle', 'archiveVersion', v_archive_version), v_now
    );
    return 'archived';
end
$$;
