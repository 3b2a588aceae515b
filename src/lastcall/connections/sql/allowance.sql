-- The allowance of provider requests: calendar minutes, and never more than the limit in any 60 seconds. A
-- reservation is its own short transaction; its locks are taken in the order fleet, account, connection and never
-- inside another lock.

drop function if exists reserve_allowance(uuid, uuid, uuid, integer);
drop function if exists worker_allowance(uuid, integer, uuid, uuid, uuid, timestamptz, bigint, integer);

-- A window's first use starts at a moment of its own, so that nothing beats on the clock's minute: each account
-- opens somewhere in the first ten seconds, elsewhere in every minute, and everybody can tell where beforehand.
create or replace function allowance_opening(p_account uuid, p_window timestamptz) returns timestamptz
language sql immutable
as $$
    select p_window + interval '1 ms' * ((h % 10000 + 10000) % 10000)::integer
      from hashtextextended(p_account::text, extract(epoch from p_window)::bigint) as h
$$;

-- The first moment from p_moment on at which the account's window grants anything. Its last five seconds grant
-- nothing: what they granted could not be used before the window is over.
create or replace function allowance_next_moment(p_account uuid, p_moment timestamptz) returns timestamptz
language sql immutable
as $$
    select case
               when p_moment >= w + interval '55 seconds' then allowance_opening(p_account, w + interval '1 minute')
               else greatest(p_moment, allowance_opening(p_account, w))
           end
      from date_trunc('minute', p_moment, 'UTC') as w
$$;

-- From when on this scope leaves room for p_amount under p_limit; p_now when it does already.
create or replace function allowance_free_at(p_use allowances, p_limit integer, p_amount integer, p_now timestamptz)
returns timestamptz
language plpgsql immutable
as $$
declare
    v_window timestamptz := date_trunc('minute', p_now, 'UTC');
    v_free_at timestamptz := p_now;
    v_slot timestamptz;
begin
    if p_use.window_start = v_window and p_use.granted + p_amount > p_limit then
        v_free_at := v_window + interval '1 minute';
    end if;
    -- The slots of the last 60 seconds leave one by one, oldest first; the sum over a slot and all later ones is what
    -- stands until that slot has left.
    select max(s.until) into v_slot
      from (select u.until, sum(u.granted) over (order by u.until desc) as standing
              from unnest(p_use.recent_until, p_use.recent_granted) as u (until, granted)
             where u.until > p_now - interval '60 seconds') as s
     where s.standing + p_amount > p_limit;
    return greatest(v_free_at, v_slot + interval '60 seconds');
end
$$;

-- Writes a grant into a scope.
create or replace function allowance_charge(p_scope text, p_amount integer, p_now timestamptz) returns void
language sql volatile
as $$
    update allowances a
       set window_start = date_trunc('minute', p_now, 'UTC'),
           granted = p_amount + case when a.window_start = date_trunc('minute', p_now, 'UTC') then a.granted else 0 end,
           (recent_until, recent_granted) = (
               select array_agg(s.until order by s.until), array_agg(s.granted order by s.until)
                 from (select u.until, sum(u.granted)::integer as granted
                         from (select * from unnest(a.recent_until, a.recent_granted)
                               union all
                               select date_bin('100 ms', p_now, 'epoch') + interval '100 ms', p_amount
                              ) as u (until, granted)
                        where u.until > p_now - interval '60 seconds'
                        group by u.until) as s)
     where a.scope = p_scope
$$;

-- How many writes the account may make on p_day (of UTC). An account that VRChat knows for less than a week writes 50
-- a day, for less than a month 200, and never more than its operator allows. These are our own figures, for VRChat names
-- none. One of unknown age counts as grown.
create or replace function writes_allowed(p_joined_on date, p_writes_per_day integer, p_day date) returns integer
language sql immutable
as $$
    select least(p_writes_per_day,
                 case when p_day - p_joined_on < 7 then 50
                      when p_day - p_joined_on < 30 then 200
                      else p_writes_per_day end)
$$;

-- How many of them are reserved already.
create or replace function writes_reserved(p_account uuid, p_day date) returns integer
language sql stable
as $$
    select coalesce(
        (select a.writes from allowances a where a.scope = 'account:' || p_account and a.writes_day = p_day), 0)
$$;

-- When to come back after p_day is used up: with the next day, each account at a moment of its own in the first ten
-- minutes, and within a day at most.
create or replace function next_writes_at(p_account uuid, p_day date, p_now timestamptz) returns timestamptz
language sql immutable
as $$
    select least(p_now + interval '1 day',
                 (p_day + 1)::timestamp at time zone 'UTC' + interval '1 ms' * ((h % 600000 + 600000) % 600000)::integer)
      from hashtextextended(p_account::text, p_day - date '2000-01-01') as h
$$;

-- Reserves p_amount requests for the account alone (p_connection null: the identity read) or for one of its
-- connections; with p_is_write one of them is a write, which counts for its day from now on, whatever becomes of it
-- (BUD-04). Outcomes: granted, denied or write_cap (retry_at says when to ask again), too_low (no wait will help), or
-- an obstacle of account or connection. ``least_limit`` is the lowest limit that was charged.
create or replace function reserve_allowance(
    p_account uuid, p_club uuid, p_connection uuid, p_amount integer, p_is_write boolean
)
returns table (outcome text, least_limit integer, judged_at timestamptz, window_ends_at timestamptz, retry_at timestamptz)
language plpgsql volatile
as $$
declare
    v_scopes text[] := array['fleet', 'account:' || p_account];
    v_limits integer[];
    v_scope text;
    v_use allowances;
    v_day date;
begin
    if p_connection is not null then
        v_scopes := v_scopes || ('connection:' || p_connection);
    end if;
    foreach v_scope in array v_scopes loop
        insert into allowances (scope, window_start, granted) values (v_scope, '-infinity', 0)
            on conflict (scope) do nothing;
        perform from allowances a where a.scope = v_scope for no key update;
    end loop;

    judged_at := lastcall_now();
    outcome := case
        when p_connection is null then account_obstacle(p_account, judged_at)
        else pass_obstacle(p_club, p_connection, p_account, null, judged_at)
    end;
    if outcome <> 'none' then
        return next;
        return;
    end if;

    v_limits := array[
        (select f.requests_per_minute from fleet_settings f where f.id = 1),
        (select a.requests_per_minute from accounts a where a.id = p_account),
        (select c.requests_per_minute from connections c where c.club_id = p_club and c.id = p_connection)];
    least_limit := least(v_limits[1], v_limits[2], v_limits[3]);
    if p_amount > least_limit then
        outcome := 'too_low';
        return next;
        return;
    end if;

    v_day := (judged_at at time zone 'UTC')::date;
    if p_is_write and writes_reserved(p_account, v_day) >= (
        select writes_allowed(a.joined_on, a.writes_per_day, v_day) from accounts a where a.id = p_account
    ) then
        outcome := 'write_cap';
        retry_at := next_writes_at(p_account, v_day, judged_at);
        return next;
        return;
    end if;

    retry_at := judged_at;
    for i in 1 .. cardinality(v_scopes) loop
        select * into v_use from allowances a where a.scope = v_scopes[i];
        retry_at := greatest(retry_at, allowance_free_at(v_use, v_limits[i], p_amount, judged_at));
    end loop;
    retry_at := allowance_next_moment(p_account, retry_at);
    if retry_at > judged_at then
        outcome := 'denied';
        return next;
        return;
    end if;

    foreach v_scope in array v_scopes loop
        perform allowance_charge(v_scope, p_amount, judged_at);
    end loop;
    if p_is_write then
        update allowances a
           set writes_day = v_day, writes = case when a.writes_day = v_day then a.writes else 0 end + 1
         where a.scope = 'account:' || p_account;
    end if;
    outcome := 'granted';
    retry_at := null;
    window_ends_at := date_trunc('minute', judged_at, 'UTC') + interval '1 minute';
    return next;
end
$$;

-- The worker's call: its key and, for a connection, its lease first. They are judged before the reservation and not
-- under its locks: a reservation authorizes nothing, authorize judges both again.
create or replace function worker_allowance(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_amount integer, p_is_write boolean
)
returns table (outcome text, least_limit integer, judged_at timestamptz, window_ends_at timestamptz, retry_at timestamptz)
language plpgsql volatile
as $$
begin
    judged_at := lastcall_now();
    outcome := case
        when not key_is_current(p_account, p_generation, judged_at) then 'stale_key'
        when p_connection is null then null
        when not lease_is_current(p_club, p_connection, p_account, p_worker, p_token, judged_at) then 'stale_lease'
        when not exists (
            select from connections c where c.club_id = p_club and c.id = p_connection and c.epoch = p_epoch
        ) then 'epoch'
    end;
    if outcome is not null then
        return next;
    else
        return query select * from reserve_allowance(p_account, p_club, p_connection, p_amount, p_is_write);
    end if;
end
$$;
