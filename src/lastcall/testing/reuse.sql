-- Makes a database that a test used as new again, or finds out that this is not possible. Installed in the template of
-- the test databases, after everything else; a copy is a few hundred files, and taking one back a few statements.

create schema lastcall_kept;

create table lastcall_kept.state (fingerprint text not null);
create table lastcall_kept.tables (id oid, name text, rows text); -- rows: the copy of a table that is not empty

-- The tables that tests write.
create function lastcall_kept.tables_now() returns table (id oid, name text, plain_name text)
language sql stable
as $$
    select c.oid, format('%I.%I', n.nspname, c.relname), n.nspname || ' ' || c.relname
      from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and n.nspname in ('public', 'lastcall_testing')
$$;

-- Changes with every definition in this database, with its own settings, and with what ANALYZE and VACUUM leave
-- behind: with all that survives when the rows are put back.
create function lastcall_kept.fingerprint() returns text
language sql stable
as $$
    with changes (catalog, id, version) as (
        select 'class', oid, xmin from pg_class where oid >= 16384
        union all select 'attribute', attrelid, xmin from pg_attribute where attrelid >= 16384
        union all select 'default', oid, xmin from pg_attrdef
        union all select 'constraint', oid, xmin from pg_constraint where oid >= 16384
        union all select 'index', indexrelid, xmin from pg_index where indexrelid >= 16384
        union all select 'routine', oid, xmin from pg_proc where oid >= 16384
        union all select 'trigger', oid, xmin from pg_trigger
        union all select 'type', oid, xmin from pg_type where oid >= 16384
        union all select 'schema', oid, xmin from pg_namespace
        union all select 'extension', oid, xmin from pg_extension
        union all select 'rule', oid, xmin from pg_rewrite where oid >= 16384
        union all select 'policy', oid, xmin from pg_policy
        union all select 'event trigger', oid, xmin from pg_event_trigger
        union all select 'column statistics', starelid, xmin from pg_statistic where starelid >= 16384
        union all select 'statistics', oid, xmin from pg_statistic_ext
        union all select 'setting', setrole, xmin from pg_db_role_setting s
          where s.setdatabase = (select d.oid from pg_database d where d.datname = current_database())
    )
    select format(
        '%s %s',
        (select string_agg(format('%s %s %s %s', catalog, number, ids, versions), ', ' order by catalog)
           from (select catalog, count(*) as number, sum(id::bigint) as ids, sum(version::text::bigint) as versions
                   from changes group by catalog) as counted),
        (select format('pages %s rows %s', sum(relpages), sum(reltuples)) from pg_class where oid >= 16384))
$$;

-- Remember the database as it is now.
create procedure lastcall_kept.keep()
language plpgsql
as $$
declare
    v_table record;
    v_rows text;
    v_any boolean;
begin
    for v_table in select * from lastcall_kept.tables_now() loop
        v_rows := null;
        execute format('select exists (select from %s)', v_table.name) into v_any;
        if v_any then
            v_rows := format('lastcall_kept.%I', v_table.plain_name);
            execute format('create table %s as table %s', v_rows, v_table.name);
        end if;
        insert into lastcall_kept.tables values (v_table.id, v_table.name, v_rows);
    end loop;
    insert into lastcall_kept.state select lastcall_kept.fingerprint();
end
$$;

-- Put every row back; false when that would not make the database as it was: somebody is still connected, something
-- was defined anew, or a table has grown so much that plans would see it.
create function lastcall_kept.restore() returns boolean
language plpgsql
set session_replication_role = replica -- no foreign keys meanwhile
as $$
declare
    v_table record;
    v_differs boolean;
    v_until constant timestamptz := clock_timestamp() + interval '1 second';
begin
    -- A server process outlives its client's goodbye by a moment.
    while exists (select from pg_stat_activity
                   where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend')
    loop
        if clock_timestamp() > v_until then
            return false;
        end if;
        perform pg_sleep(0.002);
        perform pg_stat_clear_snapshot();
    end loop;
    -- A table of a test's own goes, and then no trace of it may be left.
    for v_table in select * from lastcall_kept.tables_now() where id not in (select id from lastcall_kept.tables) loop
        execute format('drop table if exists %s cascade', v_table.name);
    end loop;
    if lastcall_kept.fingerprint() <> (select fingerprint from lastcall_kept.state)
       or exists (select from pg_sequences where last_value is not null)
    then
        return false;
    end if;
    for v_table in select * from lastcall_kept.tables where pg_relation_size(id) > 0 loop
        if pg_relation_size(v_table.id) > 10 * 8192 then -- up to ten pages the planner takes an unknown table for ten
            return false;
        end if;
        v_differs := true;
        if v_table.rows is not null then
            execute format('select exists ((table %1$s except all table %2$s) union all (table %2$s except all table %1$s))',
                           v_table.name, v_table.rows) into v_differs;
        end if;
        if v_differs then
            execute format('delete from %s', v_table.name);
            if v_table.rows is not null then
                execute format('insert into %s table %s', v_table.name, v_table.rows);
            end if;
        end if;
    end loop;
    return true;
end
$$;
