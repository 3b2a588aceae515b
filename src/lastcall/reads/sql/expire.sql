-- Deletes those of these reads that are old enough, with who asked for them and the evidence that they left; what was
-- read later under the same subject stays. Answers how many.
create or replace function expire_reads(p_clubs uuid[], p_reads uuid[]) returns integer
language plpgsql volatile
as $$
declare
    v_read record;
    v_count integer := 0;
begin
    perform from provider_reads r
      where (r.club_id, r.id) in (select * from unnest(p_clubs, p_reads))
      order by r.id
        for update;

    for v_read in
        delete from provider_reads r
         where (r.club_id, r.id) in (select * from unnest(p_clubs, p_reads))
           and r.requested_at <= lastcall_now() - read_kept()
        returning r.club_id, r.connection_id, r.kind, r.evidence_subject, r.observed_at
    loop
        v_count := v_count + 1;
        if v_read.observed_at is not null and v_read.evidence_subject is not null then
            perform forget_read_evidence(
                v_read.club_id, v_read.connection_id, v_read.kind, v_read.evidence_subject, v_read.observed_at);
        end if;
    end loop;
    return v_count;
end
$$;
