-- What a hot step asks, in a statement of its own after it took its locks, about whoever calls and what they hold. In
-- PL/pgSQL, because a session keeps the plan then; a function in SQL that cannot be inlined is planned anew by every
-- caller (0.05 to 0.1 ms each).

-- The key of this generation is the account's newest and was not revoked (WRK-08).
create or replace function key_is_current(p_account uuid, p_generation integer, p_now timestamptz) returns boolean
language plpgsql stable
as $$
begin
    return exists (
        select
          from accounts a
          join worker_keys k on k.account_id = a.id and k.generation = a.credential_generation
         where a.id = p_account
           and k.generation = p_generation
           and (k.revoked_at is null or k.revoked_at > p_now)
    );
end
$$;

-- Why this account may not work now, or 'none': fleet_switch, account_switch, account_state. A cooling account is
-- ready again once its time is over; nobody has to write that.
create or replace function account_obstacle(p_account uuid, p_now timestamptz) returns text
language plpgsql stable
as $$
begin
    return coalesce(
        (select case
                    when f.kill_switch then 'fleet_switch'
                    when a.kill_switch then 'account_switch'
                    when a.state = 'ready' then 'none'
                    when a.state = 'cooldown' and a.cooldown_until <= p_now then 'none'
                    else 'account_state'
                end
           from accounts a, fleet_settings f
          where a.id = p_account and f.id = 1),
        'account_state');
end
$$;

-- Why nothing may be done for this connection now, or 'none'. 'epoch': the work is of another epoch, or the
-- connection is gone or is served by another account. A null epoch is not compared. What stops the whole account
-- comes before what stops the connection, because it says nothing about the connection's work.
create or replace function connection_obstacle(
    p_club uuid, p_connection uuid, p_account uuid, p_epoch timestamptz, p_now timestamptz
) returns text
language plpgsql stable
as $$
begin
    return coalesce(
        (select case
                    when p_epoch is not null and c.epoch <> p_epoch then 'epoch'
                    when c.state in ('disconnecting', 'disconnected') then 'epoch'
                    when c.account_id <> p_account then 'epoch'
                    when a.obstacle <> 'none' then a.obstacle
                    when c.state not in ('active', 'degraded') then 'connection_state'
                    when c.frozen_at is not null then 'frozen'
                    when c.kill_switch then 'connection_switch'
                    else 'none'
                end
           from connections c, account_obstacle(p_account, p_now) as a (obstacle)
          where c.club_id = p_club and c.id = p_connection),
        'epoch');
end
$$;

-- The lease of exactly this worker and token is open and not over.
create or replace function lease_is_current(
    p_club uuid, p_connection uuid, p_account uuid, p_worker uuid, p_token bigint, p_now timestamptz
) returns boolean
language plpgsql stable
as $$
begin
    return exists (
        select
          from leases l
         where l.club_id = p_club
           and l.connection_id = p_connection
           and l.account_id = p_account
           and l.worker_id = p_worker
           and l.fencing_token = p_token
           and l.released_at is null
           and l.expires_at > p_now
    );
end
$$;

create or replace function feature_is_on(p_club uuid, p_connection uuid, p_feature text) returns boolean
language plpgsql stable
as $$
begin
    return exists (
        select from connections c where c.club_id = p_club and c.id = p_connection and p_feature = any (c.features)
    );
end
$$;
