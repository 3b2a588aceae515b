-- What follows an event or a creation is gone through after each change of it, a hundred rows a transaction (EVT-07).
-- That only makes it prompt: claim, authorize and lateness judge by the event themselves (EVT-09), and so they do for the
-- few invitations that follow another event than their creation does, which are not gone through for the creation's.

-- When the first note of the club was made, or null.
create or replace function first_fanout(p_club uuid) returns timestamptz
language sql stable
as $$ select min(f.created_at) from operation_fanouts f where f.club_id = p_club $$;

-- Notes that all that follows the event must be gone through, from its beginning; null when nothing unsent follows it.
-- The caller has changed the event and holds it.
create or replace function note_event_fanout(p_club uuid, p_event uuid) returns timestamptz
language sql volatile
as $$
    insert into operation_fanouts (club_id, id, subject_kind, subject_id, created_at)
    select p_club, p_event, 'event', p_event, lastcall_now()
     where exists (
           select from operations o where o.club_id = p_club and o.event_id = p_event and o.completed_at is null)
        on conflict (club_id, subject_kind, subject_id) do update set after = null
    returning created_at
$$;

-- Every operation that ends, ends here, whatever ended it; a success that nothing can depend on has nothing to say and
-- need not come. Its row is locked by the caller and says how it ended. What did not end well is noticed, and a
-- creation's dependents are gone through.
create or replace function operation_ended(p_club uuid, p_operations uuid[], p_now timestamptz) returns void
language plpgsql volatile
as $$
begin
    perform note_dependents(p_club, p_operations, p_now);
    perform note_outcomes(p_club, p_operations, p_now);
end
$$;

-- One page of an event's note; the note is gone with the last. Whoever changes the event writes its note under the
-- event's lock, so with the event held for share the note stands still; two processes at one note only do it twice.
-- Answers whether there is more, whether rows changed, the first due and ready times among what moved, and whose work
-- that is.
create or replace function fan_out_event(p_club uuid, p_event uuid, p_limit integer)
returns table (
    is_over boolean, has_changed boolean, due_at timestamptz, ready_at timestamptz, account_ids uuid[],
    fanout_at timestamptz
)
language plpgsql volatile
as $$
declare
    v_after uuid;
    v_page uuid[];
    v_ended uuid[];
    v_now timestamptz;
begin
    perform from events e where e.club_id = p_club and e.id = p_event for share;
    select coalesce(f.after, '00000000-0000-0000-0000-000000000000') into v_after
      from operation_fanouts f
     where f.club_id = p_club and f.subject_kind = 'event' and f.subject_id = p_event;
    v_page := array(
        select o.id
          from operations o
         where o.club_id = p_club and o.event_id = p_event and o.completed_at is null
           and o.state in ('pending', 'claimed') and o.id > v_after
         order by o.id
         limit p_limit);
    perform from operations o
      where o.club_id = p_club and o.id = any (v_page) and o.state in ('pending', 'claimed')
      order by o.id
        for no key update;

    v_now := lastcall_now();
    with moved as (
        update operations o
           set state = refused_state(v.code),
               code = case when v.code = 'event_rescheduled' then o.code else v.code end,
               completed_at = case when refused_state(v.code) <> 'pending' then v_now end,
               due_at = case when v.code = 'event_rescheduled' then v.due_at else o.due_at end,
               ready_at = case
                   when v.code = 'event_rescheduled' and o.ready_at is not null then greatest(v.due_at, o.retry_at)
                   when v.code <> 'awaiting_instance_creation' then o.ready_at
               end,
               claim_nonce = null, claim_account_id = null, claim_worker_id = null, claim_journal_id = null,
               claim_fencing_token = null, claim_generation = null, claim_expires_at = null
          from unnest(v_page) as p (id)
         -- Offset 0: judged row by row and once each, however many rows the planner thinks there are.
         cross join lateral (select * from operation_verdict(p_club, p.id) offset 0) as v
         where o.club_id = p_club and o.id = p.id and v.code is not null
           and (v.code <> 'awaiting_instance_creation' or o.ready_at is not null)
           and o.state in ('pending', 'claimed') and o.submitted_at is null
        returning o.id, o.completed_at, o.due_at, o.ready_at, o.connection_id)
    select count(*) > 0,
           min(m.due_at) filter (where m.completed_at is null),
           min(m.ready_at) filter (where m.completed_at is null),
           array_agg(distinct c.account_id) filter (where m.completed_at is null),
           array_agg(m.id) filter (where m.completed_at is not null)
      into has_changed, due_at, ready_at, account_ids, v_ended
      from moved m
      join connections c on c.club_id = p_club and c.id = m.connection_id;
    if v_ended is not null then
        perform operation_ended(p_club, v_ended, v_now);
        fanout_at := first_fanout(p_club);
    end if;

    is_over := cardinality(v_page) < p_limit;
    if is_over then
        delete from operation_fanouts f
         where f.club_id = p_club and f.subject_kind = 'event' and f.subject_id = p_event;
    else
        update operation_fanouts f
           set after = v_page[p_limit]
         where f.club_id = p_club and f.subject_kind = 'event' and f.subject_id = p_event
           and coalesce(f.after, '00000000-0000-0000-0000-000000000000') < v_page[p_limit];
    end if;
    return next;
end
$$;
