-- How a claim ends before anything was submitted: a definite failure, or one that passes.

-- Outcomes: recorded, or why the claim is not this worker's any more (the row is then left alone). ``fanout_at``: since
-- when something of the club waits to be gone through.

drop function if exists reject_operation(
    uuid, integer, uuid, uuid, uuid, timestamptz, bigint, uuid, uuid, text);
drop function if exists defer_operation(
    uuid, integer, uuid, uuid, uuid, timestamptz, bigint, uuid, uuid, text, double precision);

create or replace function reject_operation(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_operation uuid, p_nonce uuid, p_code text
)
returns table (outcome text, judged_at timestamptz, state text, code text, fanout_at timestamptz)
language plpgsql volatile
as $$
declare
    v_row operations;
begin
    perform lock_fleet_and_account_shared(p_account);
    perform from connection_gates g where g.club_id = p_club and g.connection_id = p_connection for share;
    select * into v_row from operations o where o.club_id = p_club and o.id = p_operation for no key update;

    judged_at := lastcall_now();
    outcome := preflight_refusal(
        v_row, p_account, p_generation, p_worker, p_connection, p_epoch, p_token, p_nonce, judged_at);
    if outcome is null then
        outcome := 'recorded';
        state := 'rejected';
        code := p_code;
        perform settle_unsent(p_club, p_operation, state, code, judged_at);
        fanout_at := first_fanout(p_club);
    end if;
    return next;
end
$$;

-- Outcomes: recorded, invalid_delay, or why the claim is not this worker's any more. p_delay is in seconds;
-- null means that the provider named none. It is compared in full with what is left of the grace before any
-- time is derived from it, and never shortened (RCV-09, WRK-18). An event that moved is looked at first, because the
-- grace is that of the due time as it is now (EVT-09).
create or replace function defer_operation(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_operation uuid, p_nonce uuid, p_code text, p_delay double precision
)
returns table (
    outcome text, judged_at timestamptz, state text, code text, due_at timestamptz, ready_at timestamptz,
    fanout_at timestamptz
)
language plpgsql volatile
as $$
declare
    v_row operations;
    v_verdict text;
    v_microseconds numeric;
begin
    perform lock_fleet_and_account_shared(p_account);
    perform from connection_gates g where g.club_id = p_club and g.connection_id = p_connection for share;
    perform lock_events_of(array[p_club], array[p_operation]);
    select * into v_row from operations o where o.club_id = p_club and o.id = p_operation for no key update;

    judged_at := lastcall_now();
    outcome := case
        when p_delay < 0 or p_delay in ('infinity', 'nan') then 'invalid_delay'
        else preflight_refusal(
            v_row, p_account, p_generation, p_worker, p_connection, p_epoch, p_token, p_nonce, judged_at)
    end;
    if outcome is not null then
        return next;
        return;
    end if;

    outcome := 'recorded';
    select v.code, v.due_at into v_verdict, due_at from event_verdict(p_club, p_operation) as v;
    v_microseconds := ceil(greatest(coalesce(p_delay::numeric, 60), 1) * 1000000);
    if v_verdict <> 'event_rescheduled' then
        state := refused_state(v_verdict);
        code := v_verdict;
    elsif v_row.preflight_failures >= transient_retries() then
        state := 'rejected';
        code := 'preflight_retries_exhausted';
    elsif v_microseconds > extract(epoch from (due_at + operation_grace() - judged_at)) * 1000000 then
        state := 'missed';
        code := 'late_window_elapsed';
    else
        state := 'pending';
        code := p_code;
        update operations o
           set preflight_failures = o.preflight_failures + 1,
               retry_at = judged_at + v_microseconds * interval '1 microsecond',
               ready_at = judged_at + v_microseconds * interval '1 microsecond'
         where o.club_id = p_club and o.id = p_operation and o.state = 'claimed';
        ready_at := judged_at + v_microseconds * interval '1 microsecond';
    end if;
    if v_verdict = 'event_rescheduled' then
        ready_at := move_operation(p_club, p_operation, due_at);
    end if;
    perform settle_unsent(p_club, p_operation, state, code, judged_at);
    fanout_at := first_fanout(p_club);
    return next;
end
$$;

-- Reject and defer stay as shut as authorize where connection or account may not work (WRK-07).
create or replace function preflight_refusal(
    p_row operations, p_account uuid, p_generation integer, p_worker uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_nonce uuid, p_now timestamptz
) returns text
language plpgsql stable
as $$
declare
    v_refusal constant text := (
        select c.refusal
          from claim_refusal(
               is_held_by(p_row, p_account, p_generation, p_worker, p_connection, p_epoch, p_token, p_nonce, p_now),
               p_account, p_generation, p_worker, p_row.club_id, p_connection, p_token, p_now) as c);
    v_obstacle text;
begin
    if v_refusal is not null then
        return v_refusal;
    end if;
    v_obstacle := connection_obstacle(p_row.club_id, p_connection, p_account, p_epoch, p_now);
    if v_obstacle = 'none' then
        return null;
    end if;
    return case
        when v_obstacle in ('fleet_switch', 'account_switch', 'account_state') then 'collector_disabled'
        else 'claim_unavailable'
    end;
end
$$;
