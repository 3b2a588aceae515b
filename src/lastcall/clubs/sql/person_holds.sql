-- What a person may do in a club, for statements that judge. Called in the statement after the one that took the
-- club's gate FOR SHARE, so what it reads is what the gate protects.

drop function if exists person_may_assign(uuid, uuid, text); -- person_standing answers it

-- What stands in the club for one person: its state, whether the person holds the permission there, and whether they
-- may assign that VRChat role. The owner holds all, others what their active roles give together, a blocked person
-- nothing, nor anybody in a club that is being deleted. A VRChat role may be assigned when one active role both has
-- assign_vrchat_roles and lists it; VRChat's ids are compared without regard to case. No row: there is no such club. In
-- SQL and stable, so that it is planned as part of the statement that asks.
create or replace function person_standing(p_club uuid, p_person uuid, p_permission text, p_provider_role text)
returns table (club_state text, holds boolean, may_assign boolean)
language sql stable
as $$
    select c.state,
           p.id is not null and (c.owner_id = p.id or coalesce(r.holds, false)),
           p.id is not null and (c.owner_id = p.id or coalesce(r.may_assign, false))
      from clubs c
      left join people p on p.id = p_person and p.blocked_at is null and c.state <> 'deleting'
      left join lateral (
           select bool_or(p_permission = any (r.permissions)) as holds,
                  bool_or('assign_vrchat_roles' = any (r.permissions)
                          and lower(p_provider_role) = any (r.permitted_provider_role_ids)) as may_assign
             from staff_assignments a
             join staff_roles r on r.club_id = a.club_id and r.id = a.role_id
            where a.club_id = p_club
              and a.person_id = p_person
              and r.state = 'active') as r on true
     where c.id = p_club
$$;

-- Whether the person holds the permission there. In PL/pgSQL, because a session keeps the plan then; a function in SQL
-- that cannot be inlined is planned anew by every caller (0.14 ms each).
create or replace function person_holds(p_club uuid, p_person uuid, p_permission text) returns boolean
language plpgsql stable parallel safe as $$
begin
    return exists (select from person_standing(p_club, p_person, p_permission, null) as s where s.holds);
end
$$;
