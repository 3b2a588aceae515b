-- What is unsent of an epoch that ended is rejected, some rows a transaction (WRK-11). That only makes it prompt and
-- visible: claim, authorize, reject and defer refuse another epoch's work themselves, and nobody adds to it, because
-- whoever queues or edits holds the connection's gate.

drop function if exists reject_unsent(uuid, uuid, timestamptz, text);

-- Whether something unsent of its epoch depends on the operation.
create or replace function is_awaited(p_club uuid, p_operation uuid, p_kind text) returns boolean
language sql stable
as $$
    select p_kind = 'create_instance' and exists (
           select
             from operations c
             join operations d on d.club_id = c.club_id and d.depends_on = c.id
            where c.club_id = p_club and c.id = p_operation
              and d.connection_id = c.connection_id and d.epoch = c.epoch
              and d.completed_at is null and d.state in ('pending', 'claimed'))
$$;

-- Unsent rows of the epoch: what is being prepared first, then what waits in the order in which it would be sent. A
-- creation comes after what depends on it, so that all of it says that the connection changed and nothing that its
-- instance failed. Each is read in the order of an index: a mere question whether there is one would be answered by
-- reading the table where the statistics say that there are many. What is claimed, of all clubs, is never much.
create or replace function epoch_page(p_club uuid, p_connection uuid, p_epoch timestamptz, p_limit integer)
returns uuid[]
language sql stable
as $$
    select array(
        (select o.id
           from operations o
          where o.club_id = p_club and o.connection_id = p_connection and o.epoch = p_epoch and o.state = 'claimed'
            and not is_awaited(o.club_id, o.id, o.kind)
          order by o.due_at, o.id
          limit p_limit)
        union all
        (select o.id
           from operations o
          where o.club_id = p_club and o.connection_id = p_connection and o.epoch = p_epoch and o.state = 'pending'
            and not is_awaited(o.club_id, o.id, o.kind)
          order by o.lane, o.ready_at, o.id
          limit p_limit)
        limit p_limit)
$$;

-- Notes that the epoch ended; null when nothing unsent is left of it. The caller holds the connection's gate, so all
-- that was queued for the epoch is seen here.
create or replace function note_ended_epoch(p_club uuid, p_connection uuid, p_epoch timestamptz, p_code text)
returns timestamptz
language sql volatile
as $$
    insert into ended_epochs (club_id, connection_id, epoch, code, ended_at)
    select p_club, p_connection, p_epoch, p_code, lastcall_now()
     where cardinality(epoch_page(p_club, p_connection, p_epoch, 1)) > 0
        on conflict (club_id, connection_id, epoch) do update set ended_at = ended_epochs.ended_at
    returning ended_at
$$;

-- Notes every epoch of the club but this one of which something unsent is left; answers since when the first waits, or
-- null. The caller holds the gate of the connection whose epoch begins.
create or replace function note_earlier_epochs(p_club uuid, p_connection uuid, p_epoch timestamptz, p_code text)
returns timestamptz
language sql volatile
as $$
    with noted as (
        insert into ended_epochs (club_id, connection_id, epoch, code, ended_at)
        select p_club, u.connection_id, u.epoch, p_code, lastcall_now()
          from (select o.connection_id, o.epoch from operations o where o.club_id = p_club and o.state = 'pending'
                union
                select o.connection_id, o.epoch from operations o where o.club_id = p_club and o.state = 'claimed') as u
         where (u.connection_id, u.epoch) <> (p_connection, p_epoch)
            on conflict (club_id, connection_id, epoch) do update set ended_at = ended_epochs.ended_at
        returning ended_at)
    select min(n.ended_at) from noted n
$$;

-- One page of an epoch that ended; its note is gone with the last. Two processes at one note only look twice. What was
-- submitted is left to its own recovery. Answers whether there is no more, and whether rows changed.
create or replace function clean_up_epoch(p_club uuid, p_connection uuid, p_epoch timestamptz, p_limit integer)
returns table (is_over boolean, has_changed boolean)
language plpgsql volatile
as $$
declare
    v_page constant uuid[] := epoch_page(p_club, p_connection, p_epoch, p_limit);
    v_ended uuid[];
    v_now timestamptz;
begin
    perform from operations o
      where o.club_id = p_club and o.id = any (v_page) and o.state in ('pending', 'claimed')
      order by o.id
        for no key update;

    v_now := lastcall_now();
    with ended as (
        update operations o
           set state = 'rejected', code = e.code, completed_at = v_now,
               claim_nonce = null, claim_account_id = null, claim_worker_id = null, claim_journal_id = null,
               claim_fencing_token = null, claim_generation = null, claim_expires_at = null
          from ended_epochs e
         where e.club_id = p_club and e.connection_id = p_connection and e.epoch = p_epoch
           and o.club_id = p_club and o.id = any (v_page)
           and o.state in ('pending', 'claimed') and o.submitted_at is null
        returning o.id)
    select array_agg(d.id) into v_ended from ended d;
    has_changed := v_ended is not null;
    if has_changed then
        perform operation_ended(p_club, v_ended, v_now);
    end if;

    is_over := cardinality(epoch_page(p_club, p_connection, p_epoch, 1)) = 0;
    if is_over then
        delete from ended_epochs e where e.club_id = p_club and e.connection_id = p_connection and e.epoch = p_epoch;
    end if;
    return next;
end
$$;
