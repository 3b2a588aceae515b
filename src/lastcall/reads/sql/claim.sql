-- Hands the next read of one connection to the worker that holds its lease. What a kind needs comes with the call: three
-- arrays side by side.
--
-- Outcomes: claimed, nothing, stale_key, stale_lease, club_inactive, or an obstacle of the connection. What another lease
-- left running comes first, then what has waited longest. The gates are held first, so that what authorizes a claim
-- stands until it is committed; a read that nobody who asked may have any more, or whose feature is off, fails at once.
-- A row in another claim's hands is passed over: two workers never hold one.
create or replace function claim_read(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_kinds text[], p_permissions text[], p_features text[]
)
returns table (
    outcome text, read_id uuid, nonce uuid, kind text, params text, has_failed boolean
)
language plpgsql volatile
as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_refusal text;
begin
    perform lock_for_reading(p_account, p_club, p_connection);

    v_now := lastcall_now();
    has_failed := false;
    select s.obstacle into outcome
      from claim_standing(p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, v_now) as s;
    if outcome <> 'none' then
        return next;
        return;
    end if;
    loop
        select r.id into read_id
          from provider_reads r
         where r.club_id = p_club and r.connection_id = p_connection and r.epoch = p_epoch
           and r.account_id = p_account and r.credential_generation = p_generation
           and r.state in ('pending', 'running')
           and r.requested_at > v_now - read_life() and r.requested_at <= v_now
           and (r.state = 'pending' or r.claim_worker_id <> p_worker or r.claim_fencing_token <> p_token)
         order by r.state = 'pending', r.requested_at, r.id
         limit 1
           for no key update skip locked;
        if not found then
            outcome := 'nothing';
            return next;
            return;
        end if;
        select read_refusal(p_club, p_connection, r.id, k.permission, k.feature)
          into v_refusal
          from provider_reads r
          left join unnest(p_kinds, p_permissions, p_features) as k (name, permission, feature) on k.name = r.kind
         where r.club_id = p_club and r.id = read_id;
        if v_refusal is not null then
            perform fail_read_row(p_club, read_id, v_refusal);
            has_failed := true;
            continue;
        end if;
        update provider_reads r
           set state = 'running', claim_worker_id = p_worker, claim_fencing_token = p_token,
               claim_nonce = gen_random_uuid(), claimed_at = v_now
         where r.club_id = p_club and r.id = read_id and r.state in ('pending', 'running')
        returning 'claimed', r.claim_nonce, r.kind, r.params::text into outcome, nonce, kind, params;
        return next;
        return;
    end loop;
end
$$;
