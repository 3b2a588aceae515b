drop function if exists release_lease(uuid, integer, uuid, uuid, uuid, bigint);

-- Leases with fencing tokens. A new lease shuts the connection's gate first, so an authorization that is under way
-- under the old token is over before the new one is given, and none begins under the old one after it.

-- Outcomes: leased, stale_key, unknown (no such connection of this account), held (another worker has it), or an
-- obstacle of the connection. The same worker may take its lease again; its older pass then loses.
create or replace function take_lease(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_life interval
)
returns table (
    outcome text, judged_at timestamptz, fencing_token bigint, expires_at timestamptz, epoch timestamptz, state text,
    group_id text, features text[], account_limit integer, least_limit integer
)
language plpgsql volatile
as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_obstacle text;
    v_connection connections;
begin
    perform lock_fleet_and_account_shared(p_account);
    perform from connection_gates g where g.club_id = p_club and g.connection_id = p_connection for no key update;

    v_now := lastcall_now();
    select * into v_connection from connections c
     where c.club_id = p_club and c.id = p_connection and c.account_id = p_account;
    v_obstacle := pass_obstacle(p_club, p_connection, p_account, null, v_now);
    outcome := case
        when not key_is_current(p_account, p_generation, v_now) then 'stale_key'
        when v_connection.id is null or v_connection.state = 'disconnected' then 'unknown'
        when v_obstacle <> 'none' then v_obstacle
        when exists (
            select from leases l
             where l.club_id = p_club and l.connection_id = p_connection
               and l.worker_id <> p_worker and l.released_at is null and l.expires_at > v_now
        ) then 'held'
        else 'leased'
    end;
    judged_at := v_now;
    if outcome <> 'leased' then
        return next;
        return;
    end if;

    perform raise_connection_gate(p_club, p_connection);
    -- The look that was to come is this pass's; what is there later than its beginning was asked for meanwhile.
    update connections c
       set lease_generation = c.lease_generation + 1, last_attempt_at = v_now,
           next_look_at = case when c.next_look_at > v_now then v_now else c.next_look_at end
     where c.club_id = p_club and c.id = p_connection
    returning c.* into v_connection;
    insert into leases as l
           (club_id, connection_id, account_id, worker_id, fencing_token, claimed_at, expires_at)
    values (p_club, p_connection, p_account, p_worker, v_connection.lease_generation, v_now, v_now + p_life)
        on conflict (club_id, connection_id) do update
       set account_id = excluded.account_id, worker_id = excluded.worker_id, fencing_token = excluded.fencing_token,
           claimed_at = excluded.claimed_at, expires_at = excluded.expires_at, released_at = null;

    fencing_token := v_connection.lease_generation;
    expires_at := v_now + p_life;
    epoch := v_connection.epoch;
    state := v_connection.state;
    group_id := v_connection.group_id;
    features := v_connection.features;
    select a.requests_per_minute, least(f.requests_per_minute, a.requests_per_minute, v_connection.requests_per_minute)
      into account_limit, least_limit
      from accounts a, fleet_settings f
     where a.id = p_account and f.id = 1;
    return next;
end
$$;

-- Outcomes: renewed, stale_key, stale_lease, or an obstacle. It takes no authority from anybody, so no gate moves.
create or replace function renew_lease(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_life interval
)
returns table (outcome text, judged_at timestamptz, expires_at timestamptz, account_limit integer, least_limit integer)
language plpgsql volatile
as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_obstacle text;
begin
    perform from leases l where l.club_id = p_club and l.connection_id = p_connection for no key update;

    v_now := lastcall_now();
    v_obstacle := pass_obstacle(p_club, p_connection, p_account, p_epoch, v_now);
    outcome := case
        when not key_is_current(p_account, p_generation, v_now) then 'stale_key'
        when not lease_is_current(p_club, p_connection, p_account, p_worker, p_token, v_now) then 'stale_lease'
        when v_obstacle <> 'none' then v_obstacle
        else 'renewed'
    end;
    judged_at := v_now;
    if outcome = 'renewed' then
        update leases l set expires_at = v_now + p_life where l.club_id = p_club and l.connection_id = p_connection;
        expires_at := v_now + p_life;
        select a.requests_per_minute, least(f.requests_per_minute, a.requests_per_minute, c.requests_per_minute)
          into account_limit, least_limit
          from accounts a, fleet_settings f, connections c
         where a.id = p_account and f.id = 1 and c.club_id = p_club and c.id = p_connection;
    end if;
    return next;
end
$$;

-- Ends a lease in good order, and says when the group is looked at next. Outcomes: released, stale_key, stale_lease.
-- p_phase is where in the minute a look that may be spread should lie, from 0 to 1; is_spread: it was used.
create or replace function release_lease(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_token bigint,
    p_phase double precision
)
returns table (outcome text, is_spread boolean)
language plpgsql volatile
as $$
declare
    v_now timestamptz;
    v_next record;
begin
    perform from connection_gates g where g.club_id = p_club and g.connection_id = p_connection for no key update;

    v_now := lastcall_now();
    outcome := case
        when not key_is_current(p_account, p_generation, v_now) then 'stale_key'
        when not lease_is_current(p_club, p_connection, p_account, p_worker, p_token, v_now) then 'stale_lease'
        else 'released'
    end;
    is_spread := false;
    if outcome = 'released' then
        perform raise_connection_gate(p_club, p_connection);
        select n.* into v_next
          from connections c
          join leases l on l.club_id = c.club_id and l.connection_id = c.id
         cross join lateral next_look(c, l.claimed_at, p_phase, v_now) as n
         where c.club_id = p_club and c.id = p_connection;
        update connections c
           set next_look_at = v_next.at
         where c.club_id = p_club and c.id = p_connection and c.next_look_at is distinct from v_next.at;
        update leases l set released_at = v_now where l.club_id = p_club and l.connection_id = p_connection;
        is_spread := v_next.is_spread;
    end if;
    return next;
end
$$;

-- Ends a lease that ran out; answers the account whose waiters may be offered the connection, or null when the lease
-- was renewed, released or taken anew meanwhile.
create or replace function end_expired_lease(p_club uuid, p_connection uuid) returns uuid
language plpgsql volatile
as $$
declare
    v_now timestamptz;
    v_account uuid;
begin
    perform from leases l where l.club_id = p_club and l.connection_id = p_connection for no key update;

    v_now := lastcall_now();
    update leases l set released_at = v_now
     where l.club_id = p_club and l.connection_id = p_connection
       and l.released_at is null and l.expires_at <= v_now
    returning l.account_id into v_account;
    return v_account;
end
$$;
