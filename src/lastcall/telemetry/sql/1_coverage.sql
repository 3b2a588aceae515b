-- Coverage windows. Whoever calls these holds the connection's lease row or has shut its gate, so that no two change
-- the windows of one connection at once. The durations are those of states.py; a test compares them.

create or replace function telemetry_fresh() returns interval
language sql immutable
as $$ select interval '6 minutes' $$;

create or replace function telemetry_unknown_after() returns integer
language sql immutable
as $$ select 3 $$;

-- The last moment at which this epoch of the connection was observed; null when it never was.
create or replace function telemetry_last_observed(p_club uuid, p_connection uuid, p_epoch timestamptz)
returns timestamptz
language sql stable
as $$
    select s.observed_at
      from telemetry_samples s
     where s.club_id = p_club and s.connection_id = p_connection and s.epoch = p_epoch
       -- Nothing that was older when it came is kept: so an earlier epoch's samples need not be walked over.
       and s.observed_at >= p_epoch - interval '15 minutes'
     order by s.observed_at desc
     limit 1
$$;

-- Ends the open window at p_at, never before it began.
create or replace function end_coverage(p_club uuid, p_connection uuid, p_at timestamptz) returns void
language sql volatile
as $$
    update telemetry_coverage
       set ended_at = greatest(started_at, p_at)
     where club_id = p_club and connection_id = p_connection and ended_at is null
$$;

-- Ends the open window and opens another.
create or replace function open_coverage(
    p_club uuid, p_connection uuid, p_epoch timestamptz, p_state text, p_at timestamptz
) returns void
language plpgsql volatile
as $$
declare
    v_at timestamptz;
begin
    update telemetry_coverage
       set ended_at = greatest(started_at, p_at)
     where club_id = p_club and connection_id = p_connection and ended_at is null
    returning ended_at into v_at;
    insert into telemetry_coverage (club_id, id, connection_id, epoch, state, started_at)
    values (p_club, gen_random_uuid(), p_connection, p_epoch, p_state, coalesce(v_at, p_at));
end
$$;

-- Writes down, now that something happens at p_at, that an observed window had gone stale before: no clock does it.
-- p_last is the last observation before.
create or replace function note_stale_coverage(
    p_club uuid, p_connection uuid, p_epoch timestamptz, p_last timestamptz, p_at timestamptz
) returns void
language plpgsql volatile
as $$
begin
    if p_at > p_last + telemetry_fresh() and exists (
        select from telemetry_coverage w
         where w.club_id = p_club and w.connection_id = p_connection and w.epoch = p_epoch
           and w.ended_at is null and w.state = 'observed'
    ) then
        perform open_coverage(p_club, p_connection, p_epoch, 'stale', p_last + telemetry_fresh());
    end if;
end
$$;

-- A look at p_observed succeeded; p_last is the one before it. One older than what is there already changes nothing.
create or replace function coverage_observed(
    p_club uuid, p_connection uuid, p_epoch timestamptz, p_last timestamptz, p_observed timestamptz
) returns void
language plpgsql volatile
as $$
begin
    if p_observed <= p_last then
        return;
    end if;
    perform note_stale_coverage(p_club, p_connection, p_epoch, p_last, p_observed);
    if not exists (
        select from telemetry_coverage w
         where w.club_id = p_club and w.connection_id = p_connection and w.epoch = p_epoch
           and w.ended_at is null and (w.state = 'observed' or w.started_at > p_observed)
    ) then
        perform open_coverage(p_club, p_connection, p_epoch, 'observed', p_observed);
    end if;
end
$$;

-- Nothing was observed where something should have been; p_state says how bad that is. What nobody ever saw is unknown
-- and not degraded, so is what failed three times in a row, and unknown it stays until something is seen. Nothing
-- changes without analytics.
create or replace function coverage_failed(p_club uuid, p_connection uuid, p_state text, p_at timestamptz) returns void
language plpgsql volatile
as $$
declare
    v_connection connections;
    v_last timestamptz;
    v_state text;
begin
    select * into v_connection from connections c where c.club_id = p_club and c.id = p_connection;
    if not 'analytics' = any (v_connection.features) then
        return;
    end if;
    v_last := telemetry_last_observed(p_club, p_connection, v_connection.epoch);
    perform note_stale_coverage(p_club, p_connection, v_connection.epoch, v_last, p_at);
    v_state := case
        when v_last is null then 'unknown'
        when greatest(v_connection.telemetry_failures, v_connection.consecutive_failures)
             >= telemetry_unknown_after() then 'unknown'
        else p_state
    end;
    if not exists (
        select from telemetry_coverage w
         where w.club_id = p_club and w.connection_id = p_connection and w.epoch = v_connection.epoch
           and w.ended_at is null and w.state in (v_state, 'unknown')
    ) then
        perform open_coverage(p_club, p_connection, v_connection.epoch, v_state, p_at);
    end if;
end
$$;
