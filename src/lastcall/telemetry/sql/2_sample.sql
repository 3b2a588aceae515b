-- What a worker sends while it holds the lease. The connection's gate is shared, so that whoever ends an epoch, moves a
-- connection or records a failure waits for it and it for them; the lease's row keeps two calls of one lease apart.

create or replace function lock_telemetry(p_club uuid, p_connection uuid) returns void
language plpgsql volatile
as $$
begin
    perform from connection_gates g where g.club_id = p_club and g.connection_id = p_connection for share;
    perform from leases l where l.club_id = p_club and l.connection_id = p_connection for no key update;
end
$$;

-- Why a worker may not send aggregates of this connection now, or 'none': its key, its lease, what stands against the
-- connection, or that the club does not collect analytics (COL-04, COL-12).
create or replace function telemetry_obstacle(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_now timestamptz
) returns text
language plpgsql stable
as $$
declare
    v_standing record;
begin
    if not key_is_current(p_account, p_generation, p_now) then
        return 'stale_key';
    elsif not lease_is_current(p_club, p_connection, p_account, p_worker, p_token, p_now) then
        return 'stale_lease';
    end if;
    select * into v_standing from connection_standing(p_club, p_connection, p_account, p_epoch, p_now);
    return case
        when v_standing.obstacle is distinct from 'none' then coalesce(v_standing.obstacle, 'epoch')
        when not 'analytics' = any (v_standing.features) then 'analytics_off'
        else 'none'
    end;
end
$$;

-- Keeps one look at the group's aggregates. Outcomes: recorded, known (this poll is there already), other_group (an
-- instance is marked as another group's), or an obstacle. Everything or nothing is kept.
create or replace function record_sample(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_id uuid, p_poll text, p_age interval, p_member_count integer,
    p_groups text[], p_locations text[], p_worlds text[], p_populations integer[]
)
returns table (outcome text)
language plpgsql volatile
as $$
declare
    v_observed timestamptz := lastcall_now() - p_age; -- before any lock is waited for
    v_last timestamptz;
begin
    perform lock_telemetry(p_club, p_connection);

    outcome := telemetry_obstacle(
        p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, lastcall_now());
    if outcome = 'none' and exists (
        select from connections c
         where c.club_id = p_club and c.id = p_connection and not p_groups <@ array[lower(c.group_id)]
    ) then
        outcome := 'other_group';
    end if;
    if outcome <> 'none' then
        return next;
        return;
    end if;

    v_last := telemetry_last_observed(p_club, p_connection, p_epoch);
    insert into telemetry_samples
           (club_id, id, connection_id, epoch, poll_id, observed_at, member_count, population, instance_count)
    values (p_club, p_id, p_connection, p_epoch, p_poll, v_observed, p_member_count,
            coalesce((select sum(p) from unnest(p_populations) as p), 0), cardinality(p_locations))
        on conflict (club_id, connection_id, poll_id) do nothing;
    if not found then
        outcome := 'known';
        return next;
        return;
    end if;
    insert into telemetry_instances (club_id, sample_id, location, world_id, population)
    select p_club, p_id, i.location, i.world_id, i.population
      from unnest(p_locations, p_worlds, p_populations) as i (location, world_id, population);
    -- What the connection's next look goes by (connections/), written only when it changed.
    update connections c
       set has_visitors = exists (select from unnest(p_populations) as p where p > 0), telemetry_failures = 0
     where c.club_id = p_club and c.id = p_connection
       and (c.telemetry_failures > 0
            or c.has_visitors <> exists (select from unnest(p_populations) as p where p > 0));
    perform coverage_observed(p_club, p_connection, p_epoch, v_last, v_observed);
    outcome := 'recorded';
    return next;
end
$$;
