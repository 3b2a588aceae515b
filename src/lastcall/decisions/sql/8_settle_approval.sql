-- As settle_join_request, for approvals; and the agent that asked is told of the archive, once an archive (RET-18).
-- agent: whom to wake for it.
create or replace function settle_approval(
    p_club uuid, p_id uuid, p_log_id uuid, out outcome text, out agent uuid
)
language plpgsql set enable_seqscan to off as $$
declare
    v_now timestamptz;
    v_activity timestamptz;
    v_due timestamptz;
    v_archive_version bigint;
begin
    -- A writer that holds the row is waited for here and seen below (RET-10, RET-11).
    perform
    from approvals a
    where a.club_id = p_club and a.id = p_id
    for no key update;
    if not found then
        outcome := 'gone';
        return;
    end if;
    v_now := lastcall_now();

    select d.activity_at, d.due_at into v_activity, v_due
    from approval_due(p_club, array[p_id]) d;
    if v_due is null or v_due > v_now then
        update approvals a
        set archive_due_at = v_due
        where a.club_id = p_club and a.id = p_id and a.archive_due_at is distinct from v_due;
        outcome := 'not_due';
        return;
    end if;

    v_archive_version := archive_idle(p_club, p_id, 'approval', v_activity, v_now, p_log_id);
    update approvals a
    set archive_due_at = null, is_archived = true
    where a.club_id = p_club and a.id = p_id
    returning a.requested_by_agent_id into agent;
    if agent is not null then
        -- The archive's own number makes the message this archive's. The log entry's id serves a second time.
        perform deliver_to_agent(
            p_club, p_log_id, agent, 'approval.archived', p_id, p_id || ':' || v_archive_version,
            jsonb_build_object('archiveVersion', v_archive_version)
        );
    end if;
    outcome := 'archived';
end
$$;
