-- Records what became of a submission (WRK-04, WRK-05). Judged by the claim's own fields and the account's
-- current key alone: neither lease nor epoch nor switch nor expiry stands in its way (WRK-06), and it lets
-- nothing out (WRK-09).
--
-- Outcomes: recorded, already_settled (with the state and code that stand), claim_unavailable, stale_key. A
-- result that comes after the row was recorded as unknown is kept beside it; the row stays. ``fanout_at``: since when
-- something of the club waits to be gone through.
drop function if exists complete_operation(
    uuid, integer, uuid, uuid, uuid, timestamptz, bigint, uuid, uuid, text, text, jsonb, uuid);

create or replace function complete_operation(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_operation uuid, p_nonce uuid, p_state text, p_code text, p_result jsonb, p_evidence_id uuid
)
returns table (
    outcome text, judged_at timestamptz, state text, code text, is_kept_as_evidence boolean, fanout_at timestamptz
)
language plpgsql volatile
as $$
declare
    v_row operations;
    v_kind text;
begin
    if not (is_commit_durable() and lock_fleet_and_account_shared(p_account)) then
        raise exception 'the commit cannot be made durable, or the gates cannot be held';
    end if;
    perform from operations o where o.club_id = p_club and o.id = p_operation for no key update;

    judged_at := lastcall_now();
    is_kept_as_evidence := false;
    update operations o
       set state = p_state, code = p_code, result = p_result, completed_at = judged_at
     where o.club_id = p_club and o.id = p_operation and o.state is not distinct from 'submitted'
       and is_claim_of(o, p_account, p_worker, p_connection, p_epoch, p_token, p_nonce)
       and exists (select from current_key(p_account, p_generation, judged_at))
    returning 'recorded', o.state, o.code, o.kind
      into outcome, state, code, v_kind;
    if found then
        -- Nothing waits for a success but what depends on a creation.
        if state <> 'succeeded' or v_kind = 'create_instance' then
            perform operation_ended(p_club, array[p_operation], judged_at);
            fanout_at := first_fanout(p_club);
        end if;
        return next;
        return;
    end if;

    select * into v_row from operations o where o.club_id = p_club and o.id = p_operation;
    if not key_is_current(p_account, p_generation, judged_at) then
        outcome := 'stale_key';
    elsif not is_claim_of(v_row, p_account, p_worker, p_connection, p_epoch, p_token, p_nonce)
          or v_row.submitted_at is null
    then
        outcome := 'claim_unavailable';
    else
        outcome := 'already_settled';
        state := v_row.state;
        code := v_row.code;
        fanout_at := first_fanout(p_club);
        if v_row.state = 'indeterminate' and p_state <> 'indeterminate' then
            insert into late_results (club_id, id, operation_id, outcome, code, result, reported_at)
            values (p_club, p_evidence_id, p_operation, p_state, p_code, p_result, judged_at)
                on conflict do nothing;
            is_kept_as_evidence := found;
        end if;
    end if;
    return next;
end
$$;
