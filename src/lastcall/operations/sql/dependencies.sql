-- An invitation to an instance that another operation creates: whether that creation still is what was reviewed, whether
-- it is over, and where it led (DEP-01 to DEP-10). Older rows that say less than a review leaves are never sent (DEP-04).

-- Whether the row is such an invitation, whatever else it says.
create or replace function is_dependent(p_kind text) returns boolean
language sql immutable parallel safe return p_kind = 'invite_to_created_instance';

-- The group of an instance id's one mark; null for an id without exactly one.
create or replace function instance_group(p_instance text) returns text
language sql immutable parallel safe
return case
    when length(p_instance) - length(replace(p_instance, '~group(', '')) = length('~group(')
        then substring(p_instance from '~group\(([^~()]+)\)(?:~|$)')
end;

-- When the creation is due in truth (DEP-06): one that follows an event and is not sent yet moves with it before its
-- row says so; the time of one that was sent stays (DEP-07).
create or replace function creation_due(p_club uuid, p_creation uuid) returns timestamptz
language plpgsql stable
as $$
declare
    v_due_at timestamptz;
begin
    select case
               when c.state in ('pending', 'claimed') then coalesce(event_due(e.starts_at, c.offset_ms), c.due_at)
               else c.due_at
           end
      into v_due_at
      from operations c
      left join events e on e.club_id = c.club_id and e.id = c.event_id
     where c.club_id = p_club and c.id = p_creation;
    return v_due_at;
end
$$;

-- Whether the creation's answer is a place of the planned world and of the connected group (DEP-05).
create or replace function is_destination(p_payload jsonb, p_result jsonb, p_group text) returns boolean
language sql immutable
as $$
    select coalesce(
        lower(p_result ->> 'worldId') = lower(p_payload ->> 'worldId')
        and lower(instance_group(p_result ->> 'instanceId')) = lower(p_group),
        false)
$$;

-- Why the invitation may not go to the creation's instance if it is due at p_due_at, or null; for what depends on
-- nothing always null. For a statement after the locks.
create or replace function dependency_verdict(p_club uuid, p_operation uuid, p_due_at timestamptz) returns text
language plpgsql stable
as $$
declare
    v_row operations;
    v_creation operations;
begin
    select * into v_row from operations o where o.club_id = p_club and o.id = p_operation;
    if is_dependent(v_row.kind) is not true then
        return null;
    end if;
    select * into v_creation from operations o where o.club_id = p_club and o.id = v_row.depends_on;
    return case
        when not is_as_reviewed(v_row, v_creation) then 'dependency_unavailable'
        when v_creation.state in ('rejected', 'indeterminate', 'cancelled', 'missed') then 'instance_creation_failed'
        when creation_due(p_club, v_creation.id) > p_due_at then 'instance_creation_rescheduled'
        when v_creation.state <> 'succeeded' then 'awaiting_instance_creation'
        when not is_destination(
                v_creation.payload, v_creation.result,
                (select c.group_id from connections c where c.club_id = p_club and c.id = v_row.connection_id))
            then 'dependency_destination_unavailable'
    end;
end
$$;

-- The creation is the one that was reviewed, in the revision that was reviewed, of the same epoch and with the same
-- event (DEP-02, DEP-04, DEP-05, DEP-08).
create or replace function is_as_reviewed(p_row operations, p_creation operations) returns boolean
language sql immutable
as $$
    select coalesce(
        p_creation.kind = 'create_instance'
        and p_creation.connection_id = p_row.connection_id
        and p_creation.epoch = p_row.epoch
        and p_creation.revision = p_row.dependency_revision
        and (p_row.payload ->> 'creationRevision')::numeric = p_row.dependency_revision
        and p_creation.event_id is not distinct from p_row.dependency_event_id,
        false)
$$;

-- The invitation as a collector gets it: to the place that the creation led to. The stored payload stays as it was
-- reviewed (DEP-01).
create or replace function destination_payload(p_club uuid, p_operation uuid) returns jsonb
language sql stable
as $$
    select jsonb_build_object(
               'targetUserId', o.payload -> 'targetUserId',
               'worldId', c.result -> 'worldId',
               'instanceId', c.result -> 'instanceId')
      from operations o
      join operations c on c.club_id = o.club_id and c.id = o.depends_on
     where o.club_id = p_club and o.id = p_operation
$$;

-- Notes that what depends on these creations must be gone through, from the beginning, because they ended or are not
-- what was reviewed any more; answers since when something of the club waits for that. The caller holds their rows.
create or replace function note_dependents(p_club uuid, p_creations uuid[], p_now timestamptz) returns timestamptz
language plpgsql volatile
as $$
begin
    insert into operation_fanouts (club_id, id, subject_kind, subject_id, created_at)
    select o.club_id, o.id, 'creation', o.id, p_now
      from operations o
     where o.club_id = p_club and o.id = any (p_creations) and o.kind = 'create_instance'
       and exists (
           select from operations d
            where d.club_id = o.club_id and d.depends_on = o.id and d.completed_at is null)
        on conflict (club_id, subject_kind, subject_id) do update set after = null;
    return first_fanout(p_club);
end
$$;

-- Holds an operation and the creation that it depends on, if it does, in the order of their ids. False: it is not there.
create or replace function lock_with_creation(p_club uuid, p_operation uuid) returns boolean
language plpgsql volatile
as $$
declare
    v_creation constant uuid := (
        select o.depends_on from operations o where o.club_id = p_club and o.id = p_operation);
    v_is_locked boolean;
begin
    perform from operations o where o.club_id = p_club and o.id = v_creation and o.id < p_operation for share;
    perform from operations o where o.club_id = p_club and o.id = p_operation for no key update;
    v_is_locked := found;
    perform from operations o where o.club_id = p_club and o.id = v_creation and o.id > p_operation for share;
    return v_is_locked;
end
$$;

-- The unsent rows that depend on the creation, behind p_after, in the order of their ids.
create or replace function dependents_page(p_club uuid, p_creation uuid, p_after uuid, p_limit integer) returns uuid[]
language sql stable
as $$
    select array(
        select o.id
          from operations o
         where o.club_id = p_club and o.depends_on = p_creation and o.completed_at is null
           and o.state in ('pending', 'claimed') and o.id > p_after
         order by o.id
         limit p_limit)
$$;

-- Where the note of a creation stands; null when there is none.
create or replace function creation_cursor(p_club uuid, p_creation uuid) returns uuid
language sql stable
as $$
    select coalesce(f.after, '00000000-0000-0000-0000-000000000000')
      from operation_fanouts f
     where f.club_id = p_club and f.subject_kind = 'creation' and f.subject_id = p_creation
$$;

-- One page of a creation's note (as fan_out_event): what waited gets its ready time where the creation led to a place,
-- and ends with its reason where that cannot come any more. Whoever ends or edits the creation writes its note under the
-- creation's lock, so with the creation held for share the note stands still.
create or replace function fan_out_creation(p_club uuid, p_creation uuid, p_limit integer)
returns table (
    is_over boolean, has_changed boolean, due_at timestamptz, ready_at timestamptz, account_ids uuid[],
    fanout_at timestamptz
)
language plpgsql volatile
as $$
declare
    v_after constant uuid := creation_cursor(p_club, p_creation);
    v_page constant uuid[] := dependents_page(p_club, p_creation, v_after, p_limit);
    v_older constant uuid[] := array(select p.id from unnest(v_page) as p (id) where p.id < p_creation);
    v_newer constant uuid[] := array(select p.id from unnest(v_page) as p (id) where p.id > p_creation);
    v_ended uuid[];
    v_now timestamptz;
begin
    is_over := false;
    has_changed := false;
    perform lock_events_of(array_fill(p_club, array[cardinality(v_page)]), v_page);
    perform from operations o
      where o.club_id = p_club and o.id = any (v_older) and o.state in ('pending', 'claimed')
      order by o.id
        for no key update;
    perform from operations o where o.club_id = p_club and o.id = p_creation for share;
    perform from operations o
      where o.club_id = p_club and o.id = any (v_newer) and o.state in ('pending', 'claimed')
      order by o.id
        for no key update;
    if creation_cursor(p_club, p_creation) is distinct from v_after then
        -- Written anew, or gone on by somebody else, before the creation was held.
        return next;
        return;
    end if;

    v_now := lastcall_now();
    with judged as (
        select p.id, v.code, v.due_at,
               case when v.code is null then 'pending' else refused_state(v.code) end as state,
               dependency_verdict(p_club, p.id, v.due_at) = 'awaiting_instance_creation' as is_waiting
          from unnest(v_page) as p (id)
         cross join lateral (select * from operation_verdict(p_club, p.id) offset 0) as v),
    moved as (
        update operations o
           set state = j.state,
               code = nullif(j.code, 'event_rescheduled'),
               completed_at = case when j.state <> 'pending' then v_now end,
               due_at = j.due_at,
               ready_at = case when j.is_waiting is not true then greatest(j.due_at, o.retry_at) end,
               claim_nonce = null, claim_account_id = null, claim_worker_id = null, claim_journal_id = null,
               claim_fencing_token = null, claim_generation = null, claim_expires_at = null
          from judged j
         where o.club_id = p_club and o.id = j.id and o.state in ('pending', 'claimed') and o.submitted_at is null
           and (j.code is distinct from 'awaiting_instance_creation' or o.ready_at is not null)
           and (j.code is not null or o.ready_at is null)
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
    end if;

    is_over := cardinality(v_page) < p_limit;
    if is_over then
        delete from operation_fanouts f
         where f.club_id = p_club and f.subject_kind = 'creation' and f.subject_id = p_creation;
    else
        update operation_fanouts f
           set after = v_page[p_limit]
         where f.club_id = p_club and f.subject_kind = 'creation' and f.subject_id = p_creation;
    end if;
    fanout_at := first_fanout(p_club);
    return next;
end
$$;
