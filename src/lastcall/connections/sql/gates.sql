-- The gates of the fleet and of an account are advisory locks of the transaction: whoever is about to let something
-- out shares them, whoever takes authority away holds them alone. Waiters queue, so a switch is not starved by
-- sharers who keep coming (a shared row would starve it). They are taken before the club's and the connection's gate.

drop function if exists lock_fleet_and_account_shared(uuid); -- no replacement can change what a routine answers

create or replace function fleet_gate_key() returns bigint
language sql immutable
as $$ select hashtextextended('lastcall.fleet', 0) $$;

create or replace function account_gate_key(p_account uuid) returns bigint
language sql immutable
as $$ select hashtextextended('lastcall.account:' || p_account::text, 0) $$;

-- Always true, once both are held. As a condition in PL/pgSQL it becomes part of the caller and costs no statement.
create or replace function lock_fleet_and_account_shared(p_account uuid) returns boolean
language sql volatile
as $$
    select pg_advisory_xact_lock_shared(fleet_gate_key()) is not null
       and pg_advisory_xact_lock_shared(account_gate_key(p_account)) is not null
$$;

create or replace function lock_fleet() returns void
language plpgsql volatile
as $$
begin
    perform pg_advisory_xact_lock(fleet_gate_key());
end
$$;

create or replace function lock_account(p_account uuid) returns void
language plpgsql volatile
as $$
begin
    perform pg_advisory_xact_lock(account_gate_key(p_account));
end
$$;

-- Shuts the connection's gate until the end of the transaction. Whatever the caller reads must be read in a later
-- statement. False: there is no such connection.
create or replace function raise_connection_gate(p_club uuid, p_connection uuid) returns boolean
language plpgsql volatile
as $$
begin
    update connection_gates
       set generation = generation + 1
     where club_id = p_club and connection_id = p_connection;
    return found;
end
$$;
