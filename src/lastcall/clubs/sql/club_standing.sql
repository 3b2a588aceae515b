-- What a person is in a club: a row for each active role they hold, one with nulls for the owner; none for a stranger, a
-- blocked person, and for everybody in a club that is being deleted.
create or replace function club_standing(p_club uuid, p_person uuid)
returns table (is_owner boolean, permissions text[], provider_role_ids text[], assignable_role_ids uuid[])
language plpgsql stable parallel safe as $$
begin
    return query
    select c.owner_id = p.id, r.permissions, r.permitted_provider_role_ids, r.assignable_role_ids
    from clubs c
    join people p on p.id = p_person and p.blocked_at is null
    left join (
        staff_assignments a
        join staff_roles r on r.club_id = a.club_id and r.id = a.role_id and r.state = 'active'
    ) on a.club_id = c.id and a.person_id = p.id
    where c.id = p_club
      and c.state <> 'deleting'
      and (c.owner_id = p.id or r.id is not null);
end
$$;

-- The same for a command: the gate first, then the look, in a statement of its own. A change of authority that is under
-- way is waited for and seen; one that comes later waits until this transaction has ended.
create or replace function held_club_standing(p_club uuid, p_person uuid)
returns table (is_owner boolean, permissions text[], provider_role_ids text[], assignable_role_ids uuid[])
language plpgsql volatile as $$
begin
    perform from club_gates g where g.club_id = p_club for share;

    return query select s.* from club_standing(p_club, p_person) s;
end
$$;
