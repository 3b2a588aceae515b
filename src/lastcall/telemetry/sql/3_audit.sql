-- The group's audit log, read in stretches. One stretch of a connection is open at most; whichever lease comes next goes
-- on at its offset. The durations are those of states.py; a test compares them.

create or replace function audit_scan_durations()
returns table (longest interval, shortest interval, delay interval, overlap interval, back interval)
language sql immutable
as $$
    select interval '24 hours', interval '5 minutes', interval '1 minute', interval '5 minutes', interval '31 days'
$$;

-- The page to read next. Outcomes: page, nothing (read up to date, or the group does not show the account its log), or
-- an obstacle. p_id names a stretch that begins now.
create or replace function claim_audit_page(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_id uuid
)
returns table (outcome text, scan_id uuid, starts_at timestamptz, ends_at timestamptz, next_offset integer)
language plpgsql volatile
as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_times record;
    v_read_to timestamptz;
    v_starts timestamptz;
    v_ends timestamptz;
begin
    perform lock_telemetry(p_club, p_connection);

    v_now := lastcall_now();
    outcome := telemetry_obstacle(
        p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, v_now);
    if outcome = 'none' and not exists (
        select from own_member_evidence(p_club, p_connection, p_epoch) as e
         where holds_grants(e.body, array['group-audit-view'])
    ) then
        outcome := 'nothing';
    end if;
    if outcome <> 'none' then
        return next;
        return;
    end if;

    select s.id, s.starts_at, s.ends_at, s.next_offset into scan_id, starts_at, ends_at, next_offset
      from audit_scans s
     where s.club_id = p_club and s.connection_id = p_connection and s.epoch = p_epoch and s.finished_at is null;
    if scan_id is not null then
        outcome := 'page';
        return next;
        return;
    end if;

    select * into v_times from audit_scan_durations();
    select max(s.ends_at) into v_read_to
      from audit_scans s
     where s.club_id = p_club and s.connection_id = p_connection and s.epoch = p_epoch and s.ends_at > p_epoch;
    v_starts := greatest(coalesce(v_read_to - v_times.overlap, p_epoch), v_now - v_times.back);
    v_ends := least(v_starts + v_times.longest, v_now - v_times.delay);
    if v_ends - greatest(v_read_to, v_starts) < v_times.shortest then
        outcome := 'nothing';
        return next;
        return;
    end if;
    insert into audit_scans (club_id, id, connection_id, epoch, starts_at, ends_at)
    values (p_club, p_id, p_connection, p_epoch, v_starts, v_ends);
    outcome := 'page';
    scan_id := p_id;
    starts_at := v_starts;
    ends_at := v_ends;
    next_offset := 0;
    return next;
end
$$;

-- Keeps a page. Outcomes: recorded, known (that page is there already), elsewhere (no open stretch of this connection
-- stands at this offset), or an obstacle. Lines outside of the stretch are left out; a page without rows ends it.
create or replace function record_audit_page(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_scan uuid, p_offset integer, p_raw_count integer, p_is_last boolean,
    p_entries text[], p_times timestamptz[], p_events text[]
)
returns table (outcome text)
language plpgsql volatile
as $$
declare
    v_now timestamptz;
    v_scan audit_scans;
begin
    perform lock_telemetry(p_club, p_connection);

    v_now := lastcall_now();
    outcome := telemetry_obstacle(
        p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, v_now);
    if outcome = 'none' then
        select * into v_scan from audit_scans s
         where s.club_id = p_club and s.id = p_scan and s.connection_id = p_connection and s.epoch = p_epoch;
        outcome := case
            when p_offset < v_scan.next_offset or v_scan.finished_at is not null then 'known'
            when v_scan.next_offset = p_offset then 'recorded'
            else 'elsewhere'
        end;
    end if;
    if outcome = 'recorded' then
        insert into audit_entries (club_id, connection_id, entry_id, at, event)
        select p_club, p_connection, e.entry_id, e.at, e.event
          from unnest(p_entries, p_times, p_events) as e (entry_id, at, event)
         where e.at between v_scan.starts_at and v_scan.ends_at
            on conflict do nothing;
        update audit_scans s
           set next_offset = s.next_offset + p_raw_count,
               finished_at = case when p_is_last or p_raw_count = 0 then v_now end
         where s.club_id = p_club and s.id = p_scan;
    end if;
    return next;
end
$$;
