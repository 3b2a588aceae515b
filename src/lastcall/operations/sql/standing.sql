-- What stands for or against an operation, as rows: in SQL and stable, so that they are planned as part of the one
-- statement in which a step judges.

drop function if exists authority_refusal(operations, uuid, text, text, text[], boolean, timestamptz);
drop function if exists fresh_evidence(uuid, uuid, timestamptz, uuid, timestamptz);
drop function if exists role_refusal(operations, jsonb);
drop function if exists claim_obstacle(uuid, integer, uuid, uuid, uuid, timestamptz, bigint, timestamptz);
drop function if exists club_is_open(uuid);
drop function if exists authority(operations, uuid, text, text, text[], boolean, timestamptz);
drop function if exists is_role_of_group(jsonb, text);

-- A paused club goes on with what was reviewed; an archived one sends nothing.
create or replace function club_sends(p_club_state text) returns boolean
language sql immutable
as $$ select p_club_state in ('active', 'paused') $$;

-- Why this worker may claim nothing of this connection now, or 'none'; and how long its lease lasts. One row.
create or replace function claim_standing(
    p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamptz,
    p_token bigint, p_now timestamptz
)
returns table (obstacle text, lease_until timestamptz)
language sql stable
as $$
    select case
               when k.generation is null then 'stale_key'
               when l.expires_at is null then 'stale_lease'
               when club_sends(c.state) is not true then 'club_inactive'
               else coalesce(s.obstacle, 'epoch')
           end,
           l.expires_at
      from (values (true)) as one
      left join clubs c on c.id = p_club
      left join current_key(p_account, p_generation, p_now) as k on true
      left join current_lease(p_club, p_connection, p_account, p_worker, p_token, p_now) as l on true
      left join connection_standing(p_club, p_connection, p_account, p_epoch, p_now) as s on true
$$;

-- What came with the call is what is kept already: the very same, read at the same time or later (one read serves
-- several operations, its moment a little off each time).
create or replace function is_evidence_of(
    p_body jsonb, p_observed_at timestamptz, p_brought jsonb, p_brought_from timestamptz
) returns boolean
language sql stable
as $$ select coalesce(p_observed_at >= p_brought_from - interval '1 second' and p_body = p_brought, false) $$;

-- The account itself and the owner of the group are no targets.
create or replace function is_protected_target(p_payload jsonb, p_body jsonb) returns boolean
language sql immutable
as $$ select lower(p_payload ->> 'targetUserId') in (lower(p_body ->> 'ownerId'), lower(p_body ->> 'userId')) $$;

-- A dependent invitation is sent as the invitation that it has become.
create or replace function is_sent_as(p_stored text, p_sent text) returns boolean
language sql immutable
as $$
    select p_stored = p_sent or p_stored = 'invite_to_created_instance' and p_sent = 'invite_to_instance'
$$;

-- The account and the target were seen to be friends, not longer ago than evidence lives; what was seen in the future
-- is no evidence.
create or replace function is_friendly(
    p_payload jsonb, p_friend text, p_is_friend boolean, p_seen_at timestamptz, p_now timestamptz
) returns boolean
language sql immutable
as $$
    select coalesce(
        p_is_friend
        and lower(p_friend) = lower(p_payload ->> 'targetUserId')
        and p_seen_at between p_now - evidence_life() and p_now,
        false)
$$;

-- The roles that a payload names must be the group's now; no role is no obstacle. VRChat's ids are compared without
-- regard to case, but they come in one case nearly always.
create or replace function are_roles_of_group(p_body jsonb, p_payload jsonb) returns boolean
language plpgsql immutable
as $$
declare
    v_role constant text := p_payload ->> 'roleId';
begin
    if p_payload ? 'roleIds' then
        return not exists (
            select lower(named) from jsonb_array_elements_text(p_payload -> 'roleIds') as r (named)
            except
            select lower(role ->> 'id') from jsonb_array_elements(p_body -> 'roles') as r (role));
    end if;
    if v_role is null or p_body -> 'roles' @> jsonb_build_array(jsonb_build_object('id', v_role)) then
        return true;
    end if;
    return exists (
        select from jsonb_array_elements(p_body -> 'roles') as r (role) where lower(r.role ->> 'id') = lower(v_role));
end
$$;

-- An instance for everybody needs a group that everybody may see, and roles are named for members only.
create or replace function has_instance_options(p_body jsonb, p_payload jsonb) returns boolean
language sql immutable
as $$
    select case p_payload ->> 'access'
        when 'public' then coalesce(p_body ->> 'privacy' = 'default', false)
            and coalesce(p_payload -> 'roleIds', '[]') = '[]'
        when 'plus' then coalesce(p_payload -> 'roleIds', '[]') = '[]'
        else true
    end
$$;

-- Why an operation may not be sent under the authority that stands now, or null; with the evidence that says what the
-- account may do, if there is any that is fresh (BUD-05). One row, for a statement after the locks. A read from the
-- future is no evidence.
create or replace function authority(
    p_club uuid, p_connection uuid, p_epoch timestamptz, p_actor uuid, p_due_at timestamptz, p_payload jsonb,
    p_account uuid, p_permission text, p_feature text, p_grants text[], p_is_protective boolean, p_now timestamptz
)
returns table (refusal text, body jsonb, observed_at timestamptz)
language sql stable
as $$
    select case
               when s.obstacle is null or s.obstacle = 'epoch' then 'connection_changed'
               when s.obstacle = 'connection_state' then 'connection_inactive'
               when s.obstacle in ('frozen', 'connection_switch') then 'connection_paused'
               when s.obstacle <> 'none' then 'collector_disabled'
               when is_late(p_due_at, p_now) then 'late_window_elapsed'
               when club_sends(p.club_state) is not true then 'club_inactive'
               when not p.holds then 'staff_permission'
               when not p_feature = any (s.features) then 'feature_disabled'
               when e.body is null then 'provider_authority'
               when e.body ->> 'memberStatus' is distinct from 'member' then 'membership'
               when not holds_grants(e.body, p_grants) then 'provider_permissions'
               when p_is_protective and is_protected_target(p_payload, e.body) then 'protected_target'
               when not are_roles_of_group(e.body, p_payload) then 'role_scope'
               when p_payload ->> 'roleId' is not null and not p.may_assign then 'role_not_assignable'
               when not has_instance_options(e.body, p_payload) then 'invalid_instance_options'
           end,
           e.body, e.observed_at
      from person_standing(p_club, p_actor, p_permission, p_payload ->> 'roleId') as p
      left join connection_standing(p_club, p_connection, p_account, p_epoch, p_now) as s on true
      left join lateral (
           select r.body, r.observed_at
             from evidence_read_by(
                  p_club, p_connection, p_epoch, p_account, s.vrchat_user_id, s.group_id) as r
            where r.observed_at between p_now - evidence_life() and p_now) as e on true
$$;
