-- Hands the next operation of one connection to the worker that holds its lease (WRK-01).
--
-- Outcomes: claimed, nothing, stale_key, stale_lease, club_inactive, or an obstacle of the connection. Lanes
-- are probed one by one: urgent single moderation, single, batch; with p_any_lane the lane whose first row
-- has waited longest comes first, so that no lane starves. Each probe walks ready rows only: a row that is
-- not late was due, and so ready, within the grace (WRK-19). Nothing waits for a lock here, and authorize
-- judges everything again.
create or replace function claim_operation(
    p_account uuid, p_generation integer, p_worker uuid, p_journal uuid, p_club uuid, p_connection uuid,
    p_epoch timestamptz, p_token bigint, p_any_lane boolean
)
returns table (
    outcome text, judged_at timestamptz, operation_id uuid, nonce uuid, kind text, payload text,
    due_at timestamptz, execute_before timestamptz, expires_at timestamptz
)
language plpgsql volatile
as $$
declare
    v_now constant timestamptz := lastcall_now();
    v_earliest constant timestamptz := v_now - operation_grace();
    v_lanes integer[] := array[1, 2, 3];
    v_lane integer;
    v_id uuid;
begin
    judged_at := v_now;
    outcome := claim_obstacle(p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, v_now);
    if outcome <> 'none' then
        return next;
        return;
    end if;
    outcome := 'nothing';
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
    foreach v_lane in array v_lanes loop
        select o.id into v_id
          from operations o
         where o.club_id = p_club and o.connection_id = p_connection and o.epoch = p_epoch
           and o.lane = v_lane and o.state = 'pending'
           and o.ready_at between v_earliest and v_now and o.due_at >= v_earliest
         order by o.ready_at, o.id
         limit 1
           for no key update skip locked;
        exit when found;
    end loop;
    if v_id is not null then
        -- WRK-17: a claim lives four minutes and never past the lease.
        update operations o
           set state = 'claimed', code = null,
               claim_nonce = gen_random_uuid(), claim_account_id = p_account, claim_worker_id = p_worker,
               claim_journal_id = p_journal, claim_fencing_token = p_token, claim_generation = p_generation,
               claim_expires_at = least(
                   v_now + claim_life(),
                   (select l.expires_at from leases l where l.club_id = p_club and l.connection_id = p_connection))
         where o.club_id = p_club and o.id = v_id and o.state = 'pending'
        returning 'claimed', o.id, o.claim_nonce, o.kind, o.payload::text, o.due_at, o.due_at + operation_grace(),
                  o.claim_expires_at
          into outcome, operation_id, nonce, kind, payload, due_at, execute_before, expires_at;
    end if;
    return next;
end
$$;

-- Why this worker may claim nothing of this connection now, or 'none'.
create or replace function claim_obstacle(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_now timestamptz
) returns text
language plpgsql stable
as $$
begin
    if not key_is_current(p_account, p_generation, p_now) then
        return 'stale_key';
    end if;
    if not lease_is_current(p_club, p_connection, p_account, p_worker, p_token, p_now) then
        return 'stale_lease';
    end if;
    if not club_is_open(p_club) then
        return 'club_inactive';
    end if;
    return connection_obstacle(p_club, p_connection, p_account, p_epoch, p_now);
end
$$;

-- A paused club goes on with what was reviewed; an archived one sends nothing.
create or replace function club_is_open(p_club uuid) returns boolean
language plpgsql stable
as $$
begin
    return exists (select from clubs c where c.id = p_club and c.state in ('active', 'paused'));
end
$$;
