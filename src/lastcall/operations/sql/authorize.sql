-- The last word before the one write (WRK-03). Locks first, in the house's order: the gates of fleet and
-- account, of the club, of the connection, then the row. Only then, in new statements and by a fresh now,
-- everything is judged: a statement that waited for a lock still sees all other rows as they were before the
-- wait.
--
-- Outcomes: authorized, or a refusal's code; ``state`` is what became of the row, null when it is not the
-- caller's.
create or replace function authorize_operation(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_operation uuid, p_nonce uuid, p_kind text, p_permission text, p_feature text, p_grants text[],
    p_is_protective boolean, p_evidence jsonb, p_evidence_age interval
)
returns table (
    outcome text, judged_at timestamptz, state text, due_at timestamptz, ready_at timestamptz,
    expires_at timestamptz, execute_before timestamptz
)
language plpgsql volatile
as $$
declare
    -- The age was true when the call arrived; what it waits for locks makes the evidence older, not younger.
    v_arrived constant timestamptz := lastcall_now();
    v_now timestamptz;
    v_row operations;
begin
    if not is_commit_durable() then
        raise exception 'synchronous_commit could not be set';
    end if;

    perform lock_fleet_and_account_shared(p_account);
    perform from club_gates g where g.club_id = p_club for share;
    perform from connection_gates g where g.club_id = p_club and g.connection_id = p_connection for share;
    select * into v_row from operations o where o.club_id = p_club and o.id = p_operation for no key update;

    v_now := lastcall_now();
    judged_at := v_now;
    outcome := claim_refusal(
        v_row, p_account, p_generation, p_worker, p_connection, p_epoch, p_token, p_nonce, v_now);
    if outcome is null and v_row.kind <> p_kind then
        outcome := 'claim_unavailable';
    end if;
    if outcome is null then
        perform store_own_member_evidence(
            p_club, p_connection, p_epoch, p_account, p_worker, p_evidence, v_arrived - p_evidence_age);
        -- That may have waited for another authorization of the connection. Of what was judged only time went on,
        -- and the lease outlives the claim.
        v_now := lastcall_now();
        judged_at := v_now;
        outcome := case
            when v_row.claim_expires_at <= v_now then 'claim_unavailable'
            else authority_refusal(v_row, p_account, p_permission, p_feature, p_grants, p_is_protective, v_now)
        end;
    end if;
    if outcome in ('stale_key', 'claim_unavailable', 'stale_lease', 'collector_disabled') then
        return next;
        return;
    end if;

    due_at := v_row.due_at;
    ready_at := v_row.ready_at;
    if outcome is null then
        update operations o
           set state = 'submitted', submitted_at = v_now, claim_expires_at = v_now + submission_life()
         where o.club_id = p_club and o.id = p_operation and o.state = 'claimed'
        returning 'authorized', o.state, o.claim_expires_at, o.due_at + operation_grace()
          into outcome, state, expires_at, execute_before;
        outcome := coalesce(outcome, 'claim_unavailable');
    else
        state := case outcome
            when 'connection_paused' then 'pending'
            when 'late_window_elapsed' then 'missed'
            else 'rejected'
        end;
        perform settle_unsent(p_club, p_operation, state, outcome, v_now);
    end if;
    return next;
end
$$;

-- Why this row may not be sent under the authority that stands now, or null. One statement's view of
-- everything.
create or replace function authority_refusal(
    p_row operations, p_account uuid, p_permission text, p_feature text, p_grants text[], p_is_protective boolean,
    p_now timestamptz
) returns text
language plpgsql stable
as $$
declare
    v_obstacle text := connection_obstacle(p_row.club_id, p_row.connection_id, p_account, p_row.epoch, p_now);
    v_body jsonb;
begin
    if v_obstacle <> 'none' then
        return case v_obstacle
            when 'epoch' then 'connection_changed'
            when 'connection_state' then 'connection_inactive'
            when 'frozen' then 'connection_paused'
            when 'connection_switch' then 'connection_paused'
            else 'collector_disabled'
        end;
    end if;
    if is_late(p_row.due_at, p_now) then
        return 'late_window_elapsed';
    end if;
    if not club_is_open(p_row.club_id) then
        return 'club_inactive';
    end if;
    if not person_holds(p_row.club_id, p_row.actor_id, p_permission) then
        return 'staff_permission';
    end if;
    if not feature_is_on(p_row.club_id, p_row.connection_id, p_feature) then
        return 'feature_disabled';
    end if;
    v_body := fresh_evidence(p_row.club_id, p_row.connection_id, p_row.epoch, p_account, p_now);
    if v_body is null then
        return 'provider_authority';
    end if;
    if v_body ->> 'memberStatus' is distinct from 'member' then
        return 'membership';
    end if;
    if not holds_grants(v_body, p_grants) then
        return 'provider_permissions';
    end if;
    if p_is_protective and is_protected_target(p_row.payload, v_body) then
        return 'protected_target';
    end if;
    return role_refusal(p_row, v_body);
end
$$;

-- What VRChat said of the account's membership at most a minute ago (BUD-05), or null. A read from the future
-- is none.
create or replace function fresh_evidence(
    p_club uuid, p_connection uuid, p_epoch timestamptz, p_account uuid, p_now timestamptz
) returns jsonb
language plpgsql stable
as $$
begin
    return (
        select e.body
          from own_member_evidence(p_club, p_connection, p_epoch) as e
         where e.account_id = p_account
           and e.observed_at between p_now - evidence_life() and p_now);
end
$$;

-- The account itself and the owner of the group are no targets.
create or replace function is_protected_target(p_payload jsonb, p_body jsonb) returns boolean
language plpgsql immutable
as $$
begin
    return lower(p_payload ->> 'targetUserId') in (lower(p_body ->> 'ownerId'), lower(p_body ->> 'userId'));
end
$$;

-- A role that is handed out must be one of the group's now, and one that the authorizing person may assign.
create or replace function role_refusal(p_row operations, p_body jsonb) returns text
language plpgsql stable
as $$
declare
    v_role constant text := p_row.payload ->> 'roleId';
begin
    if v_role is null then
        return null;
    end if;
    if not exists (
        select from jsonb_array_elements(p_body -> 'roles') as r (role) where lower(r.role ->> 'id') = lower(v_role)
    ) then
        return 'role_scope';
    end if;
    if not person_may_assign(p_row.club_id, p_row.actor_id, v_role) then
        return 'role_not_assignable';
    end if;
    return null;
end
$$;
