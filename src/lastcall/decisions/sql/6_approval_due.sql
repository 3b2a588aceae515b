-- When each of these approvals is to be archived by itself, from the facts alone; null: never, as things stand.
-- This is the whole candidate rule: pending, of an active club that archives at all, neither kept nor archived. One
-- that was sent back for revision waits for its asker and not for a decision, so nothing is scheduled for it. A day is
-- 24 hours; a revival starts the clock anew.
create or replace function approval_due(p_club uuid, p_ids uuid[])
returns table (id uuid, activity_at timestamptz, due_at timestamptz)
language sql stable as $$
    select
        a.id,
        a.activity_at,
        case
            when a.status = 'pending'
                and c.state = 'active'
                and r.keep is not true
                and r.archived_at is null
            then greatest(a.activity_at, r.revived_at) + make_interval(hours => 24 * c.retention_days)
        end
    from approvals a
    join clubs c on c.id = a.club_id
    left join retention r
        -- The ids once more: by statistics of a young table the join alone is done over the whole club.
        on r.club_id = p_club and r.id = any (p_ids) and r.id = a.id
    where a.club_id = p_club
      and a.id = any (p_ids)
$$;
