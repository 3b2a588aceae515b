drop function if exists refresh_join_requests (uuid, uuid[]);
drop function if exists refresh_join_request (uuid, uuid[]);

-- The one writer of archive_due_at beside the sweep's own settle: sets it from the facts for these requests.
-- lowest: the earliest new deadline, rounded up; later: whether one went away or moved to later; remind: when the
-- first reminder is to be told that nobody was to be told before.
-- The locks come first, in id order; a caller that changed the rows holds them already.
create or replace function refresh_join_request(
    p_club uuid, p_ids uuid[], out lowest timestamptz, out later boolean, out remind timestamptz
)
language plpgsql set enable_seqscan to off as $$
begin
    perform
    from join_requests j
    where j.club_id = p_club and j.id = any (p_ids)
    order by j.id
    for no key update;

    with before as (
        select j.id, j.archive_due_at
        from join_requests j
        where j.club_id = p_club and j.id = any (p_ids)
    ), changed as (
        update join_requests j
        set archive_due_at = d.due_at
        from join_request_due(p_club, p_ids) d
        join before b on b.id = d.id
        where j.club_id = p_club
          and j.id = d.id
          and j.archive_due_at is distinct from d.due_at
        returning d.due_at, b.archive_due_at as due_before
    )
    select
        ceil_to_millisecond(min(c.due_at)),
        coalesce(bool_or(c.due_before is not null and (c.due_at is null or c.due_at > c.due_before)), false),
        note_retention_reminders(p_club, array_agg(c.due_at))
    into lowest, later, remind
    from changed c;
end
$$;
