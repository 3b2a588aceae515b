-- How a claim of a read ends: with a page, or without one. The gates are held first, then the row; all is judged in new
-- statements after that.

-- Why the worker may not say anything about this read, or null. For a statement after the locks.
create or replace function read_claim_refusal(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_read uuid, p_nonce uuid, p_now timestamptz
) returns text
language sql stable
as $$
    select case
               when k.generation is null then 'stale_key'
               when s.obstacle in ('fleet_switch', 'account_switch', 'account_state') then 'collector_disabled'
               when r.id is null then 'read_unavailable'
               when l.expires_at is null then 'stale_lease'
               when s.obstacle is distinct from 'none' or club_sends(c.state) is not true then 'read_unavailable'
           end
      from (values (true)) as one
      left join current_key(p_account, p_generation, p_now) as k on true
      left join current_lease(p_club, p_connection, p_account, p_worker, p_token, p_now) as l on true
      left join connection_standing(p_club, p_connection, p_account, p_epoch, p_now) as s on true
      left join clubs c on c.id = p_club
      left join provider_reads r
             on r.club_id = p_club and r.id = p_read and r.state = 'running' and r.connection_id = p_connection
            and r.epoch = p_epoch and r.account_id = p_account and r.credential_generation = p_generation
            and r.claim_worker_id = p_worker and r.claim_fencing_token = p_token and r.claim_nonce = p_nonce
            and is_read_alive(r.claimed_at, p_now)
$$;

-- Why a page that came under a good claim may not be shown, or null: the people who asked, the feature, and what VRChat
-- lets the account do by evidence that is fresh.
create or replace function page_refusal(
    p_account uuid, p_club uuid, p_connection uuid, p_epoch timestamptz, p_read uuid, p_permission text, p_feature text,
    p_grants text[], p_observed_at timestamptz, p_now timestamptz
) returns text
language sql stable
as $$
    select coalesce(
               read_refusal(p_club, p_connection, p_read, p_permission, p_feature),
               case
                   when not is_read_alive(p_observed_at, p_now) then 'answer_too_old'
                   when e.body is null then 'provider_authority'
                   when e.body ->> 'memberStatus' is distinct from 'member' then 'membership'
                   when not holds_grants(e.body, p_grants) then 'provider_permissions'
               end)
      from connections c
      join accounts a on a.id = p_account
      left join lateral (
           select v.body
             from evidence_read_by(p_club, p_connection, p_epoch, p_account, a.vrchat_user_id, c.group_id) as v
            where v.observed_at between p_now - evidence_life() and p_now) as e on true
     where c.club_id = p_club and c.id = p_connection
$$;

-- What was seen is about the connection's group and its account.
create or replace function is_about(p_club uuid, p_connection uuid, p_account uuid, p_evidence jsonb) returns boolean
language sql stable
as $$
    select exists (
        select
          from connections c
          join accounts a on a.id = p_account
         where c.club_id = p_club and c.id = p_connection
           and c.group_id = p_evidence ->> 'groupId' and a.vrchat_user_id = p_evidence ->> 'userId')
$$;

create or replace function lock_read(p_account uuid, p_club uuid, p_connection uuid, p_read uuid) returns void
language plpgsql volatile
as $$
begin
    perform lock_for_reading(p_account, p_club, p_connection);
    perform from provider_reads r where r.club_id = p_club and r.id = p_read for no key update;
end
$$;

-- Outcomes: recorded; failed, with the code that the read has now; or why the claim is not this worker's any more, and
-- then the row is left alone. Ages are of when the call arrived: what it waits for locks makes what was seen older. The
-- evidence stays whatever becomes of the page, and what the page tells stays as evidence beside it.
create or replace function complete_read(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_read uuid, p_nonce uuid, p_permission text, p_feature text, p_grants text[],
    p_evidence jsonb, p_evidence_age interval, p_age interval, p_items jsonb, p_next_offset integer, p_total integer,
    p_told jsonb
)
returns table (outcome text, code text)
language plpgsql volatile
as $$
#variable_conflict use_column
declare
    v_now timestamptz := lastcall_now();
    v_evidence_at constant timestamptz := v_now - p_evidence_age;
    v_observed_at constant timestamptz := v_now - greatest(p_age, p_evidence_age);
    v_row provider_reads;
begin
    perform lock_read(p_account, p_club, p_connection, p_read);

    v_now := lastcall_now();
    outcome := read_claim_refusal(
        p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, p_read, p_nonce, v_now);
    if outcome is null then
        if not is_about(p_club, p_connection, p_account, p_evidence) then
            outcome := 'failed';
            code := 'provider_scope';
            perform fail_read_row(p_club, p_read, code);
            return next;
            return;
        end if;
        -- This may wait for an authorization of the connection; then all is judged again.
        perform store_own_member_evidence(
            p_club, p_connection, p_epoch, p_account, p_worker, p_evidence, v_evidence_at);
        v_now := lastcall_now();
        outcome := read_claim_refusal(
            p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, p_read, p_nonce, v_now);
    end if;
    if outcome is not null then
        return next;
        return;
    end if;

    code := page_refusal(
        p_account, p_club, p_connection, p_epoch, p_read, p_permission, p_feature, p_grants, v_observed_at, v_now);
    if code is not null then
        outcome := 'failed';
        perform fail_read_row(p_club, p_read, code);
        return next;
        return;
    end if;
    outcome := 'recorded';
    update provider_reads r
       set state = 'succeeded', observed_at = v_observed_at, items = p_items, next_offset = p_next_offset,
           total = p_total,
           claim_worker_id = null, claim_fencing_token = null, claim_nonce = null, claimed_at = null
     where r.club_id = p_club and r.id = p_read and r.state is not distinct from 'running'
    returning r.* into v_row;
    if not found then
        outcome := 'read_unavailable';
    elsif p_told is not null then
        perform store_read_evidence(
            p_club, p_connection, p_epoch, p_account, p_worker, v_row.kind, v_row.evidence_subject, p_told,
            v_observed_at);
    end if;
    return next;
end
$$;

-- Outcomes: recorded, or why the claim is not this worker's any more.
create or replace function fail_read(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_read uuid, p_nonce uuid, p_code text
)
returns table (outcome text)
language plpgsql volatile
as $$
begin
    perform lock_read(p_account, p_club, p_connection, p_read);

    outcome := read_claim_refusal(
        p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, p_read, p_nonce, lastcall_now());
    if outcome is null then
        outcome := 'recorded';
        perform fail_read_row(p_club, p_read, p_code);
    end if;
    return next;
end
$$;
