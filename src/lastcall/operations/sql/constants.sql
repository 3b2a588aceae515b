-- The times that both sides of the worker protocol keep (lastcall/protocol/constants.py; a test holds them
-- equal).
create or replace function operation_grace() returns interval
language sql immutable parallel safe return interval '15 minutes';

create or replace function claim_life() returns interval
language sql immutable parallel safe return interval '240 seconds';

create or replace function submission_life() returns interval
language sql immutable parallel safe return interval '120 seconds';

create or replace function evidence_life() returns interval
language sql immutable parallel safe return interval '60 seconds';

create or replace function transient_retries() returns integer
language sql immutable parallel safe return 2;

-- RCV-04: the exact boundary is still in time.
create or replace function is_late(p_due_at timestamptz, p_now timestamptz) returns boolean
language sql stable parallel safe return p_now > p_due_at + interval '15 minutes';

-- The first moment at which is_late holds: whoever wakes then finds work.
create or replace function late_at(p_due_at timestamptz) returns timestamptz
language sql immutable parallel safe return p_due_at + interval '15 minutes 1 microsecond';
