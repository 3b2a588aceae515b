-- The last word before the one write (WRK-03). Locks first, in the house's order: the gates of fleet and
-- account, of the club, of the connection, the events that govern the row, then the row. Only then, in new statements and
-- by a fresh now, everything is judged: a statement that waited for a lock still sees all other rows as they were before
-- the wait. What follows no event and depends on nothing is locked in one statement; the rest comes after it in vain.
--
-- Outcomes: authorized, or a refusal's code; ``state`` is what became of the row, null when it is not the
-- caller's; ``fanout_at``: since when something of the club waits to be gone through.

drop function if exists authorize_operation(
    uuid, integer, uuid, uuid, uuid, timestamptz, bigint, uuid, uuid, text, text, text, text[], boolean, jsonb, interval);

create or replace function authorize_operation(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_operation uuid, p_nonce uuid, p_kind text, p_permission text, p_feature text,
    p_is_protective boolean, p_evidence jsonb, p_evidence_age interval, p_needs_friend boolean, p_friend text,
    p_is_friend boolean, p_friend_age interval
)
returns table (
    outcome text, judged_at timestamptz, state text, due_at timestamptz, ready_at timestamptz,
    expires_at timestamptz, execute_before timestamptz, fanout_at timestamptz
)
language plpgsql volatile
as $$
declare
    -- The age was true when the call arrived; what it waits for locks makes the evidence older, not younger.
    v_observed_at constant timestamptz := lastcall_now() - p_evidence_age;
    v_befriended_at constant timestamptz := lastcall_now() - p_friend_age;
    v_is_linked boolean;
    v_verdict text;
    v_due_at timestamptz;
    v_is_locked boolean;
    v_is_stored boolean := false;
    v_is_told boolean;
begin
    if not (is_commit_durable() and lock_fleet_and_account_shared(p_account)) then
        raise exception 'the commit cannot be made durable, or the gates cannot be held';
    end if;
    -- Locked in the order in which they are named at the end.
    perform
      from club_gates c
      join connection_gates n on n.club_id = c.club_id and n.connection_id = p_connection
      join operations o
             on o.club_id = c.club_id and o.id = p_operation and o.event_id is null
                and not is_dependent(o.kind)
     where c.club_id = p_club
       for share of c
       for share of n
       for no key update of o;
    v_is_linked := not found;
    v_is_locked := found or lock_linked(p_club, p_connection, p_operation);

    loop
        judged_at := lastcall_now();
        if v_is_linked then
            select v.code, v.due_at into v_verdict, v_due_at from operation_verdict(p_club, p_operation) as v;
        end if;
        select coalesce(
                   c.refusal,
                   case when not is_sent_as(o.kind, p_kind) then 'claim_unavailable' end,
                   v_verdict,
                   a.refusal,
                   case
                       when p_needs_friend
                            and not is_friendly(o.payload, p_friend, p_is_friend, v_befriended_at, judged_at)
                           then 'recipient_eligibility'
                   end),
               c.refusal is not null or not is_sent_as(o.kind, p_kind) or v_verdict is not null
               or is_evidence_of(a.body, a.observed_at, p_evidence, v_observed_at),
               o.due_at, o.ready_at
          into outcome, v_is_told, due_at, ready_at
          from operations o
         cross join lateral claim_refusal(
               is_held_by(o, p_account, p_generation, p_worker, p_connection, p_epoch, p_token, p_nonce, judged_at),
               p_account, p_generation, p_worker, p_club, p_connection, p_token, judged_at) as c
         cross join lateral authority(
               o.club_id, o.connection_id, o.epoch, o.actor_id, o.due_at, o.payload,
               p_account, p_permission, p_feature, o.grants, p_is_protective, judged_at) as a
         where o.club_id = p_club and o.id = p_operation and v_is_locked;
        if not found then
            outcome := case
                when key_is_current(p_account, p_generation, judged_at) then 'claim_unavailable'
                else 'stale_key'
            end;
            v_is_told := true;
        end if;
        exit when v_is_told or v_is_stored;
        -- This may wait for another authorization of the connection, and then all is judged again.
        perform store_own_member_evidence(
            p_club, p_connection, p_epoch, p_account, p_worker, p_evidence, v_observed_at);
        v_is_stored := true;
    end loop;
    if outcome in ('stale_key', 'claim_unavailable', 'stale_lease', 'collector_disabled') then
        return next;
        return;
    end if;

    if outcome is null then
        update operations o
           set state = 'submitted', submitted_at = judged_at, claim_expires_at = judged_at + submission_life()
         where o.club_id = p_club and o.id = p_operation and o.state is not distinct from 'claimed'
        returning 'authorized', o.state, o.claim_expires_at, o.due_at + operation_grace()
          into outcome, state, expires_at, execute_before;
        outcome := coalesce(outcome, 'claim_unavailable');
    else
        state := refused_state(outcome);
        ready_at := coalesce(settle_verdict(p_club, p_operation, outcome, v_due_at, judged_at), ready_at);
        if outcome = 'event_rescheduled' then
            due_at := v_due_at;
        elsif state <> 'pending' then
            fanout_at := first_fanout(p_club);
        end if;
    end if;
    return next;
end
$$;
