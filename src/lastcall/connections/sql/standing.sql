-- What a hot step asks, in a statement of its own after it took its locks, about whoever calls and what they hold.
-- The rules are the functions that answer rows: in SQL and stable, so that a statement which asks for several of them
-- is planned as one, and a session keeps that plan. The others ask a single rule, in PL/pgSQL, because a function in
-- SQL that cannot be inlined is planned anew by every caller (0.05 to 0.1 ms each).

drop function if exists feature_is_on(uuid, uuid, text); -- connection_standing answers it

-- A row when the key of this generation is the account's newest and was not revoked (WRK-08).
create or replace function current_key(p_account uuid, p_generation integer, p_now timestamptz)
returns table (generation integer)
language sql stable
as $$
    select k.generation
      from accounts a
      join worker_keys k on k.account_id = a.id and k.generation = a.credential_generation
     where a.id = p_account
       and k.generation = p_generation
       and (k.revoked_at is null or k.revoked_at > p_now)
$$;

create or replace function key_is_current(p_account uuid, p_generation integer, p_now timestamptz) returns boolean
language plpgsql stable
as $$
begin
    return exists (select from current_key(p_account, p_generation, p_now));
end
$$;

-- The lease, when exactly this worker and token hold it and it is open and not over.
create or replace function current_lease(
    p_club uuid, p_connection uuid, p_account uuid, p_worker uuid, p_token bigint, p_now timestamptz
)
returns table (expires_at timestamptz)
language sql stable
as $$
    select l.expires_at
      from leases l
     where l.club_id = p_club
       and l.connection_id = p_connection
       and l.account_id = p_account
       and l.worker_id = p_worker
       and l.fencing_token = p_token
       and l.released_at is null
       and l.expires_at > p_now
$$;

create or replace function lease_is_current(
    p_club uuid, p_connection uuid, p_account uuid, p_worker uuid, p_token bigint, p_now timestamptz
) returns boolean
language plpgsql stable
as $$
begin
    return exists (select from current_lease(p_club, p_connection, p_account, p_worker, p_token, p_now));
end
$$;

-- Why an account may not work now, or 'none': fleet_switch, account_switch, account_state. A cooling account is
-- ready again once its time is over; nobody has to write that.
create or replace function account_obstacle_of(
    p_fleet_switch boolean, p_switch boolean, p_state text, p_cooldown_until timestamptz, p_now timestamptz
) returns text
language sql immutable
as $$
    select case
               when p_fleet_switch then 'fleet_switch'
               when p_switch then 'account_switch'
               when p_state = 'ready' then 'none'
               when p_state = 'cooldown' and p_cooldown_until <= p_now then 'none'
               else 'account_state'
           end
$$;

create or replace function account_obstacle(p_account uuid, p_now timestamptz) returns text
language plpgsql stable
as $$
begin
    return coalesce(
        (select account_obstacle_of(f.kill_switch, a.kill_switch, a.state, a.cooldown_until, p_now)
           from accounts a, fleet_settings f
          where a.id = p_account and f.id = 1),
        'account_state');
end
$$;

-- The states in which operations are sent.
create or replace function usable_states() returns text[]
language sql immutable
as $$ select array['active', 'degraded'] $$;

-- The states in which a collector has something to do at VRChat, if only to look, to join or to leave.
create or replace function passable_states() returns text[]
language sql immutable
as $$
    select usable_states() || array['connecting', 'awaiting_approval', 'awaiting_invite', 'disconnecting']
$$;

-- Why nothing of what needs one of p_states may be done for this connection now, or 'none'; with what is switched on for
-- it, and who it is to VRChat. 'epoch': the work is of another epoch, or the connection is over or is served by another
-- account; for all that is not the leaving itself, one that is being left is over. A null epoch is not compared. What
-- stops the whole account comes before what stops the connection, because it says nothing about the connection's work.
-- No row: there is no such connection.
create or replace function standing_within(
    p_club uuid, p_connection uuid, p_account uuid, p_epoch timestamptz, p_states text[], p_now timestamptz
)
returns table (obstacle text, features text[], group_id text, vrchat_user_id text)
language sql stable
as $$
    select case
               when p_epoch is not null and c.epoch <> p_epoch then 'epoch'
               when c.state in ('disconnecting', 'disconnected') and not c.state = any (p_states) then 'epoch'
               when c.account_id <> p_account then 'epoch'
               when s.account <> 'none' then s.account
               when not c.state = any (p_states) then 'connection_state'
               when c.frozen_at is not null then 'frozen'
               when c.kill_switch then 'connection_switch'
               else 'none'
           end,
           c.features, c.group_id, a.vrchat_user_id
      from connections c
      join accounts a on a.id = p_account
      join fleet_settings f on f.id = 1
     cross join lateral (
           select account_obstacle_of(f.kill_switch, a.kill_switch, a.state, a.cooldown_until, p_now) as account) as s
     where c.club_id = p_club and c.id = p_connection
$$;

-- The same for what is sent or read for the club.
create or replace function connection_standing(
    p_club uuid, p_connection uuid, p_account uuid, p_epoch timestamptz, p_now timestamptz
)
returns table (obstacle text, features text[], group_id text, vrchat_user_id text)
language sql stable
as $$
    select s.obstacle, s.features, s.group_id, s.vrchat_user_id
      from standing_within(p_club, p_connection, p_account, p_epoch, usable_states(), p_now) as s
$$;

create or replace function connection_obstacle(
    p_club uuid, p_connection uuid, p_account uuid, p_epoch timestamptz, p_now timestamptz
) returns text
language plpgsql stable
as $$
begin
    return coalesce(
        (select s.obstacle from connection_standing(p_club, p_connection, p_account, p_epoch, p_now) as s), 'epoch');
end
$$;

-- Why no collector may do anything at all there, or 'none': leases and allowances ask this.
create or replace function pass_obstacle(
    p_club uuid, p_connection uuid, p_account uuid, p_epoch timestamptz, p_now timestamptz
) returns text
language plpgsql stable
as $$
begin
    return coalesce(
        (select s.obstacle
           from standing_within(p_club, p_connection, p_account, p_epoch, passable_states(), p_now) as s),
        'epoch');
end
$$;
