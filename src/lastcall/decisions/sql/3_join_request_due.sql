-- When each of these join requests is to be archived by itself, from the facts alone; null: never, as things stand.
-- This is the whole candidate rule (RET-01, RET-02): pending, of an active club that archives at all, with an invite of
-- the same club, neither kept nor archived. An invite's expiry or revocation plays no part (RET-03). A day is 24
-- hours; a revival starts the clock anew.
create or replace function join_request_due(p_club uuid, p_ids uuid[])
returns table (id uuid, activity_at timestamptz, due_at timestamptz)
language sql stable as $$
    select
        j.id,
        j.activity_at,
        case
            when j.status = 'pending_approval'
                and c.state = 'active'
                and i.id is not null
                and r.keep is not true
                and r.archived_at is null
            then greatest(j.activity_at, r.revived_at) + make_interval(hours => 24 * c.retention_days)
        end
    from join_requests j
    join clubs c on c.id = j.club_id
    left join invites i on i.club_id = j.club_id and i.id = j.invite_id
    left join retention r
        -- The ids once more: by statistics of a young table the join alone is done over the whole club.
        on r.club_id = p_club and r.id = any (p_ids) and r.id = j.id
    where j.club_id = p_club
      and j.id = any (p_ids)
$$;
