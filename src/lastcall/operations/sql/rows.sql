-- What the steps share: is this the claim, and how an unsent row is taken out of its claim.

drop function if exists is_held_by(operations, uuid, uuid, uuid, timestamptz, bigint, uuid, timestamptz);
drop function if exists claim_refusal(operations, uuid, integer, uuid, uuid, timestamptz, bigint, uuid, timestamptz);

-- A database that acknowledges before it has written must not do so here: a submission that a crash forgets would be
-- sent again. Stronger settings are left alone. (A SET clause of the function would end before its COMMIT.) The value
-- is true in any case, so that a caller can use it without a statement of its own.
create or replace function is_commit_durable() returns boolean
language sql volatile
as $$
    select current_setting('synchronous_commit') not in ('off', 'local', 'remote_write')
        or set_config('synchronous_commit', 'on', true) = 'on'
$$;

-- Exactly that claim: every field of it, whoever asks.
create or replace function is_claim_of(
    p_row operations, p_account uuid, p_worker uuid, p_connection uuid, p_epoch timestamptz, p_token bigint,
    p_nonce uuid
) returns boolean
language sql immutable
as $$
    select coalesce(
        p_row.connection_id = p_connection
        and p_row.epoch = p_epoch
        and p_row.claim_account_id = p_account
        and p_row.claim_worker_id = p_worker
        and p_row.claim_fencing_token = p_token
        and p_row.claim_nonce = p_nonce,
        false)
$$;

-- Claimed now, by exactly that claim and under the key that made it: what a superseded key has claimed is prepared by
-- nobody any more, and comes back when the claim ends.
create or replace function is_held_by(
    p_row operations, p_account uuid, p_generation integer, p_worker uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_nonce uuid, p_now timestamptz
) returns boolean
language sql immutable
as $$
    select p_row.state = 'claimed' and p_row.claim_expires_at > p_now and p_row.claim_generation = p_generation
        and is_claim_of(p_row, p_account, p_worker, p_connection, p_epoch, p_token, p_nonce)
$$;

-- Why the worker may not go on with a row that it holds or does not, or null: before authorize, reject and defer alike.
-- One row, for a statement after the locks. It takes no row of operations, because one that is handed to a function
-- which answers rows is put together anew for each of its columns.
create or replace function claim_refusal(
    p_is_held boolean, p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid,
    p_token bigint, p_now timestamptz
)
returns table (refusal text)
language sql stable
as $$
    select case
               when k.generation is null then 'stale_key'
               when p_is_held is not true then 'claim_unavailable'
               when l.expires_at is null then 'stale_lease'
           end
      from (values (true)) as one
      left join current_key(p_account, p_generation, p_now) as k on true
      left join current_lease(p_club, p_connection, p_account, p_worker, p_token, p_now) as l on true
$$;

-- Takes an unsent row back to pending or to the end p_state with p_code; false when it is not unsent any
-- more. The caller holds the row's lock and has judged.
create or replace function settle_unsent(
    p_club uuid, p_operation uuid, p_state text, p_code text, p_now timestamptz
) returns boolean
language plpgsql volatile
as $$
begin
    update operations o
       set state = p_state,
           code = p_code,
           completed_at = case when p_state = 'pending' then null else p_now end,
           claim_nonce = null, claim_account_id = null, claim_worker_id = null, claim_journal_id = null,
           claim_fencing_token = null, claim_generation = null, claim_expires_at = null
     where o.club_id = p_club
       and o.id = p_operation
       and o.state in ('pending', 'claimed')
       and o.submitted_at is null;
    if not found then
        return false;
    end if;
    if p_state <> 'pending' then
        perform operation_ended(p_club, array[p_operation], p_now);
    end if;
    return true;
end
$$;
