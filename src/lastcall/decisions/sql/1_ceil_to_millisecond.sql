-- The scheduler's resolution is a millisecond. Rounded up, a wake is never before the row is due (RET-04).
create or replace function ceil_to_millisecond(p_time timestamptz) returns timestamptz
language sql stable parallel safe as $$
    select case
        when date_trunc('milliseconds', p_time) = p_time then p_time
        else date_trunc('milliseconds', p_time) + interval '1 millisecond'
    end
$$;
