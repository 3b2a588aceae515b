-- As refresh_join_request, for approvals.
create or replace function refresh_approval(
    p_club uuid, p_ids uuid[], out lowest timestamptz, out later boolean, out remind timestamptz
)
language plpgsql set enable_seqscan to off as $$
begin
    perform
    from approvals a
    where a.club_id = p_club and a.id = any (p_ids)
    order by a.id
    for no key update;

    with before as (
        select a.id, a.archive_due_at
        from approvals a
        where a.club_id = p_club and a.id = any (p_ids)
    ), changed as (
        update approvals a
        set archive_due_at = d.due_at
        from approval_due(p_club, p_ids) d
        join before b on b.id = d.id
        where a.club_id = p_club
          and a.id = d.id
          and a.archive_due_at is distinct from d.due_at
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
