-- How long a read is waited for, claimed, and shown: each from its own beginning (lastcall/reads/states.py; a test holds
-- the two equal).
create or replace function read_life() returns interval
language sql immutable parallel safe return interval '60 seconds';

-- After this time from when it was asked for, nothing of a read is left.
create or replace function read_kept() returns interval
language sql immutable parallel safe return interval '15 minutes';

-- At the boundary it is over; what lies in the future, as after a clock that was set back, never began.
create or replace function is_read_alive(p_since timestamptz, p_now timestamptz) returns boolean
language sql immutable parallel safe
return coalesce(p_since > p_now - interval '60 seconds' and p_since <= p_now, false);

-- How a read stands now; one that nobody answered in time has failed, without anybody writing it. ``remaining`` is how
-- much longer what was read is shown; zero when it is not.
create or replace function read_standing(p_row provider_reads, p_now timestamptz)
returns table (state text, code text, remaining interval)
language sql stable
as $$
    select case when w.is_over then 'failed' else p_row.state end,
           case when w.is_over then 'not_answered' else p_row.code end,
           case
               when p_row.state = 'succeeded' and is_read_alive(p_row.observed_at, p_now)
                   then p_row.observed_at + read_life() - p_now
               else interval '0'
           end
      from (select p_row.state = 'pending' and not is_read_alive(p_row.requested_at, p_now)
                   or p_row.state = 'running' and not is_read_alive(p_row.claimed_at, p_now) as is_over) as w
$$;

-- Whether one of those who asked holds the permission now. For a statement after the club's gate.
create or replace function read_is_wanted(p_club uuid, p_read uuid, p_permission text) returns boolean
language sql stable
as $$
    select exists (
        select
          from provider_read_askers a
         cross join lateral person_standing(p_club, a.person_id, p_permission, null) as s
         where a.club_id = p_club and a.read_id = p_read and s.holds)
$$;

-- All that the judging of a read rests on, in the house's order: the gates of fleet and account, of the club, of the
-- connection. False: there is no such connection.
create or replace function lock_for_reading(p_account uuid, p_club uuid, p_connection uuid) returns boolean
language plpgsql volatile
as $$
begin
    perform lock_fleet_and_account_shared(p_account);
    perform
      from club_gates c
      join connection_gates n on n.club_id = c.club_id and n.connection_id = p_connection
     where c.club_id = p_club
       for share of c
       for share of n;
    return found;
end
$$;

-- Why a read is to be had by nobody now, or null. For a statement after the gates.
create or replace function read_refusal(
    p_club uuid, p_connection uuid, p_read uuid, p_permission text, p_feature text
) returns text
language sql stable
as $$
    select case
               when p_permission is null then 'unsupported_operation'
               when not read_is_wanted(p_club, p_read, p_permission) then 'access_expired'
               when not p_feature = any (c.features) then 'feature_disabled'
           end
      from connections c
     where c.club_id = p_club and c.id = p_connection
$$;

-- Ends a read without an answer. The caller holds the row and has judged.
create or replace function fail_read_row(p_club uuid, p_read uuid, p_code text) returns void
language plpgsql volatile
as $$
begin
    update provider_reads r
       set state = 'failed', code = p_code,
           claim_worker_id = null, claim_fencing_token = null, claim_nonce = null, claimed_at = null
     where r.club_id = p_club and r.id = p_read and r.state in ('pending', 'running');
end
$$;
