-- What staff are told of operations that did not end well.

-- How long the first notice of a batch waits for the others before it is mailed.
create or replace function notice_mail_delay() returns interval
language sql immutable parallel safe return interval '60 seconds';

-- One notice for each of these operations that failed, was missed or ended unknown, whatever ended it (RCV-05); none for
-- what was sent or cancelled. The caller has ended them and holds their rows.
create or replace function note_outcomes(p_club uuid, p_operations uuid[], p_now timestamptz) returns void
language plpgsql volatile
as $$
begin
    insert into operation_notices (club_id, id, request_id, revision, outcome, actor_id, mail_at, created_at)
    select o.club_id, o.id, o.request_id, o.revision, o.state, o.actor_id, p_now + notice_mail_delay(), p_now
      from operations o
     where o.club_id = p_club and o.id = any (p_operations) and o.state in ('rejected', 'indeterminate', 'missed')
        on conflict (club_id, id) do nothing;
end
$$;

-- When the first notice is to be mailed, of all clubs, or null.
create or replace function first_notice_mail() returns timestamptz
language sql stable
as $$ select n.mail_at from operation_notices n where n.mail_at is not null order by n.mail_at, n.id limit 1 $$;

-- Whom a notice of this person's operation is for now, or null: themselves while they hold the permission, nobody while
-- they are on the staff without it, and the owner once they are off the staff.
create or replace function notice_recipient(p_club uuid, p_actor uuid, p_permission text) returns uuid
language plpgsql stable
as $$
begin
    return (
        select case
                   when s.holds then p_actor
                   when not exists (select from club_standing(p_club, p_actor)) then c.owner_id
               end
          from clubs c
         cross join lateral person_standing(c.id, p_actor, p_permission, null) as s
         where c.id = p_club and c.state <> 'deleting');
end
$$;

-- Whose notices the owner of a club sees beside their own: of everybody under whose authority something ended badly and
-- who is off the staff now. Each of them is one probe of the index, however many notices there are.
create or replace function departed_actors(p_club uuid) returns setof uuid
language sql stable
as $$
    with recursive actors (id) as (
        (select n.actor_id from operation_notices n where n.club_id = p_club order by n.actor_id limit 1)
        union all
        select (select n.actor_id
                  from operation_notices n
                 where n.club_id = p_club and n.actor_id > a.id
                 order by n.actor_id
                 limit 1)
          from actors a
         where a.id is not null)
    select a.id from actors a where a.id is not null and not exists (select from club_standing(p_club, a.id))
$$;
