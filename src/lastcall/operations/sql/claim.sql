-- Hands the next operation of one connection to the worker that holds its lease (WRK-01).
--
-- Outcomes: claimed, nothing, more, stale_key, stale_lease, club_inactive, or an obstacle of the connection. Lanes
-- are probed one by one: urgent single moderation, single, batch; with p_any_lane the lane whose first row
-- has waited longest comes first, so that no lane starves. Each probe walks ready rows only: a row that is
-- not late was due, and so ready, within the grace (WRK-19). Nothing waits for a lock here, and authorize
-- judges everything again. Nor does it wait for the disk: a claim that a crash forgets is none any more when
-- authorize asks for it.
--
-- What follows an event or depends on something is judged by it in a new statement, before anybody sees the claim
-- (EVT-09): a bad one is settled or gets its new due time, and the next is taken. After a hundred of them the answer is
-- more. Nothing is held meanwhile: authorize locks the event and judges again. ``has_settled``: some row changed
-- beside the claim; ``moved_due_at`` and ``moved_ready_at`` are the first of what got a new time, ``fanout_at`` says
-- since when something of the club waits to be gone through.

drop function if exists claim_operation(
    uuid, integer, uuid, uuid, uuid, uuid, timestamptz, bigint, boolean);

create or replace function claim_operation(
    p_account uuid, p_generation integer, p_worker uuid, p_journal uuid, p_club uuid, p_connection uuid,
    p_epoch timestamptz, p_token bigint, p_any_lane boolean
)
returns table (
    outcome text, judged_at timestamptz, operation_id uuid, nonce uuid, kind text, payload text,
    due_at timestamptz, execute_before timestamptz, expires_at timestamptz, has_settled boolean,
    moved_due_at timestamptz, moved_ready_at timestamptz, fanout_at timestamptz
)
language plpgsql volatile
as $$
declare
    v_synchronous_commit constant text := set_config('synchronous_commit', 'off', true); -- of this transaction only
    v_now constant timestamptz := lastcall_now();
    v_earliest constant timestamptz := v_now - operation_grace();
    v_lease_until timestamptz;
    v_lanes integer[] := array[1, 2, 3];
    v_is_linked boolean;
    v_verdict text;
    v_due_at timestamptz;
begin
    judged_at := v_now;
    select s.obstacle, s.lease_until into outcome, v_lease_until
      from claim_standing(p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, v_now) as s;
    if outcome <> 'none' then
        return next;
        return;
    end if;
    if p_any_lane then
        select coalesce(array_agg(first.lane order by first.ready_at, first.lane), '{}')
          into v_lanes
          from (values (1), (2), (3)) as l (lane)
         cross join lateral (
               select o.lane, o.ready_at
                 from operations o
                where o.club_id = p_club and o.connection_id = p_connection and o.epoch = p_epoch
                  and o.lane = l.lane and o.state = 'pending'
                  and o.ready_at between v_earliest and v_now and o.due_at >= v_earliest
                order by o.ready_at, o.id
                limit 1) as first;
    end if;
    -- The lanes are walked in that order, and only until one has a row. WRK-17: a claim lives four minutes and
    -- never past the lease.
    for v_attempt in 1 .. 100 loop
        update operations o
           set state = 'claimed', code = null,
               claim_nonce = gen_random_uuid(), claim_account_id = p_account, claim_worker_id = p_worker,
               claim_journal_id = p_journal, claim_fencing_token = p_token, claim_generation = p_generation,
               claim_expires_at = least(v_now + claim_life(), v_lease_until)
         where o.club_id = p_club and o.state is not distinct from 'pending'
           and o.id = (
               select first.id
                 from unnest(v_lanes) as l (lane)
                cross join lateral (
                      select r.id
                        from operations r
                       where r.club_id = p_club and r.connection_id = p_connection and r.epoch = p_epoch
                         and r.lane = l.lane and r.state = 'pending'
                         and r.ready_at between v_earliest and v_now and r.due_at >= v_earliest
                       order by r.ready_at, r.id
                       limit 1
                         for no key update skip locked) as first
                limit 1)
        returning 'claimed', o.id, o.claim_nonce, o.kind, o.payload::text, o.due_at, o.due_at + operation_grace(),
                  o.claim_expires_at, o.event_id is not null or is_dependent(o.kind)
          into outcome, operation_id, nonce, kind, payload, due_at, execute_before, expires_at, v_is_linked;
        exit when v_is_linked is not true;

        select v.code, v.due_at into v_verdict, v_due_at from operation_verdict(p_club, operation_id) as v;
        if v_verdict is null then
            if is_dependent(kind) then
                kind := 'invite_to_instance';
                payload := destination_payload(p_club, operation_id)::text;
            end if;
            exit;
        end if;
        outcome := 'more';
        has_settled := true;
        moved_ready_at := least(
            moved_ready_at, settle_verdict(p_club, operation_id, v_verdict, v_due_at, v_now));
        if v_verdict = 'event_rescheduled' then
            moved_due_at := least(moved_due_at, v_due_at);
        end if;
    end loop;
    outcome := coalesce(outcome, 'nothing');
    if has_settled then
        fanout_at := first_fanout(p_club);
    end if;
    return next;
end
$$;
