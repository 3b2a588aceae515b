-- Tells an agent something about an approval, in SQL for the sweep's own step; Python's deliver() does the same. Once a
-- kind and dedup: another time changes nothing. Whoever calls it publishes the agent's hint.
create or replace function deliver_to_agent(
    p_club uuid, p_id uuid, p_agent uuid, p_kind text, p_approval uuid, p_dedup text, p_data jsonb
)
returns void
language plpgsql as $$
begin
    insert into deliveries (club_id, id, kind, channel, agent_id, approval_id, dedup, data, state, next_at)
    values (p_club, p_id, p_kind, 'agent', p_agent, p_approval, p_dedup, p_data, 'pending', lastcall_now())
    on conflict (club_id, agent_id, kind, dedup) do nothing;
end
$$;
