-- Evidence of what somebody had read: one row a kind and subject, the newest read of it.

-- Keeps what was read, unless something read later is there already; a read from the future gives way to any other.
create or replace function store_read_evidence(
    p_club uuid, p_connection uuid, p_epoch timestamptz, p_account uuid, p_worker uuid,
    p_kind text, p_subject text, p_body jsonb, p_observed_at timestamptz
) returns void
language plpgsql volatile
as $$
begin
    insert into evidence as e
           (club_id, connection_id, kind, subject, epoch, body, observed_at, account_id, worker_id)
    values (p_club, p_connection, p_kind, p_subject, p_epoch, p_body, p_observed_at, p_account, p_worker)
        on conflict (club_id, connection_id, kind, subject) do update
       set epoch = excluded.epoch, body = excluded.body, observed_at = excluded.observed_at,
           account_id = excluded.account_id, worker_id = excluded.worker_id
     where e.observed_at < excluded.observed_at or e.epoch <> excluded.epoch or e.observed_at > lastcall_now();
end
$$;

-- Forgets what was read then or earlier under this subject.
create or replace function forget_read_evidence(
    p_club uuid, p_connection uuid, p_kind text, p_subject text, p_observed_at timestamptz
) returns void
language plpgsql volatile
as $$
begin
    delete from evidence e
     where e.club_id = p_club and e.connection_id = p_connection and e.kind = p_kind and e.subject = p_subject
       and e.observed_at <= p_observed_at;
end
$$;
