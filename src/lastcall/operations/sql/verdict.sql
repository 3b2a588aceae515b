-- What the event says of an operation that follows it (EVT-09), and what becomes of the operation then.

-- What an event-relative operation is due at. An instant: the offset is a length of time, whatever the clocks of the
-- event's zone do meanwhile.
create or replace function event_due(p_starts_at timestamptz, p_offset_ms bigint) returns timestamptz
language sql stable parallel safe return p_starts_at + p_offset_ms * interval '1 millisecond';

-- Whether a cancel or a removal came after the review, though the event be reinstated meanwhile (EVT-05).
create or replace function was_cancelled(p_status text, p_generation integer, p_reviewed integer) returns boolean
language sql immutable parallel safe return p_status = 'cancelled' or p_generation <> p_reviewed;

-- Whether the exact start that was reviewed went away, though it be given back meanwhile (EVT-04).
create or replace function has_lost_time(p_starts_at timestamptz, p_generation integer, p_reviewed integer)
returns boolean
language sql immutable parallel safe return p_starts_at is null or p_generation <> p_reviewed;

-- One row: why the operation may not go on as it was reviewed, or null; and when it is due by its event. The creation's
-- event governs an invitation too (DEP-08), by the generation that the creation was reviewed with. For a statement
-- after the locks; a club's row refers to no other club's event, so a foreign one is a missing one.
create or replace function event_verdict(p_club uuid, p_operation uuid)
returns table (code text, due_at timestamptz)
language sql stable
as $$
    select case
               when o.event_id is not null and (e.id is null or e.removed_at is not null)
                    or n.removed_at is not null
                   then 'event_deleted'
               when was_cancelled(e.status, e.cancel_generation, o.event_cancel_generation)
                    or was_cancelled(n.status, n.cancel_generation, c.event_cancel_generation)
                   then 'event_cancelled'
               when o.offset_ms is not null
                    and has_lost_time(e.starts_at, e.tba_generation, o.event_tba_generation)
                   then 'event_time_tba'
               when o.due_at <> event_due(e.starts_at, o.offset_ms) then 'event_rescheduled'
           end,
           coalesce(event_due(e.starts_at, o.offset_ms), o.due_at)
      from operations o
      left join events e on e.club_id = o.club_id and e.id = o.event_id
      left join operations c
             on c.club_id = o.club_id and c.id = o.depends_on and c.event_id = o.dependency_event_id
      left join events n on n.club_id = c.club_id and n.id = c.event_id
     where o.club_id = p_club and o.id = p_operation
$$;

-- What event and creation together say of an operation, or null; and when it is due by its event. What is to be moved is
-- judged by its new time: there it may stand before its creation.
create or replace function operation_verdict(p_club uuid, p_operation uuid)
returns table (code text, due_at timestamptz)
language sql stable
as $$
    select case
               when v.code <> 'event_rescheduled' then v.code
               when v.code is not null and d.code = 'awaiting_instance_creation' then v.code
               else coalesce(d.code, v.code)
           end,
           v.due_at
      from operations o
     cross join lateral event_verdict(o.club_id, o.id) as v
     cross join lateral (
           select case when is_dependent(o.kind) then dependency_verdict(o.club_id, o.id, v.due_at) end as code) as d
     where o.club_id = p_club and o.id = p_operation
$$;

-- The state in which a refusal's own code leaves a claimed or waiting row.
create or replace function refused_state(p_code text) returns text
language sql immutable parallel safe
return case
    when p_code in ('connection_paused', 'event_rescheduled', 'awaiting_instance_creation') then 'pending'
    when p_code = 'late_window_elapsed' then 'missed'
    when p_code in ('event_deleted', 'event_cancelled', 'event_time_tba') then 'cancelled'
    else 'rejected'
end;

-- Whoever judges by events locks them first, for share and in the order of their ids: those of these operations and of
-- the creations that they depend on. Answers which; what an edit ties to another event meanwhile is not among them.
create or replace function lock_events_of(p_clubs uuid[], p_operations uuid[]) returns uuid[]
language plpgsql volatile
as $$
declare
    v_seen record;
    v_locked uuid[] := '{}';
begin
    for v_seen in
        select distinct o.club_id, t.event_id
          from unnest(p_clubs, p_operations) as s (club, operation)
          join operations o on o.club_id = s.club and o.id = s.operation
         cross join lateral (values (o.event_id), (o.dependency_event_id)) as t (event_id)
         where t.event_id is not null
         order by t.event_id
    loop
        perform from events e where e.club_id = v_seen.club_id and e.id = v_seen.event_id for share;
        v_locked := v_locked || v_seen.event_id;
    end loop;
    return v_locked;
end
$$;

-- Whether the row's events are among those that were locked before it.
create or replace function is_among(p_locked uuid[], p_event uuid, p_dependency_event uuid) returns boolean
language sql immutable parallel safe
return array_remove(array[p_event, p_dependency_event], null) <@ p_locked;

-- All that the judging of a linked operation rests on, in the house's order: the gates, the events, then the operation
-- and the creation that it depends on, by id. False: a gate or the operation is not there.
create or replace function lock_linked(p_club uuid, p_connection uuid, p_operation uuid) returns boolean
language plpgsql volatile
as $$
declare
    v_is_locked boolean;
begin
    perform
      from club_gates c
      join connection_gates n on n.club_id = c.club_id and n.connection_id = p_connection
     where c.club_id = p_club
       for share of c
       for share of n;
    v_is_locked := found;
    perform lock_events_of(array[p_club], array[p_operation]);
    return lock_with_creation(p_club, p_operation) and v_is_locked;
end
$$;

-- Gives an unsent row its new due time; a claim made for the old one loses its nonce (EVT-03). The provider's backoff
-- holds (WRK-18), and what waits for its creation goes on waiting. Answers when it is ready.
create or replace function move_operation(p_club uuid, p_operation uuid, p_due_at timestamptz) returns timestamptz
language plpgsql volatile
as $$
declare
    v_ready_at timestamptz;
begin
    update operations o
       set state = 'pending',
           due_at = p_due_at,
           ready_at = case when o.ready_at is not null then greatest(p_due_at, o.retry_at) end,
           claim_nonce = null, claim_account_id = null, claim_worker_id = null, claim_journal_id = null,
           claim_fencing_token = null, claim_generation = null, claim_expires_at = null
     where o.club_id = p_club
       and o.id = p_operation
       and o.state in ('pending', 'claimed')
       and o.submitted_at is null
    returning o.ready_at into v_ready_at;
    return v_ready_at;
end
$$;

-- What a verdict makes of an unsent row: moved, or taken to the state of its code. Answers when it is ready, if it is.
create or replace function settle_verdict(
    p_club uuid, p_operation uuid, p_code text, p_due_at timestamptz, p_now timestamptz
) returns timestamptz
language plpgsql volatile
as $$
begin
    if p_code = 'event_rescheduled' then
        return move_operation(p_club, p_operation, p_due_at);
    end if;
    perform settle_unsent(p_club, p_operation, refused_state(p_code), p_code, p_now);
    if p_code = 'awaiting_instance_creation' then
        update operations o set ready_at = null where o.club_id = p_club and o.id = p_operation and o.state = 'pending';
    end if;
    return null;
end
$$;
