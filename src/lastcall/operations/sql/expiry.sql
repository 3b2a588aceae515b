-- What ends by itself. Each is guarded by the very claim that was seen, so that a newer one is never touched.

drop function if exists is_late_now(uuid, uuid);
drop function if exists miss_late(uuid[], uuid[]);

-- A claim whose time is over goes back; the next claim gets a new nonce (WRK-12). Not done: it is not that
-- claim any more, or its time is not over. ``account_id`` serves the connection now.
create or replace function expire_claim(p_club uuid, p_operation uuid, p_nonce uuid, p_expires_at timestamptz)
returns table (is_done boolean, due_at timestamptz, ready_at timestamptz, account_id uuid)
language plpgsql volatile
as $$
declare
    v_row operations;
    v_now timestamptz;
begin
    select * into v_row from operations o where o.club_id = p_club and o.id = p_operation for no key update;

    v_now := lastcall_now();
    is_done := v_row.state = 'claimed' and v_row.claim_nonce = p_nonce
        and v_row.claim_expires_at = p_expires_at and v_row.claim_expires_at <= v_now
        and settle_unsent(p_club, p_operation, 'pending', null, v_now);
    due_at := v_row.due_at;
    ready_at := v_row.ready_at;
    account_id := (
        select c.account_id from connections c where c.club_id = p_club and c.id = v_row.connection_id);
    return next;
end
$$;

-- A submission of which nobody reported the outcome in time: it may or may not have happened, and is never
-- sent again (RCV-01). No account, connection, lease or worker is asked (RCV-02). False: not that submission,
-- or not over.
create or replace function recover_submission(
    p_club uuid, p_operation uuid, p_nonce uuid, p_expires_at timestamptz
) returns boolean
language plpgsql volatile
as $$
declare
    v_row operations;
    v_now timestamptz;
begin
    select * into v_row from operations o where o.club_id = p_club and o.id = p_operation for no key update;

    v_now := lastcall_now();
    if v_row.state = 'submitted' and v_row.claim_nonce = p_nonce
       and v_row.claim_expires_at = p_expires_at and v_row.claim_expires_at <= v_now
    then
        update operations o
           set state = 'indeterminate', code = 'submission_outcome_unknown', completed_at = v_now
         where o.club_id = p_club and o.id = p_operation and o.state = 'submitted';
        perform operation_ended(p_club, array[p_operation], v_now);
        return true;
    end if;
    return false;
end
$$;

-- The claimed rows of a worker that began anew: whatever it held in its memory is gone. One row at a time,
-- each named by its club.
create or replace function return_claims(p_account uuid, p_worker uuid)
returns table (club_id uuid, operation_id uuid, due_at timestamptz, ready_at timestamptz)
language plpgsql volatile
as $$
#variable_conflict use_column
declare
    v_seen record;
    v_row operations;
begin
    for v_seen in
        select o.club_id, o.id, o.claim_nonce
          from operations o
         where o.state = 'claimed' and o.claim_account_id = p_account and o.claim_worker_id = p_worker
         order by o.id
    loop
        select * into v_row from operations o
         where o.club_id = v_seen.club_id and o.id = v_seen.id for no key update;
        if v_row.state = 'claimed' and v_row.claim_nonce = v_seen.claim_nonce
           and settle_unsent(v_seen.club_id, v_seen.id, 'pending', null, lastcall_now())
        then
            club_id := v_row.club_id;
            operation_id := v_row.id;
            due_at := v_row.due_at;
            ready_at := v_row.ready_at;
            return next;
        end if;
    end loop;
end
$$;

-- Misses the given rows that are late now (RCV-04), one after the other in the order of their ids; answers which rows
-- changed, and how. Their events are locked, then each row, then it is judged as it stands: first by its event, which
-- may cancel it or give it another due time, whether or not the fan-out has been there (RCV-07). Neither connection,
-- account, key nor lease is asked (RCV-06); what was submitted or is over is passed over (RCV-08).
create or replace function miss_late(p_clubs uuid[], p_operations uuid[])
returns table (
    club_id uuid, operation_id uuid, state text, due_at timestamptz, ready_at timestamptz, account_id uuid
)
language plpgsql volatile
as $$
#variable_conflict use_column
declare
    v_events constant uuid[] := lock_events_of(p_clubs, p_operations);
    v_seen record;
    v_row operations;
    v_code text;
    v_now timestamptz;
begin
    for v_seen in
        select s.club, s.operation from unnest(p_clubs, p_operations) as s (club, operation) order by s.operation
    loop
        -- What is not unsent any more is not even locked: a hello locks returned rows before submitted ones, and the
        -- two could otherwise wait for each other.
        select * into v_row from operations o
         where o.club_id = v_seen.club and o.id = v_seen.operation and o.state in ('pending', 'claimed')
           for no key update;
        -- What an edit tied to another event meanwhile is found again if it is late.
        continue when v_row.id is null or not is_among(v_events, v_row.event_id, v_row.dependency_event_id);

        club_id := v_row.club_id;
        operation_id := v_row.id;
        state := null;
        due_at := v_row.due_at;
        v_now := lastcall_now();
        v_code := null;
        if v_row.event_id is not null then
            select v.code, v.due_at into v_code, due_at from event_verdict(v_row.club_id, v_row.id) as v;
        end if;
        if v_code = 'event_rescheduled' then
            state := 'pending';
            ready_at := move_operation(v_row.club_id, v_row.id, due_at);
            account_id := (
                select c.account_id from connections c
                 where c.club_id = v_row.club_id and c.id = v_row.connection_id);
            v_code := null;
        end if;
        if v_code is null and is_late(due_at, v_now) then
            v_code := 'late_window_elapsed';
        end if;
        if v_code is not null then
            state := refused_state(v_code);
            perform settle_unsent(v_row.club_id, v_row.id, state, v_code, v_now);
        end if;
        if state is not null then
            return next;
        end if;
    end loop;
end
$$;

-- A worker that began anew, with the journal its claims name and no doubt about it, does not know of these
-- submissions: they were never sent (WRK-13). One that is expired is left to its recovery, because a journal
-- keeps what was reported for a while only. Answers which.
create or replace function settle_unattempted(p_account uuid, p_worker uuid, p_journal uuid, p_known uuid[])
returns table (club_id uuid, operation_id uuid)
language plpgsql volatile
as $$
#variable_conflict use_column
declare
    v_seen record;
    v_row operations;
    v_now timestamptz;
begin
    for v_seen in
        select o.club_id, o.id
          from operations o
         where o.state = 'submitted' and o.claim_account_id = p_account and o.claim_worker_id = p_worker
           and o.claim_journal_id = p_journal and o.claim_nonce <> all (p_known)
         order by o.id
    loop
        select * into v_row from operations o
         where o.club_id = v_seen.club_id and o.id = v_seen.id for no key update;
        v_now := lastcall_now();
        if v_row.state = 'submitted' and v_row.claim_account_id = p_account and v_row.claim_worker_id = p_worker
           and v_row.claim_journal_id = p_journal and v_row.claim_nonce <> all (p_known)
           and v_row.claim_expires_at > v_now
        then
            update operations o
               set state = 'rejected', code = 'submission_not_attempted', completed_at = v_now
             where o.club_id = v_seen.club_id and o.id = v_seen.id and o.state = 'submitted';
            perform operation_ended(v_seen.club_id, array[v_seen.id], v_now);
            club_id := v_seen.club_id;
            operation_id := v_seen.id;
            return next;
        end if;
    end loop;
end
$$;
