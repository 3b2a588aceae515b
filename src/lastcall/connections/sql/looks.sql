-- When a collector looks at a group next though there is nothing else to do.

-- A moment from p_least to p_most after p_now that lies p_phase (0 to 1) into its minute; where several do, one of them.
-- A room of less than a minute has no place for every phase: there it is how far into the room the moment lies.
create or replace function spread_moment(
    p_now timestamptz, p_least interval, p_most interval, p_phase double precision
) returns timestamptz
language plpgsql volatile
as $$
declare
    v_earliest constant timestamptz := p_now + p_least;
    v_latest constant timestamptz := p_now + p_most;
    v_moment timestamptz;
begin
    if v_latest - v_earliest < interval '1 minute' then
        return v_earliest + (v_latest - v_earliest) * p_phase;
    end if;
    v_moment := date_trunc('minute', v_earliest, 'UTC') + interval '1 minute' * p_phase;
    if v_moment < v_earliest then
        v_moment := v_moment + interval '1 minute';
    end if;
    return v_moment
        + interval '1 minute' * floor(random() * (1 + floor(extract(epoch from v_latest - v_moment) / 60)));
end
$$;

-- The next look at a group whose pass, begun at p_claimed_at, is over, and whether it lies at a phase of its own; null for
-- none. One that somebody asked for while the pass went on stands: the pass may have looked before. A state that waits
-- is looked at in 3 to 5 minutes, and with every look that finds it unchanged after a longer while, up to an hour; a pass
-- that did not come to look, because the allowance or VRChat stood against it, is wanted still, as is one that has to
-- leave. Where aggregates are read: 30 to 60 seconds after they alone failed (COL-05), after the connection's backoff, and
-- else as protocol/constants.py says. Everything else waits for work, and costs nothing.
create or replace function next_look(
    p_connection connections, p_claimed_at timestamptz, p_phase double precision, p_now timestamptz
)
returns table (at timestamptz, is_spread boolean)
language plpgsql volatile
as $$
declare
    v_waited interval;
begin
    is_spread := true;
    if p_connection.state = any (passable_states())
       and p_connection.next_look_at > p_claimed_at and p_connection.next_look_at <= p_now then
        at := p_connection.next_look_at;
        is_spread := false;
    elsif p_connection.state in ('awaiting_approval', 'awaiting_invite')
       or p_connection.state = 'connecting' and p_connection.last_success_at >= p_claimed_at then
        v_waited := greatest(
            interval '3 minutes', least(p_now - coalesce(p_connection.waiting_since, p_now), interval '36 minutes'));
        at := spread_moment(p_now, v_waited, v_waited * 5 / 3, p_phase);
    elsif p_connection.state in ('connecting', 'disconnecting') then
        at := p_connection.next_look_at;
        is_spread := false;
    elsif p_connection.state not in ('active', 'degraded') then
        at := null;
        is_spread := false;
    elsif not 'analytics' = any (p_connection.features) then
        -- Somebody may have asked for one while the pass was busy with actions, which looks at nothing else.
        at := case when p_connection.next_look_at > p_claimed_at then p_connection.next_look_at end;
        is_spread := false;
    elsif p_connection.backoff_until > p_now then
        at := p_connection.backoff_until;
        is_spread := false;
    elsif p_connection.telemetry_failures > 0 then
        at := spread_moment(p_now, interval '30 seconds', interval '60 seconds', p_phase);
    elsif p_connection.has_visitors then
        at := spread_moment(p_now, interval '60 seconds', interval '120 seconds', p_phase);
    else
        at := spread_moment(p_now, interval '180 seconds', interval '300 seconds', p_phase);
    end if;
    return next;
end
$$;
