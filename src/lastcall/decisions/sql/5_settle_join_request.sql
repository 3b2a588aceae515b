drop function if exists settle_join_request (uuid, uuid, uuid, uuid);
drop function if exists settle_join_request (uuid, uuid, uuid);

-- One row of the sweep, in its own transaction: lock, judge in new statements by the facts, archive or refresh.
-- outcome: archived, not_due (the row was refreshed, so it is not found again) or gone; agent: null, because no agent
-- stands behind a join request (RET-18).
-- Never by scan: a plan made while retention was empty would go on scanning it as it fills (270 rows a second and
-- falling, against 700 and steady, in one run of 4 500 rows).
create or replace function settle_join_request(
    p_club uuid, p_id uuid, p_log_id uuid, out outcome text, out agent uuid
)
language plpgsql set enable_seqscan to off as $$
declare
    v_now timestamptz;
    v_activity timestamptz;
    v_due timestamptz;
begin
    -- A writer that holds the row is waited for here and seen below (RET-10, RET-11).
    perform
    from join_requests j
    where j.club_id = p_club and j.id = p_id
    for no key update;
    if not found then
        outcome := 'gone';
        return;
    end if;
    v_now := lastcall_now();

    select d.activity_at, d.due_at into v_activity, v_due
    from join_request_due(p_club, array[p_id]) d;
    if v_due is null or v_due > v_now then
        update join_requests j
        set archive_due_at = v_due
        where j.club_id = p_club and j.id = p_id and j.archive_due_at is distinct from v_due;
        outcome := 'not_due';
        return;
    end if;

    perform archive_idle(p_club, p_id, 'join_request', v_activity, v_now, p_log_id);
    update join_requests j
    set archive_due_at = null, is_archived = true
    where j.club_id = p_club and j.id = p_id;
    outcome := 'archived';
end
$$;
