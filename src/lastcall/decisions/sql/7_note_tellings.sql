-- Notes that the club is to be reminded of items that will be archived at these times: one note a day in UTC on which
-- any is, to be told at the midnight a week before that day, or a day before it where the club archives within fourteen
-- days; at once where that is past. Answers the earliest of those that are new: the deadline to signal. In PL/pgSQL,
-- because a session keeps the plan then.
create or replace function note_retention_reminders(p_club uuid, p_dues timestamptz[]) returns timestamptz
language plpgsql as $$
declare
    v_first timestamptz;
begin
    with told as (
        insert into retention_tellings (club_id, kind, day, tell_at)
        select
            c.id,
            'reminder',
            d.day,
            greatest(
                (d.day - case when c.retention_days < 14 then 1 else 7 end)::timestamp at time zone 'UTC', n.now
            )
        from (select lastcall_now() as now) n
        cross join lateral (
            select distinct (due at time zone 'UTC')::date as day
            from unnest(p_dues) as dues (due)
            where due > n.now
        ) d
        join clubs c on c.id = p_club
        on conflict do nothing
        returning tell_at
    )
    select min(t.tell_at) into v_first from told t;
    return v_first;
end
$$;

-- Notes that something of the club was archived by itself at this moment: it is told at the end of that day in UTC.
create or replace function note_retention_digest(p_club uuid, p_archived_at timestamptz) returns void
language plpgsql as $$
begin
    insert into retention_tellings (club_id, kind, day, tell_at)
    values (
        p_club,
        'digest',
        (p_archived_at at time zone 'UTC')::date,
        ((p_archived_at at time zone 'UTC')::date + 1)::timestamp at time zone 'UTC'
    )
    on conflict do nothing;
end
$$;
