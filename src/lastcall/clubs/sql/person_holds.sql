-- What a person may do in a club, for statements that judge. Called in the statement after the one that took the
-- club's gate FOR SHARE, so what it reads is what the gate protects. In PL/pgSQL, because a session keeps the plan then;
-- a function in SQL that cannot be inlined is planned anew by every caller (0.14 ms of each authorization).

-- Whether the person holds the permission there: the owner holds all, others the union of their active roles,
-- a blocked person nothing.
create or replace function person_holds(p_club uuid, p_person uuid, p_permission text) returns boolean
language plpgsql stable parallel safe as $$
begin
    return exists (
        select
        from people p
        join clubs c on c.id = p_club and c.state <> 'deleting'
        where p.id = p_person
          and p.blocked_at is null
          and (
              c.owner_id = p.id
              or exists (
                  select
                  from staff_assignments a
                  join staff_roles r on r.club_id = a.club_id and r.id = a.role_id
                  where a.club_id = p_club
                    and a.person_id = p_person
                    and r.state = 'active'
                    and p_permission = any (r.permissions)
              )
          )
    );
end
$$;

-- Whether the person may assign that VRChat role: the owner any, others when one active role both has
-- assign_vrchat_roles and lists it. Ids of VRChat are compared without regard to case.
create or replace function person_may_assign(p_club uuid, p_person uuid, p_provider_role text) returns boolean
language plpgsql stable parallel safe as $$
begin
    return exists (
        select
        from people p
        join clubs c on c.id = p_club and c.state <> 'deleting'
        where p.id = p_person
          and p.blocked_at is null
          and (
              c.owner_id = p.id
              or exists (
                  select
                  from staff_assignments a
                  join staff_roles r on r.club_id = a.club_id and r.id = a.role_id
                  where a.club_id = p_club
                    and a.person_id = p_person
                    and r.state = 'active'
                    and 'assign_vrchat_roles' = any (r.permissions)
                    and lower(p_provider_role) = any (r.permitted_provider_role_ids)
              )
          )
    );
end
$$;
