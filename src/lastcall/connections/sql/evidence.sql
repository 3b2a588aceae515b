-- Evidence of the account's own membership in the group. The body is the wire's OwnMemberEvidence without its age:
-- groupId, ownerId, userId, memberStatus, permissions, roleIds, roles [{id, name, permissions, isManagement}], privacy.

-- Whether being a member ends no row of failures: analytics is all that is switched on, and the pass that goes on failed
-- at it (COL-05, COL-11). A backoff that reaches past the beginning of the pass is of this pass: none begins under one.
create or replace function fails_at_its_work(p_connection connections) returns boolean
language sql immutable
as $$
    select p_connection.features <@ array['analytics']
       and coalesce(p_connection.backoff_until > p_connection.last_attempt_at, false)
$$;

-- Keeps what was read, unless something read later is there already. A read that shows a member also ends a row of
-- failures: the connection works. ``p_observed_at`` is the moment the call arrived
-- less the age it states, taken before any lock is waited for. One read serves several operations and comes with each
-- of them, its moment a little off each time: the same body within a second is that read, and is not written again.
-- A read from the future, as one is after the database's clock was set back, gives way to any other.
create or replace function store_own_member_evidence(
    p_club uuid, p_connection uuid, p_epoch timestamptz, p_account uuid, p_worker uuid,
    p_body jsonb, p_observed_at timestamptz
) returns boolean
language plpgsql volatile
as $$
begin
    if exists (
        select
          from evidence e
         where e.club_id = p_club and e.connection_id = p_connection and e.kind = 'own_member'
           and e.subject = p_body ->> 'userId' and e.epoch = p_epoch and e.account_id = p_account
           and e.observed_at between p_observed_at - interval '1 second' and (select lastcall_now())
           and e.body = p_body
    ) then
        return false;
    end if;
    insert into evidence as e
           (club_id, connection_id, kind, subject, epoch, body, observed_at, account_id, worker_id)
    values (p_club, p_connection, 'own_member', p_body ->> 'userId', p_epoch, p_body, p_observed_at, p_account, p_worker)
        on conflict (club_id, connection_id, kind, subject) do update
       set epoch = excluded.epoch, body = excluded.body, observed_at = excluded.observed_at,
           account_id = excluded.account_id, worker_id = excluded.worker_id
     where e.observed_at < excluded.observed_at or e.epoch <> excluded.epoch or e.observed_at > lastcall_now();
    if not found then
        return false;
    end if;
    update connections c
       set consecutive_failures = 0, backoff_until = null, state = 'active', last_fault = null
     where c.club_id = p_club and c.id = p_connection
       and p_body ->> 'memberStatus' = 'member'
       and c.state in ('active', 'degraded')
       and (c.consecutive_failures > 0 or c.state = 'degraded')
       and not fails_at_its_work(c);
    return true;
end
$$;

-- The newest evidence of this epoch read by this account, as itself and of this group; at most one row.
create or replace function evidence_read_by(
    p_club uuid, p_connection uuid, p_epoch timestamptz, p_account uuid, p_vrchat_user text, p_group text
)
returns table (account_id uuid, observed_at timestamptz, body jsonb)
language sql stable
as $$
    select e.account_id, e.observed_at, e.body
      from evidence e
     where e.club_id = p_club and e.connection_id = p_connection
       and e.kind = 'own_member' and e.subject = p_vrchat_user
       and e.account_id = p_account and e.epoch = p_epoch
       and e.body ->> 'groupId' = p_group
$$;

-- The same, of the account that serves the connection now.
create or replace function own_member_evidence(p_club uuid, p_connection uuid, p_epoch timestamptz)
returns table (account_id uuid, observed_at timestamptz, body jsonb)
language sql stable
as $$
    select e.account_id, e.observed_at, e.body
      from connections c
      join accounts a on a.id = c.account_id
     cross join lateral evidence_read_by(c.club_id, c.id, p_epoch, a.id, a.vrchat_user_id, c.group_id) as e
     where c.club_id = p_club and c.id = p_connection
$$;

-- The group lets the account do all of this; '*' stands for everything. Without a list nothing is granted.
create or replace function holds_grants(p_body jsonb, p_grants text[]) returns boolean
language sql immutable
as $$
    select coalesce(
        p_body ->> 'memberStatus' = 'member'
        and jsonb_typeof(p_body -> 'permissions') = 'array'
        and (p_body -> 'permissions' ? '*' or p_body -> 'permissions' ?& p_grants),
        false)
$$;
