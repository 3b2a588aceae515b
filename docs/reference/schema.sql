-- The schema after all migrations, written by `lastcall db dump`. It is for reading, not for
-- loading: it shows what a change to the migrations does to the whole.

create table accounts (
    id uuid not null,
    alias text not null,
    vrchat_user_id text not null,
    state text not null,
    kill_switch boolean default false not null,
    requests_per_minute integer default 30 not null,
    credential_generation integer default 0 not null,
    cooldown_until timestamp with time zone,
    created_at timestamp with time zone default lastcall_now() not null,
    updated_at timestamp with time zone default lastcall_now() not null,
    capacity integer default 100 not null,
    reserved_headroom integer default 15 not null,
    writes_per_day integer default 1000 not null,
    joined_on date,
    constraint accounts_pkey PRIMARY KEY (id),
    constraint accounts_alias_key UNIQUE (alias),
    constraint accounts_vrchat_user_id_key UNIQUE (vrchat_user_id),
    constraint accounts_capacity_check CHECK (((capacity >= 1) AND (capacity <= 10000))),
    constraint accounts_cooldown_check CHECK (((state <> 'cooldown'::text) OR (cooldown_until IS NOT NULL))),
    constraint accounts_headroom_check CHECK (((reserved_headroom >= 0) AND (reserved_headroom <= capacity))),
    constraint accounts_range_check CHECK (((requests_per_minute >= 1) AND (requests_per_minute <= 6000))),
    constraint accounts_state_check CHECK ((state = ANY (ARRAY['provisioning'::text, 'ready'::text, 'degraded'::text, 'cooldown'::text, 'auth_required'::text, 'quarantined'::text, 'retiring'::text, 'retired'::text]))),
    constraint accounts_writes_check CHECK (((writes_per_day >= 1) AND (writes_per_day <= 100000)))
);

create table activity_log (
    club_id uuid not null,
    id uuid not null,
    actor_kind text not null,
    actor_id uuid,
    actor_name text,
    action text not null,
    entity_type text not null,
    entity_id uuid not null,
    details jsonb default '{}'::jsonb not null,
    created_at timestamp with time zone default lastcall_now() not null,
    constraint activity_log_pkey PRIMARY KEY (club_id, id),
    constraint activity_log_actor_check CHECK (
CASE actor_kind
    WHEN 'person'::text THEN ((actor_id IS NOT NULL) AND (actor_name IS NULL))
    WHEN 'agent'::text THEN ((actor_id IS NOT NULL) AND (actor_name IS NOT NULL))
    WHEN 'system'::text THEN ((actor_id IS NULL) AND (actor_name IS NOT NULL))
    ELSE false
END),
    constraint activity_log_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE
);
CREATE INDEX activity_log_club_id_created_at_id_idx ON activity_log USING btree (club_id, created_at, id);
CREATE INDEX activity_log_club_id_entity_type_entity_id_created_at_idx ON activity_log USING btree (club_id, entity_type, entity_id, created_at);

create table agent_keys (
    club_id uuid not null,
    id uuid not null,
    agent_id uuid not null,
    generation integer not null,
    key_hash bytea not null,
    hint text not null,
    created_at timestamp with time zone default lastcall_now() not null,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone,
    constraint agent_keys_pkey PRIMARY KEY (club_id, id),
    constraint agent_keys_club_id_agent_id_generation_key UNIQUE (club_id, agent_id, generation),
    constraint agent_keys_club_id_key_hash_key UNIQUE (club_id, key_hash),
    constraint agent_keys_generation_check CHECK ((generation >= 1)),
    constraint agent_keys_key_hash_length_check CHECK ((octet_length(key_hash) = 32)),
    constraint agent_keys_club_id_agent_id_fkey FOREIGN KEY (club_id, agent_id) REFERENCES agents(club_id, id) ON DELETE CASCADE
);

create table agent_runs (
    club_id uuid not null,
    id uuid not null,
    agent_id uuid not null,
    key text not null,
    thread_key text not null,
    title text not null,
    status text not null,
    detail text,
    error text,
    started_at timestamp with time zone not null,
    finished_at timestamp with time zone,
    superseded_at timestamp with time zone,
    created_at timestamp with time zone default lastcall_now() not null,
    constraint agent_runs_pkey PRIMARY KEY (club_id, id),
    constraint agent_runs_club_id_agent_id_key_key UNIQUE (club_id, agent_id, key),
    constraint agent_runs_error_check CHECK (((error IS NULL) OR (status = 'failed'::text))),
    constraint agent_runs_finished_check CHECK (((status = 'running'::text) = (finished_at IS NULL))),
    constraint agent_runs_status_check CHECK ((status = ANY (ARRAY['running'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text]))),
    constraint agent_runs_texts_check CHECK (((char_length(detail) <= 4000) AND (char_length(error) <= 4000))),
    constraint agent_runs_times_check CHECK ((finished_at >= started_at)),
    constraint agent_runs_title_check CHECK (((char_length(title) >= 1) AND (char_length(title) <= 200))),
    constraint agent_runs_club_id_agent_id_fkey FOREIGN KEY (club_id, agent_id) REFERENCES agents(club_id, id),
    constraint agent_runs_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE
);
CREATE INDEX agent_runs_club_id_agent_id_started_at_id_idx ON agent_runs USING btree (club_id, agent_id, started_at, id);
CREATE INDEX agent_runs_club_id_started_at_id_idx ON agent_runs USING btree (club_id, started_at, id);
CREATE INDEX agent_runs_current_idx ON agent_runs USING btree (club_id, agent_id, thread_key) WHERE (superseded_at IS NULL);
CREATE INDEX agent_runs_failed_idx ON agent_runs USING btree (club_id, finished_at, id) WHERE ((status = 'failed'::text) AND (superseded_at IS NULL));
CREATE INDEX agent_runs_finished_at_idx ON agent_runs USING btree (finished_at);

create table agents (
    club_id uuid not null,
    id uuid not null,
    name text not null,
    description text,
    status text default 'active'::text not null,
    pause_reason text,
    paused_at timestamp with time zone,
    grants text[] default '{}'::text[] not null,
    responsible_id uuid not null,
    last_seen_at timestamp with time zone,
    created_at timestamp with time zone default lastcall_now() not null,
    updated_at timestamp with time zone default lastcall_now() not null,
    constraint agents_pkey PRIMARY KEY (club_id, id),
    constraint agents_paused_check CHECK ((((status = 'paused'::text) = (paused_at IS NOT NULL)) AND ((status = 'paused'::text) = (pause_reason IS NOT NULL)) AND (pause_reason = ANY (ARRAY['manual'::text, 'budget'::text])))),
    constraint agents_status_check CHECK ((status = ANY (ARRAY['active'::text, 'paused'::text, 'blocked'::text]))),
    constraint agents_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE,
    constraint agents_responsible_id_fkey FOREIGN KEY (responsible_id) REFERENCES people(id)
);
CREATE UNIQUE INDEX agents_lower_name_key ON agents USING btree (club_id, lower(name));
CREATE INDEX agents_responsible_id_idx ON agents USING btree (responsible_id);

create table allowances (
    scope text not null,
    window_start timestamp with time zone not null,
    granted integer not null,
    recent_until timestamp with time zone[] default '{}'::timestamp with time zone[] not null,
    recent_granted integer[] default '{}'::integer[] not null,
    writes_day date,
    writes integer default 0 not null,
    constraint allowances_pkey PRIMARY KEY (scope),
    constraint allowances_side_by_side_check CHECK ((cardinality(recent_until) = cardinality(recent_granted)))
);

create table api_tokens (
    id uuid not null,
    person_id uuid not null,
    name text not null,
    token_hash bytea not null,
    hint text not null,
    scopes text[] not null,
    created_at timestamp with time zone default lastcall_now() not null,
    expires_at timestamp with time zone not null,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    constraint api_tokens_pkey PRIMARY KEY (id),
    constraint api_tokens_token_hash_key UNIQUE (token_hash),
    constraint api_tokens_at_most_a_year_check CHECK ((expires_at <= (created_at + '8784:00:00'::interval))),
    constraint api_tokens_scopes_not_empty_check CHECK ((cardinality(scopes) > 0)),
    constraint api_tokens_token_hash_length_check CHECK ((octet_length(token_hash) = 32)),
    constraint api_tokens_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id) ON DELETE CASCADE
);
CREATE INDEX api_tokens_end_idx ON api_tokens USING btree (LEAST(expires_at, revoked_at));
CREATE INDEX api_tokens_person_id_idx ON api_tokens USING btree (person_id);

create table approval_comments (
    club_id uuid not null,
    id uuid not null,
    approval_id uuid not null,
    kind text default 'comment'::text not null,
    person_id uuid,
    agent_id uuid,
    body text not null,
    created_at timestamp with time zone default lastcall_now() not null,
    constraint approval_comments_pkey PRIMARY KEY (club_id, id),
    constraint approval_comments_author_check CHECK ((num_nonnulls(person_id, agent_id) = 1)),
    constraint approval_comments_body_check CHECK (((char_length(body) >= 1) AND (char_length(body) <= 4000))),
    constraint approval_comments_kind_check CHECK (((kind = 'comment'::text) OR ((kind = 'revision_requested'::text) AND (person_id IS NOT NULL)))),
    constraint approval_comments_club_id_agent_id_fkey FOREIGN KEY (club_id, agent_id) REFERENCES agents(club_id, id),
    constraint approval_comments_club_id_approval_id_fkey FOREIGN KEY (club_id, approval_id) REFERENCES approvals(club_id, id) ON DELETE CASCADE,
    constraint approval_comments_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id)
);
CREATE INDEX approval_comments_club_id_approval_id_created_at_id_idx ON approval_comments USING btree (club_id, approval_id, created_at, id);
CREATE INDEX approval_comments_person_id_idx ON approval_comments USING btree (person_id);

create table approval_revisions (
    club_id uuid not null,
    id uuid not null,
    approval_id uuid not null,
    revision integer not null,
    title text not null,
    body text not null,
    effect_body jsonb,
    replaced_at timestamp with time zone default lastcall_now() not null,
    constraint approval_revisions_pkey PRIMARY KEY (club_id, id),
    constraint approval_revisions_club_id_approval_id_revision_key UNIQUE (club_id, approval_id, revision),
    constraint approval_revisions_revision_check CHECK ((revision >= 1)),
    constraint approval_revisions_club_id_approval_id_fkey FOREIGN KEY (club_id, approval_id) REFERENCES approvals(club_id, id) ON DELETE CASCADE
);

create table approvals (
    club_id uuid not null,
    id uuid not null,
    type text not null,
    title text not null,
    body text not null,
    subject_kind text,
    subject_key text,
    is_only_one boolean default false not null,
    effect_name text,
    effect_body jsonb,
    effect_result jsonb,
    status text default 'pending'::text not null,
    revision integer default 1 not null,
    idempotency_key text,
    asked_digest bytea,
    activity_at timestamp with time zone default lastcall_now() not null,
    archive_due_at timestamp with time zone,
    decided_at timestamp with time zone,
    decided_by uuid,
    decision_note text,
    created_at timestamp with time zone default lastcall_now() not null,
    requested_by_kind text not null,
    requested_by_person_id uuid,
    requested_by_agent_id uuid,
    requested_by_system text,
    is_archived boolean default false not null,
    constraint approvals_pkey PRIMARY KEY (club_id, id),
    constraint approvals_club_id_requested_by_agent_id_idempotency_key_key UNIQUE (club_id, requested_by_agent_id, idempotency_key),
    constraint approvals_club_id_requested_by_person_id_idempotency_key_key UNIQUE (club_id, requested_by_person_id, idempotency_key),
    constraint approvals_club_id_requested_by_system_idempotency_key_key UNIQUE (club_id, requested_by_system, idempotency_key),
    constraint approvals_body_check CHECK ((char_length(body) <= 4000)),
    constraint approvals_decided_check CHECK (
CASE
    WHEN (status = ANY (ARRAY['pending'::text, 'revision_requested'::text])) THEN (num_nonnulls(decided_at, decided_by, decision_note) = 0)
    ELSE ((decided_at IS NOT NULL) AND ((decided_by IS NULL) = (status = 'withdrawn'::text)))
END),
    constraint approvals_effect_check CHECK (((effect_name IS NULL) = (effect_body IS NULL))),
    constraint approvals_effect_result_check CHECK (((effect_result IS NULL) OR ((effect_name IS NOT NULL) AND (status = 'approved'::text)))),
    constraint approvals_idempotency_check CHECK (((idempotency_key IS NULL) = (asked_digest IS NULL))),
    constraint approvals_only_one_check CHECK (((NOT is_only_one) OR (subject_key IS NOT NULL))),
    constraint approvals_requested_by_check CHECK (
CASE requested_by_kind
    WHEN 'person'::text THEN ((requested_by_person_id IS NOT NULL) AND (requested_by_agent_id IS NULL) AND (requested_by_system IS NULL))
    WHEN 'agent'::text THEN ((requested_by_agent_id IS NOT NULL) AND (requested_by_person_id IS NULL) AND (requested_by_system IS NULL))
    WHEN 'system'::text THEN ((requested_by_system IS NOT NULL) AND (requested_by_person_id IS NULL) AND (requested_by_agent_id IS NULL))
    ELSE false
END),
    constraint approvals_revision_check CHECK ((revision >= 1)),
    constraint approvals_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'revision_requested'::text, 'approved'::text, 'rejected'::text, 'withdrawn'::text]))),
    constraint approvals_subject_check CHECK (((subject_kind IS NULL) = (subject_key IS NULL))),
    constraint approvals_title_check CHECK (((char_length(title) >= 1) AND (char_length(title) <= 200))),
    constraint approvals_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE,
    constraint approvals_club_id_requested_by_agent_id_fkey FOREIGN KEY (club_id, requested_by_agent_id) REFERENCES agents(club_id, id),
    constraint approvals_decided_by_fkey FOREIGN KEY (decided_by) REFERENCES people(id),
    constraint approvals_requested_by_person_id_fkey FOREIGN KEY (requested_by_person_id) REFERENCES people(id)
);
CREATE INDEX approvals_archive_due_at_idx ON approvals USING btree (archive_due_at, id) WHERE ((status = 'pending'::text) AND (archive_due_at IS NOT NULL));
CREATE INDEX approvals_club_id_activity_at_id_idx ON approvals USING btree (club_id, activity_at, id);
CREATE INDEX approvals_inbox_idx ON approvals USING btree (club_id, is_archived, activity_at, id) WHERE (status = 'pending'::text);
CREATE INDEX approvals_of_agent_idx ON approvals USING btree (club_id, requested_by_agent_id, activity_at, id);
CREATE INDEX approvals_of_person_idx ON approvals USING btree (requested_by_person_id, club_id, activity_at, id);
CREATE UNIQUE INDEX approvals_only_one_key ON approvals USING btree (club_id, type, subject_kind, subject_key) WHERE (is_only_one AND (status = ANY (ARRAY['pending'::text, 'revision_requested'::text])));

create table audit_entries (
    club_id uuid not null,
    connection_id uuid not null,
    entry_id text not null,
    at timestamp with time zone not null,
    event text not null,
    constraint audit_entries_pkey PRIMARY KEY (club_id, connection_id, entry_id),
    constraint audit_entries_club_id_connection_id_fkey FOREIGN KEY (club_id, connection_id) REFERENCES connections(club_id, id) ON DELETE CASCADE
);
CREATE INDEX audit_entries_at_idx ON audit_entries USING btree (club_id, connection_id, at);

create table audit_log (
    id uuid not null,
    actor_person_id uuid,
    action text not null,
    subject text not null,
    details jsonb default '{}'::jsonb not null,
    created_at timestamp with time zone default lastcall_now() not null,
    constraint audit_log_pkey PRIMARY KEY (id),
    constraint audit_log_actor_person_id_fkey FOREIGN KEY (actor_person_id) REFERENCES people(id) ON DELETE SET NULL
);
CREATE INDEX audit_log_actor_person_id_created_at_id_idx ON audit_log USING btree (actor_person_id, created_at, id);
CREATE INDEX audit_log_created_at_id_idx ON audit_log USING btree (created_at, id);
CREATE INDEX audit_log_subject_created_at_id_idx ON audit_log USING btree (subject, created_at, id);

create table audit_scans (
    club_id uuid not null,
    id uuid not null,
    connection_id uuid not null,
    epoch timestamp with time zone not null,
    starts_at timestamp with time zone not null,
    ends_at timestamp with time zone not null,
    next_offset integer default 0 not null,
    created_at timestamp with time zone default lastcall_now() not null,
    finished_at timestamp with time zone,
    constraint audit_scans_pkey PRIMARY KEY (club_id, id),
    constraint audit_scans_next_offset_check CHECK ((next_offset >= 0)),
    constraint audit_scans_order_check CHECK ((starts_at < ends_at)),
    constraint audit_scans_club_id_connection_id_fkey FOREIGN KEY (club_id, connection_id) REFERENCES connections(club_id, id) ON DELETE CASCADE
);
CREATE INDEX audit_scans_ends_idx ON audit_scans USING btree (club_id, connection_id, ends_at);
CREATE UNIQUE INDEX audit_scans_open_key ON audit_scans USING btree (club_id, connection_id, epoch) WHERE (finished_at IS NULL);

create table budget_incidents (
    club_id uuid not null,
    id uuid not null,
    budget_id uuid not null,
    month date,
    level text not null,
    amount numeric(20,6) not null,
    spent numeric(20,6) not null,
    status text default 'open'::text not null,
    activity_at timestamp with time zone default lastcall_now() not null,
    ends_at timestamp with time zone,
    resolved_at timestamp with time zone,
    constraint budget_incidents_pkey PRIMARY KEY (club_id, id),
    constraint budget_incidents_club_id_budget_id_month_amount_key UNIQUE NULLS NOT DISTINCT (club_id, budget_id, month, amount),
    constraint budget_incidents_ends_at_check CHECK (((ends_at IS NOT NULL) = ((month IS NOT NULL) AND (status <> 'resolved'::text)))),
    constraint budget_incidents_level_check CHECK ((level = ANY (ARRAY['warning'::text, 'limit'::text]))),
    constraint budget_incidents_resolved_check CHECK (((status = 'resolved'::text) = (resolved_at IS NOT NULL))),
    constraint budget_incidents_status_check CHECK ((status = ANY (ARRAY['open'::text, 'resolved'::text, 'dismissed'::text]))),
    constraint budget_incidents_club_id_budget_id_fkey FOREIGN KEY (club_id, budget_id) REFERENCES budgets(club_id, id) ON DELETE CASCADE
);
CREATE INDEX budget_incidents_ends_at_idx ON budget_incidents USING btree (ends_at, id) WHERE (ends_at IS NOT NULL);
CREATE INDEX budget_incidents_open_idx ON budget_incidents USING btree (club_id, activity_at, id) WHERE (status = 'open'::text);

create table budgets (
    club_id uuid not null,
    id uuid not null,
    agent_id uuid,
    period text not null,
    amount numeric(20,6) not null,
    warn_percent integer not null,
    hard_stop boolean not null,
    is_active boolean default true not null,
    created_at timestamp with time zone default lastcall_now() not null,
    updated_at timestamp with time zone default lastcall_now() not null,
    constraint budgets_pkey PRIMARY KEY (club_id, id),
    constraint budgets_club_id_agent_id_period_key UNIQUE NULLS NOT DISTINCT (club_id, agent_id, period),
    constraint budgets_amount_check CHECK ((amount > (0)::numeric)),
    constraint budgets_period_check CHECK ((period = ANY (ARRAY['month'::text, 'lifetime'::text]))),
    constraint budgets_warn_percent_check CHECK (((warn_percent >= 1) AND (warn_percent <= 100))),
    constraint budgets_club_id_agent_id_fkey FOREIGN KEY (club_id, agent_id) REFERENCES agents(club_id, id),
    constraint budgets_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE
);

create table calendar_import_items (
    club_id uuid not null,
    id uuid not null,
    import_id uuid not null,
    position integer not null,
    uid text not null,
    change text not null,
    fields jsonb not null,
    notes text[] default '{}'::text[] not null,
    event_id uuid,
    event_revision integer,
    decision text,
    problem text,
    constraint calendar_import_items_pkey PRIMARY KEY (club_id, id),
    constraint calendar_import_items_club_id_import_id_position_key UNIQUE (club_id, import_id, "position"),
    constraint calendar_import_items_change_check CHECK (((change = ANY (ARRAY['new'::text, 'changed'::text, 'same'::text, 'cancelled'::text, 'unreadable'::text])) AND ((change <> 'unreadable'::text) OR (problem IS NOT NULL)))),
    constraint calendar_import_items_decision_check CHECK ((((decision IS NULL) OR (decision = ANY (ARRAY['applied'::text, 'skipped'::text]))) AND ((decision IS DISTINCT FROM 'applied'::text) OR (event_id IS NOT NULL)) AND ((change <> ALL (ARRAY['changed'::text, 'same'::text, 'cancelled'::text])) OR (event_id IS NOT NULL)) AND ((event_revision IS NULL) OR (event_id IS NOT NULL)))),
    constraint calendar_import_items_club_id_event_id_fkey FOREIGN KEY (club_id, event_id) REFERENCES events(club_id, id),
    constraint calendar_import_items_club_id_import_id_fkey FOREIGN KEY (club_id, import_id) REFERENCES calendar_imports(club_id, id) ON DELETE CASCADE
);
CREATE INDEX calendar_import_items_club_id_event_id_idx ON calendar_import_items USING btree (club_id, event_id) WHERE (event_id IS NOT NULL);

create table calendar_imports (
    club_id uuid not null,
    id uuid not null,
    source_kind text not null,
    source text not null,
    name text not null,
    zone text not null,
    notes text[] default '{}'::text[] not null,
    revision integer default 1 not null,
    created_by uuid not null,
    created_at timestamp with time zone default lastcall_now() not null,
    constraint calendar_imports_pkey PRIMARY KEY (club_id, id),
    constraint calendar_imports_source_kind_check CHECK ((source_kind = ANY (ARRAY['file'::text, 'feed'::text]))),
    constraint calendar_imports_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE,
    constraint calendar_imports_created_by_fkey FOREIGN KEY (created_by) REFERENCES people(id)
);
CREATE INDEX calendar_imports_club_id_created_at_id_idx ON calendar_imports USING btree (club_id, created_at, id);
CREATE INDEX calendar_imports_created_at_idx ON calendar_imports USING btree (created_at);

create table club_gates (
    club_id uuid not null,
    generation bigint default 0 not null,
    constraint club_gates_pkey PRIMARY KEY (club_id),
    constraint club_gates_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE
);

create table clubs (
    id uuid not null,
    slug text not null,
    name text not null,
    zone text not null,
    state text default 'active'::text not null,
    owner_id uuid not null,
    retention_days integer default 90,
    created_at timestamp with time zone default lastcall_now() not null,
    paused_at timestamp with time zone,
    archived_at timestamp with time zone,
    pause_reason text,
    updated_at timestamp with time zone default lastcall_now() not null,
    constraint clubs_pkey PRIMARY KEY (id),
    constraint clubs_archived_check CHECK (((state = ANY (ARRAY['archived'::text, 'deleting'::text])) = (archived_at IS NOT NULL))),
    constraint clubs_paused_check CHECK ((((state = 'paused'::text) = (paused_at IS NOT NULL)) AND ((state = 'paused'::text) = (pause_reason IS NOT NULL)) AND (pause_reason = ANY (ARRAY['manual'::text, 'budget'::text, 'system'::text])))),
    constraint clubs_retention_days_check CHECK (((retention_days >= 1) AND (retention_days <= 3650))),
    constraint clubs_state_check CHECK ((state = ANY (ARRAY['active'::text, 'paused'::text, 'archived'::text, 'deleting'::text]))),
    constraint clubs_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES people(id)
);
CREATE INDEX clubs_deleting_idx ON clubs USING btree (updated_at, id) WHERE (state = 'deleting'::text);
CREATE INDEX clubs_owner_id_idx ON clubs USING btree (owner_id);

create table collectors (
    account_id uuid not null,
    worker_id uuid not null,
    journal_id uuid not null,
    release text not null,
    last_hello_at timestamp with time zone not null,
    constraint collectors_pkey PRIMARY KEY (account_id, worker_id),
    constraint collectors_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
);

create table connection_gates (
    club_id uuid not null,
    connection_id uuid not null,
    generation bigint default 0 not null,
    constraint connection_gates_pkey PRIMARY KEY (club_id, connection_id),
    constraint connection_gates_club_id_connection_id_fkey FOREIGN KEY (club_id, connection_id) REFERENCES connections(club_id, id) ON DELETE CASCADE
);

create table connections (
    club_id uuid not null,
    id uuid not null,
    group_id text not null,
    group_name text not null,
    account_id uuid not null,
    state text not null,
    epoch timestamp with time zone not null,
    features text[] not null,
    kill_switch boolean default false not null,
    requests_per_minute integer default 4 not null,
    lease_generation bigint default 0 not null,
    frozen_at timestamp with time zone,
    frozen_reason text,
    consecutive_failures integer default 0 not null,
    backoff_until timestamp with time zone,
    created_at timestamp with time zone default lastcall_now() not null,
    updated_at timestamp with time zone default lastcall_now() not null,
    next_look_at timestamp with time zone,
    waiting_since timestamp with time zone,
    last_attempt_at timestamp with time zone,
    last_success_at timestamp with time zone,
    disconnected_at timestamp with time zone,
    join_policy text default 'unknown'::text not null,
    group_visibility text default 'unknown'::text not null,
    last_fault text,
    has_visitors boolean default false not null,
    telemetry_failures integer default 0 not null,
    constraint connections_pkey PRIMARY KEY (club_id, id),
    constraint connections_features_check CHECK ((features <@ ARRAY['analytics'::text, 'membership_management'::text, 'posts'::text, 'instances'::text])),
    constraint connections_frozen_check CHECK (((frozen_at IS NULL) = (frozen_reason IS NULL))),
    constraint connections_group_visibility_check CHECK ((group_visibility = ANY (ARRAY['public'::text, 'private'::text, 'unknown'::text]))),
    constraint connections_join_policy_check CHECK ((join_policy = ANY (ARRAY['free'::text, 'request'::text, 'invite'::text, 'unknown'::text]))),
    constraint connections_range_check CHECK (((requests_per_minute >= 1) AND (requests_per_minute <= 6000))),
    constraint connections_state_check CHECK ((state = ANY (ARRAY['connecting'::text, 'awaiting_approval'::text, 'awaiting_invite'::text, 'active'::text, 'degraded'::text, 'auth_required'::text, 'disconnecting'::text, 'disconnected'::text, 'blocked'::text]))),
    constraint connections_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
    constraint connections_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE
);
CREATE INDEX connections_account_idx ON connections USING btree (account_id) WHERE (state <> 'disconnected'::text);
CREATE UNIQUE INDEX connections_current_key ON connections USING btree (club_id) WHERE (state <> 'disconnected'::text);

create table cost_events (
    club_id uuid not null,
    id uuid not null,
    agent_id uuid not null,
    key text not null,
    amount numeric(20,6) not null,
    description text not null,
    created_at timestamp with time zone default lastcall_now() not null,
    constraint cost_events_pkey PRIMARY KEY (club_id, id),
    constraint cost_events_club_id_agent_id_key_key UNIQUE (club_id, agent_id, key),
    constraint cost_events_amount_check CHECK ((amount > (0)::numeric)),
    constraint cost_events_description_check CHECK ((char_length(description) <= 200)),
    constraint cost_events_club_id_agent_id_fkey FOREIGN KEY (club_id, agent_id) REFERENCES agents(club_id, id),
    constraint cost_events_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE
);
CREATE INDEX cost_events_club_id_created_at_id_idx ON cost_events USING btree (club_id, created_at, id);

create table decisions (
    club_id uuid not null,
    id uuid not null,
    title text not null,
    body text not null,
    options jsonb not null,
    action_name text,
    action_body jsonb,
    action_result jsonb,
    status text default 'open'::text not null,
    idempotency_key text,
    asked_digest bytea,
    activity_at timestamp with time zone default lastcall_now() not null,
    expires_at timestamp with time zone not null,
    decided_option text,
    decided_at timestamp with time zone,
    decided_by uuid,
    decision_note text,
    created_at timestamp with time zone default lastcall_now() not null,
    requested_by_kind text not null,
    requested_by_person_id uuid,
    requested_by_agent_id uuid,
    requested_by_system text,
    constraint decisions_pkey PRIMARY KEY (club_id, id),
    constraint decisions_club_id_requested_by_agent_id_idempotency_key_key UNIQUE (club_id, requested_by_agent_id, idempotency_key),
    constraint decisions_club_id_requested_by_person_id_idempotency_key_key UNIQUE (club_id, requested_by_person_id, idempotency_key),
    constraint decisions_club_id_requested_by_system_idempotency_key_key UNIQUE (club_id, requested_by_system, idempotency_key),
    constraint decisions_action_check CHECK (((action_name IS NULL) = (action_body IS NULL))),
    constraint decisions_body_check CHECK ((char_length(body) <= 4000)),
    constraint decisions_decided_check CHECK ((((status = 'open'::text) = (decided_at IS NULL)) AND ((status = 'decided'::text) = (decided_option IS NOT NULL)) AND ((status = 'decided'::text) = (decided_by IS NOT NULL)) AND ((status = 'decided'::text) OR ((decision_note IS NULL) AND (action_result IS NULL))))),
    constraint decisions_expires_at_check CHECK ((expires_at > created_at)),
    constraint decisions_idempotency_check CHECK (((idempotency_key IS NULL) = (asked_digest IS NULL))),
    constraint decisions_options_check CHECK (((jsonb_typeof(options) = 'array'::text) AND ((jsonb_array_length(options) >= 2) AND (jsonb_array_length(options) <= 10)))),
    constraint decisions_requested_by_check CHECK (
CASE requested_by_kind
    WHEN 'person'::text THEN ((requested_by_person_id IS NOT NULL) AND (requested_by_agent_id IS NULL) AND (requested_by_system IS NULL))
    WHEN 'agent'::text THEN ((requested_by_agent_id IS NOT NULL) AND (requested_by_person_id IS NULL) AND (requested_by_system IS NULL))
    WHEN 'system'::text THEN ((requested_by_system IS NOT NULL) AND (requested_by_person_id IS NULL) AND (requested_by_agent_id IS NULL))
    ELSE false
END),
    constraint decisions_status_check CHECK ((status = ANY (ARRAY['open'::text, 'decided'::text, 'expired'::text, 'cancelled'::text]))),
    constraint decisions_title_check CHECK (((char_length(title) >= 1) AND (char_length(title) <= 200))),
    constraint decisions_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE,
    constraint decisions_club_id_requested_by_agent_id_fkey FOREIGN KEY (club_id, requested_by_agent_id) REFERENCES agents(club_id, id),
    constraint decisions_decided_by_fkey FOREIGN KEY (decided_by) REFERENCES people(id),
    constraint decisions_requested_by_person_id_fkey FOREIGN KEY (requested_by_person_id) REFERENCES people(id)
);
CREATE INDEX decisions_club_id_activity_at_id_idx ON decisions USING btree (club_id, activity_at, id);
CREATE INDEX decisions_expires_at_idx ON decisions USING btree (expires_at, id) WHERE (status = 'open'::text);
CREATE INDEX decisions_of_agent_idx ON decisions USING btree (club_id, requested_by_agent_id, activity_at, id);
CREATE INDEX decisions_of_person_idx ON decisions USING btree (requested_by_person_id, club_id, activity_at, id);
CREATE INDEX decisions_open_idx ON decisions USING btree (club_id, activity_at, id) WHERE (status = 'open'::text);
CREATE INDEX decisions_open_of_agent_idx ON decisions USING btree (club_id, requested_by_agent_id) WHERE (status = 'open'::text);

create table deliveries (
    club_id uuid not null,
    id uuid not null,
    kind text not null,
    channel text not null,
    person_id uuid,
    agent_id uuid,
    approval_id uuid,
    decision_id uuid,
    dedup text not null,
    data jsonb not null,
    state text not null,
    attempts integer default 0 not null,
    next_at timestamp with time zone,
    mail_id uuid,
    last_error text,
    created_at timestamp with time zone default lastcall_now() not null,
    ended_at timestamp with time zone,
    dismissed_at timestamp with time zone,
    constraint deliveries_pkey PRIMARY KEY (club_id, id),
    constraint deliveries_club_id_agent_id_kind_dedup_key UNIQUE (club_id, agent_id, kind, dedup),
    constraint deliveries_club_id_person_id_channel_kind_dedup_key UNIQUE (club_id, person_id, channel, kind, dedup),
    constraint deliveries_attempts_check CHECK ((attempts >= 0)),
    constraint deliveries_dedup_check CHECK (((char_length(dedup) >= 1) AND (char_length(dedup) <= 200))),
    constraint deliveries_dismissed_check CHECK (((dismissed_at IS NULL) OR (channel = 'app'::text))),
    constraint deliveries_mail_check CHECK (((mail_id IS NULL) OR (channel = 'mail'::text))),
    constraint deliveries_open_check CHECK ((((state = ANY (ARRAY['pending'::text, 'delivering'::text])) = (next_at IS NOT NULL)) AND ((state = ANY (ARRAY['pending'::text, 'delivering'::text])) = (ended_at IS NULL)))),
    constraint deliveries_recipient_check CHECK (
CASE
    WHEN (channel = 'agent'::text) THEN ((agent_id IS NOT NULL) AND (person_id IS NULL))
    ELSE ((channel = ANY (ARRAY['app'::text, 'mail'::text, 'slack'::text])) AND (person_id IS NOT NULL) AND (agent_id IS NULL))
END),
    constraint deliveries_source_check CHECK ((num_nonnulls(approval_id, decision_id) <= 1)),
    constraint deliveries_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'delivering'::text, 'delivered'::text, 'unknown'::text, 'dead'::text, 'dropped'::text]))),
    constraint deliveries_club_id_agent_id_fkey FOREIGN KEY (club_id, agent_id) REFERENCES agents(club_id, id) ON DELETE CASCADE,
    constraint deliveries_club_id_approval_id_fkey FOREIGN KEY (club_id, approval_id) REFERENCES approvals(club_id, id) ON DELETE CASCADE,
    constraint deliveries_club_id_decision_id_fkey FOREIGN KEY (club_id, decision_id) REFERENCES decisions(club_id, id) ON DELETE CASCADE,
    constraint deliveries_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE,
    constraint deliveries_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id)
);
CREATE INDEX deliveries_club_id_approval_id_idx ON deliveries USING btree (club_id, approval_id) WHERE (approval_id IS NOT NULL);
CREATE INDEX deliveries_club_id_decision_id_idx ON deliveries USING btree (club_id, decision_id) WHERE (decision_id IS NOT NULL);
CREATE INDEX deliveries_dead_idx ON deliveries USING btree (ended_at, id) WHERE (state = 'dead'::text);
CREATE INDEX deliveries_dead_of_club_idx ON deliveries USING btree (club_id, ended_at, id) WHERE (state = 'dead'::text);
CREATE INDEX deliveries_ended_at_idx ON deliveries USING btree (ended_at);
CREATE INDEX deliveries_fetched_idx ON deliveries USING btree (club_id, agent_id, next_at, id) WHERE ((next_at IS NOT NULL) AND (channel = 'agent'::text));
CREATE INDEX deliveries_notices_idx ON deliveries USING btree (club_id, person_id, created_at, id) WHERE ((channel = 'app'::text) AND (dismissed_at IS NULL));
CREATE INDEX deliveries_sent_idx ON deliveries USING btree (next_at, id) WHERE ((next_at IS NOT NULL) AND (channel <> 'agent'::text));

create table directory (
    kind text not null,
    key text not null,
    club_id uuid not null,
    constraint directory_pkey PRIMARY KEY (kind, key)
);
CREATE INDEX directory_club_id_idx ON directory USING btree (club_id);

create table ended_epochs (
    club_id uuid not null,
    connection_id uuid not null,
    epoch timestamp with time zone not null,
    code text not null,
    ended_at timestamp with time zone default lastcall_now() not null,
    constraint ended_epochs_pkey PRIMARY KEY (club_id, connection_id, epoch),
    constraint ended_epochs_code_check CHECK ((code = ANY (ARRAY['connection_changed'::text, 'database_restored'::text]))),
    constraint ended_epochs_club_id_connection_id_fkey FOREIGN KEY (club_id, connection_id) REFERENCES connections(club_id, id) ON DELETE CASCADE
);
CREATE INDEX ended_epochs_ended_at_connection_id_idx ON ended_epochs USING btree (ended_at, connection_id);

create table event_worlds (
    club_id uuid not null,
    id uuid not null,
    event_id uuid not null,
    world_id text not null,
    name text default ''::text not null,
    confirmation text default 'suggested'::text not null,
    created_at timestamp with time zone default lastcall_now() not null,
    constraint event_worlds_pkey PRIMARY KEY (club_id, id),
    constraint event_worlds_club_id_event_id_world_id_key UNIQUE (club_id, event_id, world_id),
    constraint event_worlds_confirmation_check CHECK ((confirmation = ANY (ARRAY['suggested'::text, 'confirmed'::text]))),
    constraint event_worlds_club_id_event_id_fkey FOREIGN KEY (club_id, event_id) REFERENCES events(club_id, id) ON DELETE CASCADE
);

create table events (
    club_id uuid not null,
    id uuid not null,
    title text not null,
    description text default ''::text not null,
    schedule_kind text not null,
    starts_at timestamp with time zone,
    ends_at timestamp with time zone,
    doors_at timestamp with time zone,
    event_date date,
    zone text not null,
    sort_at timestamp with time zone not null,
    over_at timestamp with time zone not null,
    status text default 'scheduled'::text not null,
    publication text default 'draft'::text not null,
    cancel_generation integer default 0 not null,
    tba_generation integer default 0 not null,
    revision integer default 1 not null,
    removed_at timestamp with time zone,
    import_uid text,
    created_by uuid not null,
    created_at timestamp with time zone default lastcall_now() not null,
    updated_at timestamp with time zone default lastcall_now() not null,
    constraint events_pkey PRIMARY KEY (club_id, id),
    constraint events_generations_check CHECK (((cancel_generation >= 0) AND (tba_generation >= 0) AND (revision >= 1) AND (((status <> 'cancelled'::text) AND (removed_at IS NULL)) OR (cancel_generation > 0)))),
    constraint events_publication_check CHECK ((publication = ANY (ARRAY['draft'::text, 'published'::text]))),
    constraint events_schedule_check CHECK (
CASE schedule_kind
    WHEN 'timed'::text THEN ((starts_at IS NOT NULL) AND (event_date IS NULL))
    WHEN 'date_only'::text THEN ((starts_at IS NULL) AND (event_date IS NOT NULL))
    WHEN 'tba'::text THEN (starts_at IS NULL)
    ELSE false
END),
    constraint events_status_check CHECK ((status = ANY (ARRAY['scheduled'::text, 'cancelled'::text]))),
    constraint events_times_check CHECK ((((starts_at IS NOT NULL) OR (num_nonnulls(ends_at, doors_at) = 0)) AND ((ends_at IS NULL) OR (starts_at < ends_at)) AND ((doors_at IS NULL) OR (doors_at <= starts_at)))),
    constraint events_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE,
    constraint events_created_by_fkey FOREIGN KEY (created_by) REFERENCES people(id)
);
CREATE INDEX events_club_id_sort_at_id_idx ON events USING btree (club_id, sort_at, id) WHERE (removed_at IS NULL);
CREATE UNIQUE INDEX events_import_uid_idx ON events USING btree (club_id, import_uid) WHERE ((import_uid IS NOT NULL) AND (removed_at IS NULL));

create table evidence (
    club_id uuid not null,
    connection_id uuid not null,
    kind text not null,
    subject text not null,
    epoch timestamp with time zone not null,
    body jsonb not null,
    observed_at timestamp with time zone not null,
    account_id uuid not null,
    worker_id uuid not null,
    constraint evidence_pkey PRIMARY KEY (club_id, connection_id, kind, subject),
    constraint evidence_kind_check CHECK ((kind = ANY (ARRAY['own_member'::text, 'bans'::text, 'requests'::text, 'invites'::text, 'member'::text, 'posts'::text, 'instances'::text]))),
    constraint evidence_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
    constraint evidence_club_id_connection_id_fkey FOREIGN KEY (club_id, connection_id) REFERENCES connections(club_id, id) ON DELETE CASCADE
);

create table fleet_settings (
    id smallint not null,
    kill_switch boolean default false not null,
    requests_per_minute integer default 30 not null,
    constraint fleet_settings_pkey PRIMARY KEY (id),
    constraint fleet_settings_one_row_check CHECK ((id = 1)),
    constraint fleet_settings_range_check CHECK (((requests_per_minute >= 1) AND (requests_per_minute <= 6000)))
);

create table idempotency_keys (
    person_id uuid not null,
    key text not null,
    digest bytea not null,
    answer bytea,
    created_at timestamp with time zone default lastcall_now() not null,
    constraint idempotency_keys_pkey PRIMARY KEY (person_id, key),
    constraint idempotency_keys_digest_check CHECK ((octet_length(digest) = 32)),
    constraint idempotency_keys_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id) ON DELETE CASCADE
);
CREATE INDEX idempotency_keys_created_at_idx ON idempotency_keys USING btree (created_at);

create table identities (
    id uuid not null,
    person_id uuid not null,
    provider text not null,
    issuer text not null,
    subject text not null,
    label text not null,
    created_at timestamp with time zone default lastcall_now() not null,
    last_used_at timestamp with time zone,
    constraint identities_pkey PRIMARY KEY (id),
    constraint identities_issuer_subject_key UNIQUE (issuer, subject),
    constraint identities_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id) ON DELETE CASCADE
);
CREATE INDEX identities_person_id_idx ON identities USING btree (person_id);

create table inbox_dismissals (
    club_id uuid not null,
    id uuid not null,
    person_id uuid not null,
    item_id uuid not null,
    until timestamp with time zone,
    activity_at timestamp with time zone not null,
    created_at timestamp with time zone default lastcall_now() not null,
    constraint inbox_dismissals_pkey PRIMARY KEY (club_id, id),
    constraint inbox_dismissals_club_id_person_id_item_id_key UNIQUE (club_id, person_id, item_id),
    constraint inbox_dismissals_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE,
    constraint inbox_dismissals_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id)
);
CREATE INDEX inbox_dismissals_person_id_idx ON inbox_dismissals USING btree (person_id);

create table invite_uses (
    club_id uuid not null,
    id uuid not null,
    invite_id uuid not null,
    number integer not null,
    person_id uuid,
    request_id uuid,
    used_at timestamp with time zone default lastcall_now() not null,
    constraint invite_uses_pkey PRIMARY KEY (club_id, id),
    constraint invite_uses_club_id_invite_id_number_key UNIQUE (club_id, invite_id, number),
    constraint invite_uses_number_check CHECK (((number >= 1) AND (number <= 100))),
    constraint invite_uses_club_id_invite_id_fkey FOREIGN KEY (club_id, invite_id) REFERENCES invites(club_id, id) ON DELETE CASCADE,
    constraint invite_uses_club_id_request_id_fkey FOREIGN KEY (club_id, request_id) REFERENCES join_requests(club_id, id) ON DELETE SET NULL (request_id),
    constraint invite_uses_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id)
);
CREATE INDEX invite_uses_club_id_request_id_idx ON invite_uses USING btree (club_id, request_id) WHERE (request_id IS NOT NULL);
CREATE INDEX invite_uses_person_id_idx ON invite_uses USING btree (person_id) WHERE (person_id IS NOT NULL);
CREATE UNIQUE INDEX invite_uses_person_key ON invite_uses USING btree (club_id, invite_id, person_id) WHERE (person_id IS NOT NULL);

create table invites (
    club_id uuid not null,
    id uuid not null,
    invited_by uuid not null,
    expires_at timestamp with time zone not null,
    revoked_at timestamp with time zone,
    accepted_at timestamp with time zone,
    created_at timestamp with time zone default lastcall_now() not null,
    kind text default 'person'::text not null,
    token_hash bytea not null,
    role_ids uuid[] default '{}'::uuid[] not null,
    email text,
    approves boolean default false not null,
    note text,
    max_uses integer default 1 not null,
    uses integer default 0 not null,
    agent_grants text[] default '{}'::text[] not null,
    source text default 'staff'::text not null,
    constraint invites_pkey PRIMARY KEY (club_id, id),
    constraint invites_club_id_token_hash_key UNIQUE (club_id, token_hash),
    constraint invites_agent_grants_check CHECK (((kind <> 'person'::text) OR (cardinality(agent_grants) = 0))),
    constraint invites_approves_check CHECK (((NOT approves) OR ((kind <> 'agent'::text) AND (cardinality(role_ids) > 0)))),
    constraint invites_email_once_check CHECK (((email IS NULL) OR (max_uses = 1))),
    constraint invites_kind_check CHECK ((kind = ANY (ARRAY['person'::text, 'agent'::text, 'both'::text]))),
    constraint invites_max_uses_check CHECK (((max_uses >= 1) AND (max_uses <= 100))),
    constraint invites_source_check CHECK ((source = ANY (ARRAY['staff'::text, 'slack'::text]))),
    constraint invites_token_hash_length_check CHECK ((octet_length(token_hash) = 32)),
    constraint invites_used_up_check CHECK (((accepted_at IS NULL) = (uses < max_uses))),
    constraint invites_uses_check CHECK (((uses >= 0) AND (uses <= max_uses))),
    constraint invites_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE,
    constraint invites_invited_by_fkey FOREIGN KEY (invited_by) REFERENCES people(id)
);
CREATE INDEX invites_address_end_idx ON invites USING btree (LEAST(expires_at, revoked_at, accepted_at), id) WHERE ((email IS NOT NULL) AND (email <> 'forgotten'::text));
CREATE INDEX invites_club_id_created_at_id_idx ON invites USING btree (club_id, created_at, id);
CREATE INDEX invites_invited_by_idx ON invites USING btree (invited_by);
CREATE INDEX invites_lower_email_idx ON invites USING btree (lower(email)) WHERE (email IS NOT NULL);

create table join_requests (
    club_id uuid not null,
    id uuid not null,
    invite_id uuid not null,
    subject_kind text not null,
    person_id uuid,
    email text,
    agent_name text,
    status text default 'pending_approval'::text not null,
    activity_at timestamp with time zone default lastcall_now() not null,
    archive_due_at timestamp with time zone,
    created_at timestamp with time zone default lastcall_now() not null,
    decided_at timestamp with time zone,
    decided_by uuid,
    decision_note text,
    use_number integer default 1 not null,
    agent_description text,
    agent_id uuid,
    claim_secret_hash bytea,
    claim_expires_at timestamp with time zone,
    claimed_at timestamp with time zone,
    is_archived boolean default false not null,
    constraint join_requests_pkey PRIMARY KEY (club_id, id),
    constraint join_requests_club_id_invite_id_use_number_key UNIQUE (club_id, invite_id, use_number),
    constraint join_requests_agent_check CHECK (
CASE
    WHEN (agent_id IS NULL) THEN (num_nonnulls(claim_expires_at, claimed_at) = 0)
    ELSE ((subject_kind = 'agent'::text) AND (status = 'approved'::text) AND (claim_expires_at IS NOT NULL))
END),
    constraint join_requests_agent_description_check CHECK (((agent_description IS NULL) OR (subject_kind = 'agent'::text))),
    constraint join_requests_claim_secret_check CHECK (((claim_secret_hash IS NULL) OR ((subject_kind = 'agent'::text) AND (octet_length(claim_secret_hash) = 32)))),
    constraint join_requests_decided_check CHECK (
CASE status
    WHEN 'pending_approval'::text THEN (num_nonnulls(decided_at, decided_by, decision_note) = 0)
    ELSE (decided_at IS NOT NULL)
END),
    constraint join_requests_status_check CHECK ((status = ANY (ARRAY['pending_approval'::text, 'approved'::text, 'rejected'::text, 'withdrawn'::text]))),
    constraint join_requests_subject_check CHECK (
CASE subject_kind
    WHEN 'person'::text THEN ((agent_name IS NULL) AND ((person_id IS NOT NULL) OR (email IS NOT NULL)))
    WHEN 'agent'::text THEN ((agent_name IS NOT NULL) AND (person_id IS NULL) AND (email IS NULL))
    ELSE false
END),
    constraint join_requests_use_number_check CHECK (((use_number >= 1) AND (use_number <= 100))),
    constraint join_requests_club_id_agent_id_fkey FOREIGN KEY (club_id, agent_id) REFERENCES agents(club_id, id),
    constraint join_requests_club_id_invite_id_fkey FOREIGN KEY (club_id, invite_id) REFERENCES invites(club_id, id) ON DELETE CASCADE,
    constraint join_requests_decided_by_fkey FOREIGN KEY (decided_by) REFERENCES people(id),
    constraint join_requests_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id)
);
CREATE INDEX join_requests_address_end_idx ON join_requests USING btree (decided_at) WHERE ((email IS NOT NULL) AND (email <> 'forgotten'::text));
CREATE UNIQUE INDEX join_requests_agent_key ON join_requests USING btree (club_id, agent_id) WHERE (agent_id IS NOT NULL);
CREATE INDEX join_requests_archive_due_at_idx ON join_requests USING btree (archive_due_at, id) WHERE ((status = 'pending_approval'::text) AND (archive_due_at IS NOT NULL));
CREATE INDEX join_requests_inbox_idx ON join_requests USING btree (club_id, is_archived, activity_at, id) WHERE (status = 'pending_approval'::text);
CREATE UNIQUE INDEX join_requests_pending_email_key ON join_requests USING btree (club_id, lower(email)) WHERE ((status = 'pending_approval'::text) AND (subject_kind = 'person'::text));
CREATE UNIQUE INDEX join_requests_pending_person_key ON join_requests USING btree (club_id, person_id) WHERE ((status = 'pending_approval'::text) AND (subject_kind = 'person'::text));
CREATE INDEX join_requests_person_id_club_id_idx ON join_requests USING btree (person_id, club_id);

create table late_results (
    club_id uuid not null,
    id uuid not null,
    operation_id uuid not null,
    outcome text not null,
    code text,
    result jsonb,
    reported_at timestamp with time zone default lastcall_now() not null,
    constraint late_results_pkey PRIMARY KEY (club_id, id),
    constraint late_results_club_id_operation_id_key UNIQUE (club_id, operation_id),
    constraint late_results_outcome_check CHECK ((outcome = ANY (ARRAY['succeeded'::text, 'rejected'::text, 'indeterminate'::text]))),
    constraint late_results_result_check CHECK ((octet_length((result)::text) <= 8192)),
    constraint late_results_club_id_operation_id_fkey FOREIGN KEY (club_id, operation_id) REFERENCES operations(club_id, id) ON DELETE CASCADE
);

create table leases (
    club_id uuid not null,
    connection_id uuid not null,
    account_id uuid not null,
    worker_id uuid not null,
    fencing_token bigint not null,
    claimed_at timestamp with time zone not null,
    expires_at timestamp with time zone not null,
    released_at timestamp with time zone,
    constraint leases_pkey PRIMARY KEY (club_id, connection_id),
    constraint leases_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
    constraint leases_club_id_connection_id_fkey FOREIGN KEY (club_id, connection_id) REFERENCES connections(club_id, id) ON DELETE CASCADE
);
CREATE INDEX leases_open_idx ON leases USING btree (expires_at, connection_id) WHERE (released_at IS NULL);

create table mail_preferences (
    person_id uuid not null,
    topic text not null,
    is_on boolean not null,
    constraint mail_preferences_pkey PRIMARY KEY (person_id, topic),
    constraint mail_preferences_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id) ON DELETE CASCADE
);

create table operation_digests (
    club_id uuid not null,
    id uuid not null,
    request_id uuid not null,
    revision integer not null,
    outcome text not null,
    person_id uuid not null,
    created_at timestamp with time zone default lastcall_now() not null,
    constraint operation_digests_pkey PRIMARY KEY (club_id, id),
    constraint operation_digests_club_id_request_id_revision_outcome_p_ede4 UNIQUE (club_id, request_id, revision, outcome, person_id),
    constraint operation_digests_outcome_check CHECK ((outcome = ANY (ARRAY['rejected'::text, 'indeterminate'::text, 'missed'::text]))),
    constraint operation_digests_club_id_request_id_fkey FOREIGN KEY (club_id, request_id) REFERENCES operation_requests(club_id, id) ON DELETE CASCADE,
    constraint operation_digests_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id)
);

create table operation_fanouts (
    club_id uuid not null,
    id uuid not null,
    subject_kind text not null,
    subject_id uuid not null,
    after uuid,
    created_at timestamp with time zone default lastcall_now() not null,
    constraint operation_fanouts_pkey PRIMARY KEY (club_id, id),
    constraint operation_fanouts_club_id_subject_kind_subject_id_key UNIQUE (club_id, subject_kind, subject_id),
    constraint operation_fanouts_subject_kind_check CHECK ((subject_kind = ANY (ARRAY['event'::text, 'creation'::text]))),
    constraint operation_fanouts_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE
);
CREATE INDEX operation_fanouts_created_at_id_idx ON operation_fanouts USING btree (created_at, id);

create table operation_findings (
    club_id uuid not null,
    id uuid not null,
    operation_id uuid not null,
    number integer not null,
    verdict text not null,
    note text not null,
    evidence jsonb not null,
    settled_by uuid not null,
    settled_at timestamp with time zone default lastcall_now() not null,
    constraint operation_findings_pkey PRIMARY KEY (club_id, id),
    constraint operation_findings_club_id_operation_id_number_key UNIQUE (club_id, operation_id, number),
    constraint operation_findings_note_check CHECK ((char_length(note) <= 2000)),
    constraint operation_findings_number_check CHECK ((number >= 1)),
    constraint operation_findings_reason_check CHECK (((note <> ''::text) OR (jsonb_array_length(evidence) > 0))),
    constraint operation_findings_verdict_check CHECK ((verdict = ANY (ARRAY['happened'::text, 'not_seen'::text]))),
    constraint operation_findings_club_id_operation_id_fkey FOREIGN KEY (club_id, operation_id) REFERENCES operations(club_id, id) ON DELETE CASCADE,
    constraint operation_findings_settled_by_fkey FOREIGN KEY (settled_by) REFERENCES people(id)
);

create table operation_notice_reads (
    club_id uuid not null,
    person_id uuid not null,
    notice_id uuid not null,
    read_at timestamp with time zone default lastcall_now() not null,
    constraint operation_notice_reads_pkey PRIMARY KEY (club_id, person_id, notice_id),
    constraint operation_notice_reads_club_id_notice_id_fkey FOREIGN KEY (club_id, notice_id) REFERENCES operation_notices(club_id, id) ON DELETE CASCADE,
    constraint operation_notice_reads_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id)
);

create table operation_notices (
    club_id uuid not null,
    id uuid not null,
    request_id uuid not null,
    revision integer not null,
    outcome text not null,
    actor_id uuid not null,
    mail_at timestamp with time zone,
    digest_id uuid,
    created_at timestamp with time zone default lastcall_now() not null,
    constraint operation_notices_pkey PRIMARY KEY (club_id, id),
    constraint operation_notices_mail_check CHECK (((mail_at IS NULL) OR (digest_id IS NULL))),
    constraint operation_notices_outcome_check CHECK ((outcome = ANY (ARRAY['rejected'::text, 'indeterminate'::text, 'missed'::text]))),
    constraint operation_notices_actor_id_fkey FOREIGN KEY (actor_id) REFERENCES people(id),
    constraint operation_notices_club_id_digest_id_fkey FOREIGN KEY (club_id, digest_id) REFERENCES operation_digests(club_id, id),
    constraint operation_notices_club_id_id_fkey FOREIGN KEY (club_id, id) REFERENCES operations(club_id, id) ON DELETE CASCADE,
    constraint operation_notices_club_id_request_id_fkey FOREIGN KEY (club_id, request_id) REFERENCES operation_requests(club_id, id) ON DELETE CASCADE
);
CREATE INDEX operation_notices_club_id_actor_id_created_at_id_idx ON operation_notices USING btree (club_id, actor_id, created_at, id);
CREATE INDEX operation_notices_mail_at_idx ON operation_notices USING btree (mail_at, id) WHERE (mail_at IS NOT NULL);
CREATE INDEX operation_notices_waiting_idx ON operation_notices USING btree (club_id, request_id) WHERE (mail_at IS NOT NULL);

create table operation_requests (
    club_id uuid not null,
    id uuid not null,
    request_key text not null,
    kind text not null,
    size smallint not null,
    created_by uuid not null,
    digest bytea not null,
    schedule jsonb not null,
    due_at timestamp with time zone not null,
    created_at timestamp with time zone default lastcall_now() not null,
    constraint operation_requests_pkey PRIMARY KEY (club_id, id),
    constraint operation_requests_club_id_request_key_key UNIQUE (club_id, request_key),
    constraint operation_requests_digest_check CHECK ((octet_length(digest) = 32)),
    constraint operation_requests_request_key_check CHECK ((request_key ~ '^[A-Za-z0-9_-]{8,100}$'::text)),
    constraint operation_requests_size_check CHECK (((size >= 1) AND (size <= 100))),
    constraint operation_requests_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE,
    constraint operation_requests_created_by_fkey FOREIGN KEY (created_by) REFERENCES people(id)
);

create table operation_revisions (
    club_id uuid not null,
    id uuid not null,
    operation_id uuid not null,
    revision integer not null,
    actor_id uuid not null,
    payload jsonb not null,
    schedule jsonb not null,
    due_at timestamp with time zone not null,
    edited_by uuid not null,
    edited_at timestamp with time zone default lastcall_now() not null,
    constraint operation_revisions_pkey PRIMARY KEY (club_id, id),
    constraint operation_revisions_club_id_operation_id_revision_key UNIQUE (club_id, operation_id, revision),
    constraint operation_revisions_actor_id_fkey FOREIGN KEY (actor_id) REFERENCES people(id),
    constraint operation_revisions_club_id_operation_id_fkey FOREIGN KEY (club_id, operation_id) REFERENCES operations(club_id, id) ON DELETE CASCADE,
    constraint operation_revisions_edited_by_fkey FOREIGN KEY (edited_by) REFERENCES people(id)
);

create table operations (
    club_id uuid not null,
    id uuid not null,
    request_id uuid not null,
    position smallint not null,
    connection_id uuid not null,
    epoch timestamp with time zone not null,
    kind text not null,
    payload jsonb not null,
    target text not null,
    schedule_kind text,
    due_at timestamp with time zone not null,
    ready_at timestamp with time zone,
    lane smallint not null,
    state text default 'pending'::text not null,
    revision integer default 1 not null,
    actor_id uuid not null,
    preflight_failures smallint default 0 not null,
    claim_nonce uuid,
    claim_account_id uuid,
    claim_worker_id uuid,
    claim_journal_id uuid,
    claim_fencing_token bigint,
    claim_generation integer,
    claim_expires_at timestamp with time zone,
    submitted_at timestamp with time zone,
    result jsonb,
    code text,
    completed_at timestamp with time zone,
    created_at timestamp with time zone default lastcall_now() not null,
    event_id uuid,
    offset_ms bigint,
    event_cancel_generation integer,
    event_tba_generation integer,
    depends_on uuid,
    dependency_revision integer,
    dependency_event_id uuid,
    retry_at timestamp with time zone,
    grants text[] not null,
    constraint operations_pkey PRIMARY KEY (club_id, id),
    constraint operations_club_id_request_id_target_key UNIQUE (club_id, request_id, target),
    constraint operations_whole_check CHECK (operation_is_whole(operations.*)),
    constraint operations_actor_id_fkey FOREIGN KEY (actor_id) REFERENCES people(id),
    constraint operations_club_id_connection_id_fkey FOREIGN KEY (club_id, connection_id) REFERENCES connections(club_id, id) ON DELETE CASCADE,
    constraint operations_club_id_dependency_event_id_fkey FOREIGN KEY (club_id, dependency_event_id) REFERENCES events(club_id, id) ON DELETE CASCADE,
    constraint operations_club_id_depends_on_fkey FOREIGN KEY (club_id, depends_on) REFERENCES operations(club_id, id) ON DELETE CASCADE,
    constraint operations_club_id_event_id_fkey FOREIGN KEY (club_id, event_id) REFERENCES events(club_id, id) ON DELETE CASCADE,
    constraint operations_club_id_request_id_fkey FOREIGN KEY (club_id, request_id) REFERENCES operation_requests(club_id, id) ON DELETE CASCADE
);
CREATE INDEX operations_agenda_idx ON operations USING btree (club_id, kind, state, due_at, id) WHERE (completed_at IS NULL);
CREATE INDEX operations_dependents_idx ON operations USING btree (club_id, depends_on, id) WHERE ((depends_on IS NOT NULL) AND (completed_at IS NULL));
CREATE INDEX operations_due_idx ON operations USING btree (state, due_at, id) WHERE (state = ANY (ARRAY['pending'::text, 'claimed'::text]));
CREATE INDEX operations_event_idx ON operations USING btree (club_id, event_id, id) WHERE ((event_id IS NOT NULL) AND (completed_at IS NULL));
CREATE INDEX operations_event_past_idx ON operations USING btree (club_id, event_id, completed_at, id) WHERE ((event_id IS NOT NULL) AND (completed_at IS NOT NULL));
CREATE INDEX operations_expiry_idx ON operations USING btree (state, claim_expires_at, id) WHERE (state = ANY (ARRAY['claimed'::text, 'submitted'::text]));
CREATE INDEX operations_past_idx ON operations USING btree (club_id, kind, state, completed_at, id) WHERE (completed_at IS NOT NULL);
CREATE INDEX operations_runnable_idx ON operations USING btree (club_id, connection_id, epoch, lane, ready_at, id) WHERE (state = 'pending'::text);
CREATE INDEX operations_subject_idx ON operations USING btree (club_id, lower(COALESCE((payload ->> 'targetUserId'::text), (payload ->> 'worldId'::text), (payload ->> 'postId'::text))), completed_at, id) WHERE (completed_at IS NOT NULL);

create table outgoing_mail (
    id uuid not null,
    kind text not null,
    address text not null,
    state text default 'sending'::text not null,
    error text,
    created_at timestamp with time zone default lastcall_now() not null,
    sent_at timestamp with time zone,
    bounced_at timestamp with time zone,
    constraint outgoing_mail_pkey PRIMARY KEY (id),
    constraint outgoing_mail_sent_at_check CHECK (((state = 'sent'::text) = (sent_at IS NOT NULL))),
    constraint outgoing_mail_state_check CHECK ((state = ANY (ARRAY['sending'::text, 'sent'::text, 'failed'::text, 'unknown'::text])))
);
CREATE INDEX outgoing_mail_created_at_id_idx ON outgoing_mail USING btree (created_at, id);
CREATE INDEX outgoing_mail_trouble_idx ON outgoing_mail USING btree (created_at, id) WHERE ((state <> 'sent'::text) OR (bounced_at IS NOT NULL));

create table passkeys (
    id uuid not null,
    person_id uuid not null,
    credential_id bytea not null,
    public_key bytea not null,
    sign_count bigint not null,
    name text not null,
    transports text[] not null,
    is_backed_up boolean not null,
    created_at timestamp with time zone default lastcall_now() not null,
    last_used_at timestamp with time zone,
    constraint passkeys_pkey PRIMARY KEY (id),
    constraint passkeys_credential_id_key UNIQUE (credential_id),
    constraint passkeys_sign_count_check CHECK ((sign_count >= 0)),
    constraint passkeys_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id) ON DELETE CASCADE
);
CREATE INDEX passkeys_person_id_idx ON passkeys USING btree (person_id);

create table people (
    id uuid not null,
    email text not null,
    display_name text not null,
    is_operator boolean default false not null,
    blocked_at timestamp with time zone,
    created_at timestamp with time zone default lastcall_now() not null,
    email_verified_at timestamp with time zone,
    erased_at timestamp with time zone,
    constraint people_pkey PRIMARY KEY (id),
    constraint people_erased_is_blocked_check CHECK (((erased_at IS NULL) OR (blocked_at IS NOT NULL)))
);
CREATE INDEX people_created_at_id_idx ON people USING btree (created_at, id);
CREATE UNIQUE INDEX people_lower_email_key ON people USING btree (lower(email));

create table post_drafts (
    club_id uuid not null,
    id uuid not null,
    created_by uuid not null,
    fields jsonb not null,
    schedule jsonb not null,
    revision integer not null,
    request_id uuid,
    created_at timestamp with time zone default lastcall_now() not null,
    updated_at timestamp with time zone default lastcall_now() not null,
    constraint post_drafts_pkey PRIMARY KEY (club_id, id),
    constraint post_drafts_revision_check CHECK ((revision >= 1)),
    constraint post_drafts_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE,
    constraint post_drafts_club_id_request_id_fkey FOREIGN KEY (club_id, request_id) REFERENCES operation_requests(club_id, id),
    constraint post_drafts_created_by_fkey FOREIGN KEY (created_by) REFERENCES people(id)
);
CREATE INDEX post_drafts_club_id_created_by_updated_at_id_idx ON post_drafts USING btree (club_id, created_by, updated_at, id);

create table provider_read_askers (
    club_id uuid not null,
    read_id uuid not null,
    person_id uuid not null,
    constraint provider_read_askers_pkey PRIMARY KEY (club_id, read_id, person_id),
    constraint provider_read_askers_club_id_read_id_fkey FOREIGN KEY (club_id, read_id) REFERENCES provider_reads(club_id, id) ON DELETE CASCADE,
    constraint provider_read_askers_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id)
);

create table provider_reads (
    club_id uuid not null,
    id uuid not null,
    connection_id uuid not null,
    epoch timestamp with time zone not null,
    account_id uuid not null,
    credential_generation integer not null,
    kind text not null,
    params jsonb not null,
    params_key bytea not null,
    evidence_subject text,
    state text default 'pending'::text not null,
    requested_at timestamp with time zone not null,
    claim_worker_id uuid,
    claim_fencing_token bigint,
    claim_nonce uuid,
    claimed_at timestamp with time zone,
    observed_at timestamp with time zone,
    items jsonb,
    next_offset integer,
    total integer,
    code text,
    constraint provider_reads_pkey PRIMARY KEY (club_id, id),
    constraint provider_reads_claim_check CHECK ((((claim_worker_id IS NULL) = (state <> 'running'::text)) AND ((claim_fencing_token IS NULL) = (state <> 'running'::text)) AND ((claim_nonce IS NULL) = (state <> 'running'::text)) AND ((claimed_at IS NULL) = (state <> 'running'::text)))),
    constraint provider_reads_code_check CHECK (((code IS NULL) = (state <> 'failed'::text))),
    constraint provider_reads_items_check CHECK ((((items IS NULL) = (state <> 'succeeded'::text)) AND ((observed_at IS NULL) = (state <> 'succeeded'::text)))),
    constraint provider_reads_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'running'::text, 'succeeded'::text, 'failed'::text]))),
    constraint provider_reads_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
    constraint provider_reads_club_id_connection_id_fkey FOREIGN KEY (club_id, connection_id) REFERENCES connections(club_id, id) ON DELETE CASCADE
);
CREATE INDEX provider_reads_requested_at_id_idx ON provider_reads USING btree (requested_at, id);
CREATE INDEX provider_reads_same_idx ON provider_reads USING btree (club_id, connection_id, params_key, requested_at);
CREATE INDEX provider_reads_waiting_idx ON provider_reads USING btree (club_id, connection_id, requested_at, id) WHERE (state = ANY (ARRAY['pending'::text, 'running'::text]));

create table rate_limits (
    name text not null,
    key_hash bytea not null,
    ends_at timestamp with time zone not null,
    count integer not null,
    constraint rate_limits_pkey PRIMARY KEY (name, key_hash)
);
CREATE INDEX rate_limits_ends_at_idx ON rate_limits USING btree (ends_at);

create table recipient_lists (
    club_id uuid not null,
    id uuid not null,
    name text not null,
    user_ids text[] not null,
    revision integer not null,
    created_by uuid not null,
    updated_by uuid not null,
    created_at timestamp with time zone default lastcall_now() not null,
    updated_at timestamp with time zone default lastcall_now() not null,
    constraint recipient_lists_pkey PRIMARY KEY (club_id, id),
    constraint recipient_lists_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 80))),
    constraint recipient_lists_revision_check CHECK ((revision >= 1)),
    constraint recipient_lists_user_ids_check CHECK (((cardinality(user_ids) >= 1) AND (cardinality(user_ids) <= 100))),
    constraint recipient_lists_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE,
    constraint recipient_lists_created_by_fkey FOREIGN KEY (created_by) REFERENCES people(id),
    constraint recipient_lists_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES people(id)
);
CREATE INDEX recipient_lists_club_id_updated_at_id_idx ON recipient_lists USING btree (club_id, updated_at, id);

create table retention (
    club_id uuid not null,
    id uuid not null,
    join_request_id uuid,
    keep boolean default false not null,
    archived_at timestamp with time zone,
    archived_reason text,
    archived_by_kind text,
    archived_by_person_id uuid,
    version integer default 1 not null,
    archive_version integer default 0 not null,
    source_activity_at timestamp with time zone not null,
    created_at timestamp with time zone default lastcall_now() not null,
    updated_at timestamp with time zone default lastcall_now() not null,
    revived_at timestamp with time zone,
    approval_id uuid,
    constraint retention_pkey PRIMARY KEY (club_id, id),
    constraint retention_archived_check CHECK (
CASE
    WHEN (archived_at IS NULL) THEN ((archived_reason IS NULL) AND (archived_by_kind IS NULL) AND (archived_by_person_id IS NULL))
    ELSE
    CASE archived_by_kind
        WHEN 'system'::text THEN ((archived_reason = 'idle'::text) AND (archived_by_person_id IS NULL))
        WHEN 'person'::text THEN ((archived_reason = ANY (ARRAY['manual'::text, 'accepted_proposal'::text])) AND (archived_by_person_id IS NOT NULL))
        ELSE false
    END
END),
    constraint retention_source_check CHECK (((num_nonnulls(join_request_id, approval_id) = 1) AND (id = COALESCE(join_request_id, approval_id)))),
    constraint retention_versions_check CHECK (((version >= 1) AND ((archive_version >= 0) AND (archive_version <= version)))),
    constraint retention_archived_by_person_id_fkey FOREIGN KEY (archived_by_person_id) REFERENCES people(id),
    constraint retention_club_id_approval_id_fkey FOREIGN KEY (club_id, approval_id) REFERENCES approvals(club_id, id) ON DELETE CASCADE,
    constraint retention_club_id_join_request_id_fkey FOREIGN KEY (club_id, join_request_id) REFERENCES join_requests(club_id, id) ON DELETE CASCADE
);
CREATE INDEX retention_club_id_approval_id_idx ON retention USING btree (club_id, approval_id) WHERE (approval_id IS NOT NULL);
CREATE INDEX retention_club_id_join_request_id_idx ON retention USING btree (club_id, join_request_id) WHERE (join_request_id IS NOT NULL);
CREATE INDEX retention_idle_idx ON retention USING btree (club_id, archived_at) WHERE (archived_reason = 'idle'::text);

create table retention_refreshes (
    club_id uuid not null,
    asked_at timestamp with time zone not null,
    after_id uuid,
    kind text,
    constraint retention_refreshes_pkey PRIMARY KEY (club_id),
    constraint retention_refreshes_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE
);
CREATE INDEX retention_refreshes_asked_at_club_id_idx ON retention_refreshes USING btree (asked_at, club_id);

create table retention_tellings (
    club_id uuid not null,
    kind text not null,
    day date not null,
    tell_at timestamp with time zone not null,
    constraint retention_tellings_pkey PRIMARY KEY (club_id, kind, day),
    constraint retention_tellings_kind_check CHECK ((kind = ANY (ARRAY['reminder'::text, 'digest'::text]))),
    constraint retention_tellings_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE
);
CREATE INDEX retention_tellings_digest_idx ON retention_tellings USING btree (tell_at, club_id) WHERE (kind = 'digest'::text);
CREATE INDEX retention_tellings_reminder_idx ON retention_tellings USING btree (tell_at, club_id) WHERE (kind = 'reminder'::text);

create table routine_versions (
    name text not null,
    digest text not null,
    applied_at timestamp with time zone default lastcall_now() not null,
    constraint routine_versions_pkey PRIMARY KEY (name)
);

create table sessions (
    id uuid not null,
    person_id uuid not null,
    token_hash bytea not null,
    created_at timestamp with time zone default lastcall_now() not null,
    expires_at timestamp with time zone not null,
    revoked_at timestamp with time zone,
    user_agent text default ''::text not null,
    signed_in_by text not null,
    authenticated_at timestamp with time zone default lastcall_now() not null,
    last_seen_at timestamp with time zone default lastcall_now() not null,
    constraint sessions_pkey PRIMARY KEY (id),
    constraint sessions_token_hash_key UNIQUE (token_hash),
    constraint sessions_signed_in_by_check CHECK ((signed_in_by = ANY (ARRAY['link'::text, 'code'::text, 'passkey'::text, 'provider'::text, 'command line'::text]))),
    constraint sessions_token_hash_length_check CHECK ((octet_length(token_hash) = 32)),
    constraint sessions_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id) ON DELETE CASCADE
);
CREATE INDEX sessions_end_idx ON sessions USING btree (LEAST(expires_at, revoked_at));
CREATE INDEX sessions_person_id_idx ON sessions USING btree (person_id);

create table sign_in_flows (
    id uuid not null,
    kind text not null,
    purpose text not null,
    person_id uuid,
    provider text,
    state_hash bytea not null,
    browser_hash bytea not null,
    next text default '/'::text not null,
    created_at timestamp with time zone default lastcall_now() not null,
    expires_at timestamp with time zone not null,
    used_at timestamp with time zone,
    constraint sign_in_flows_pkey PRIMARY KEY (id),
    constraint sign_in_flows_state_hash_key UNIQUE (state_hash),
    constraint sign_in_flows_browser_hash_length_check CHECK ((octet_length(browser_hash) = 32)),
    constraint sign_in_flows_kind_check CHECK ((kind = ANY (ARRAY['passkey'::text, 'provider'::text]))),
    constraint sign_in_flows_person_check CHECK (((purpose = 'sign_in'::text) = (person_id IS NULL))),
    constraint sign_in_flows_provider_check CHECK (((kind = 'provider'::text) = (provider IS NOT NULL))),
    constraint sign_in_flows_purpose_check CHECK ((purpose = ANY (ARRAY['sign_in'::text, 'add'::text, 'step_up'::text]))),
    constraint sign_in_flows_state_hash_length_check CHECK ((octet_length(state_hash) = 32)),
    constraint sign_in_flows_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id) ON DELETE CASCADE
);
CREATE INDEX sign_in_flows_expires_at_idx ON sign_in_flows USING btree (expires_at);
CREATE INDEX sign_in_flows_person_id_idx ON sign_in_flows USING btree (person_id);

create table sign_in_links (
    id uuid not null,
    person_id uuid,
    token_hash bytea not null,
    created_at timestamp with time zone default lastcall_now() not null,
    expires_at timestamp with time zone not null,
    used_at timestamp with time zone,
    email text,
    purpose text default 'sign_in'::text not null,
    browser_hash bytea,
    code_hash bytea,
    attempts integer default 0 not null,
    constraint sign_in_links_pkey PRIMARY KEY (id),
    constraint sign_in_links_token_hash_key UNIQUE (token_hash),
    constraint sign_in_links_attempts_check CHECK ((attempts >= 0)),
    constraint sign_in_links_code_has_browser_check CHECK (((browser_hash IS NULL) = (code_hash IS NULL))),
    constraint sign_in_links_for_whom_check CHECK (
CASE
    WHEN (purpose = 'sign_in'::text) THEN (num_nonnulls(person_id, email) = 1)
    WHEN (purpose = 'email'::text) THEN (num_nonnulls(person_id, email) = 2)
    ELSE ((person_id IS NOT NULL) AND (email IS NULL))
END),
    constraint sign_in_links_purpose_check CHECK ((purpose = ANY (ARRAY['sign_in'::text, 'step_up'::text, 'email'::text]))),
    constraint sign_in_links_token_hash_length_check CHECK ((octet_length(token_hash) = 32)),
    constraint sign_in_links_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id) ON DELETE CASCADE
);
CREATE INDEX sign_in_links_browser_hash_idx ON sign_in_links USING btree (browser_hash) WHERE (used_at IS NULL);
CREATE INDEX sign_in_links_expires_at_idx ON sign_in_links USING btree (expires_at);
CREATE INDEX sign_in_links_person_id_idx ON sign_in_links USING btree (person_id);

create table slack_installations (
    club_id uuid not null,
    id uuid not null,
    team_id text not null,
    team_name text not null,
    token_sealed bytea not null,
    role_id uuid not null,
    installed_by uuid not null,
    installed_at timestamp with time zone default lastcall_now() not null,
    constraint slack_installations_pkey PRIMARY KEY (club_id, id),
    constraint slack_installations_club_id_key UNIQUE (club_id),
    constraint slack_installations_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE,
    constraint slack_installations_club_id_role_id_fkey FOREIGN KEY (club_id, role_id) REFERENCES staff_roles(club_id, id),
    constraint slack_installations_installed_by_fkey FOREIGN KEY (installed_by) REFERENCES people(id)
);
CREATE INDEX slack_installations_installed_by_idx ON slack_installations USING btree (installed_by);

create table slack_links (
    club_id uuid not null,
    id uuid not null,
    installation_id uuid not null,
    slack_user_id text not null,
    slack_name text not null,
    token_hash bytea not null,
    request_hash bytea not null,
    created_at timestamp with time zone default lastcall_now() not null,
    expires_at timestamp with time zone not null,
    used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    constraint slack_links_pkey PRIMARY KEY (club_id, id),
    constraint slack_links_club_id_request_hash_key UNIQUE (club_id, request_hash),
    constraint slack_links_club_id_token_hash_key UNIQUE (club_id, token_hash),
    constraint slack_links_hash_length_check CHECK (((octet_length(token_hash) = 32) AND (octet_length(request_hash) = 32))),
    constraint slack_links_club_id_installation_id_fkey FOREIGN KEY (club_id, installation_id) REFERENCES slack_installations(club_id, id) ON DELETE CASCADE
);
CREATE INDEX slack_links_club_id_slack_user_id_idx ON slack_links USING btree (club_id, slack_user_id);
CREATE INDEX slack_links_expires_at_idx ON slack_links USING btree (expires_at);

create table slack_people (
    club_id uuid not null,
    id uuid not null,
    installation_id uuid not null,
    slack_user_id text not null,
    person_id uuid not null,
    linked_at timestamp with time zone default lastcall_now() not null,
    constraint slack_people_pkey PRIMARY KEY (club_id, id),
    constraint slack_people_club_id_person_id_key UNIQUE (club_id, person_id),
    constraint slack_people_club_id_slack_user_id_key UNIQUE (club_id, slack_user_id),
    constraint slack_people_club_id_installation_id_fkey FOREIGN KEY (club_id, installation_id) REFERENCES slack_installations(club_id, id) ON DELETE CASCADE,
    constraint slack_people_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id)
);
CREATE INDEX slack_people_person_id_idx ON slack_people USING btree (person_id);

create table spending_totals (
    club_id uuid not null,
    id uuid not null,
    agent_id uuid,
    month date,
    spent numeric(20,6) not null,
    constraint spending_totals_pkey PRIMARY KEY (club_id, id),
    constraint spending_totals_club_id_agent_id_month_key UNIQUE NULLS NOT DISTINCT (club_id, agent_id, month),
    constraint spending_totals_month_check CHECK ((EXTRACT(day FROM month) = (1)::numeric)),
    constraint spending_totals_spent_check CHECK ((spent >= (0)::numeric)),
    constraint spending_totals_club_id_agent_id_fkey FOREIGN KEY (club_id, agent_id) REFERENCES agents(club_id, id),
    constraint spending_totals_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE
);

create table staff_assignments (
    club_id uuid not null,
    id uuid not null,
    role_id uuid not null,
    person_id uuid not null,
    created_at timestamp with time zone default lastcall_now() not null,
    constraint staff_assignments_pkey PRIMARY KEY (club_id, id),
    constraint staff_assignments_club_id_person_id_role_id_key UNIQUE (club_id, person_id, role_id),
    constraint staff_assignments_club_id_role_id_fkey FOREIGN KEY (club_id, role_id) REFERENCES staff_roles(club_id, id) ON DELETE CASCADE,
    constraint staff_assignments_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id) ON DELETE CASCADE
);
CREATE INDEX staff_assignments_club_id_role_id_idx ON staff_assignments USING btree (club_id, role_id);
CREATE INDEX staff_assignments_person_id_idx ON staff_assignments USING btree (person_id);

create table staff_roles (
    club_id uuid not null,
    id uuid not null,
    name text not null,
    permissions text[] default '{}'::text[] not null,
    assignable_role_ids uuid[] default '{}'::uuid[] not null,
    permitted_provider_role_ids text[] default '{}'::text[] not null,
    preset_key text,
    state text default 'active'::text not null,
    created_at timestamp with time zone default lastcall_now() not null,
    updated_at timestamp with time zone default lastcall_now() not null,
    description text default ''::text not null,
    constraint staff_roles_pkey PRIMARY KEY (club_id, id),
    constraint staff_roles_provider_roles_lower_check CHECK (((permitted_provider_role_ids)::text = lower((permitted_provider_role_ids)::text))),
    constraint staff_roles_state_check CHECK ((state = ANY (ARRAY['active'::text, 'deleted'::text]))),
    constraint staff_roles_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE
);

create table telemetry_coverage (
    club_id uuid not null,
    id uuid not null,
    connection_id uuid not null,
    epoch timestamp with time zone not null,
    state text not null,
    started_at timestamp with time zone not null,
    ended_at timestamp with time zone,
    constraint telemetry_coverage_pkey PRIMARY KEY (club_id, id),
    constraint telemetry_coverage_order_check CHECK ((ended_at >= started_at)),
    constraint telemetry_coverage_state_check CHECK ((state = ANY (ARRAY['observed'::text, 'stale'::text, 'degraded'::text, 'unknown'::text]))),
    constraint telemetry_coverage_club_id_connection_id_fkey FOREIGN KEY (club_id, connection_id) REFERENCES connections(club_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX telemetry_coverage_open_key ON telemetry_coverage USING btree (club_id, connection_id) WHERE (ended_at IS NULL);
CREATE INDEX telemetry_coverage_started_idx ON telemetry_coverage USING btree (club_id, connection_id, started_at);

create table telemetry_instances (
    club_id uuid not null,
    sample_id uuid not null,
    location text not null,
    world_id text not null,
    population integer not null,
    constraint telemetry_instances_pkey PRIMARY KEY (club_id, sample_id, location),
    constraint telemetry_instances_location_check CHECK ((POSITION(('usr_'::text) IN (lower(location))) = 0)),
    constraint telemetry_instances_population_check CHECK ((population >= 0)),
    constraint telemetry_instances_club_id_sample_id_fkey FOREIGN KEY (club_id, sample_id) REFERENCES telemetry_samples(club_id, id) ON DELETE CASCADE
);

create table telemetry_samples (
    club_id uuid not null,
    id uuid not null,
    connection_id uuid not null,
    epoch timestamp with time zone not null,
    poll_id text not null,
    observed_at timestamp with time zone not null,
    received_at timestamp with time zone default lastcall_now() not null,
    member_count integer,
    population integer not null,
    instance_count integer not null,
    constraint telemetry_samples_pkey PRIMARY KEY (club_id, id),
    constraint telemetry_samples_club_id_connection_id_poll_id_key UNIQUE (club_id, connection_id, poll_id),
    constraint telemetry_samples_instance_count_check CHECK (((instance_count >= 0) AND (instance_count <= 200))),
    constraint telemetry_samples_member_count_check CHECK ((member_count >= 0)),
    constraint telemetry_samples_population_check CHECK ((population >= 0)),
    constraint telemetry_samples_club_id_connection_id_fkey FOREIGN KEY (club_id, connection_id) REFERENCES connections(club_id, id) ON DELETE CASCADE
);
CREATE INDEX telemetry_samples_observed_idx ON telemetry_samples USING btree (club_id, connection_id, observed_at);

create table unknown_submissions (
    club_id uuid not null,
    connection_id uuid not null,
    nonce text not null,
    operation_id uuid not null,
    reported_at timestamp with time zone not null,
    constraint unknown_submissions_pkey PRIMARY KEY (club_id, connection_id, nonce),
    constraint unknown_submissions_club_id_connection_id_fkey FOREIGN KEY (club_id, connection_id) REFERENCES connections(club_id, id) ON DELETE CASCADE
);

create table visibility (
    club_id uuid not null,
    category text not null,
    audience text not null,
    role_ids uuid[] default '{}'::uuid[] not null,
    updated_at timestamp with time zone default lastcall_now() not null,
    constraint visibility_pkey PRIMARY KEY (club_id, category),
    constraint visibility_audience_check CHECK (
CASE audience
    WHEN 'roles'::text THEN (cardinality(role_ids) > 0)
    WHEN 'public'::text THEN ((role_ids = '{}'::uuid[]) AND (category <> 'individual_membership_history'::text))
    WHEN 'staff'::text THEN (role_ids = '{}'::uuid[])
    WHEN 'owner'::text THEN (role_ids = '{}'::uuid[])
    ELSE false
END),
    constraint visibility_club_id_fkey FOREIGN KEY (club_id) REFERENCES clubs(id) ON DELETE CASCADE
);

create table worker_keys (
    account_id uuid not null,
    generation integer not null,
    key_hash bytea not null,
    created_at timestamp with time zone default lastcall_now() not null,
    revoked_at timestamp with time zone,
    constraint worker_keys_pkey PRIMARY KEY (account_id, generation),
    constraint worker_keys_key_hash_key UNIQUE (key_hash),
    constraint worker_keys_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
);

CREATE OR REPLACE FUNCTION account_gate_key(p_account uuid)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE
AS $function$ select hashtextextended('lastcall.account:' || p_account::text, 0) $function$;

CREATE OR REPLACE FUNCTION account_obstacle(p_account uuid, p_now timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
    return coalesce(
        (select account_obstacle_of(f.kill_switch, a.kill_switch, a.state, a.cooldown_until, p_now)
           from accounts a, fleet_settings f
          where a.id = p_account and f.id = 1),
        'account_state');
end
$function$;

CREATE OR REPLACE FUNCTION account_obstacle_of(p_fleet_switch boolean, p_switch boolean, p_state text, p_cooldown_until timestamp with time zone, p_now timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select case
               when p_fleet_switch then 'fleet_switch'
               when p_switch then 'account_switch'
               when p_state = 'ready' then 'none'
               when p_state = 'cooldown' and p_cooldown_until <= p_now then 'none'
               else 'account_state'
           end
$function$;

CREATE OR REPLACE FUNCTION allowance_charge(p_scope text, p_amount integer, p_now timestamp with time zone)
 RETURNS void
 LANGUAGE sql
AS $function$
    update allowances a
       set window_start = date_trunc('minute', p_now, 'UTC'),
           granted = p_amount + case when a.window_start = date_trunc('minute', p_now, 'UTC') then a.granted else 0 end,
           (recent_until, recent_granted) = (
               select array_agg(s.until order by s.until), array_agg(s.granted order by s.until)
                 from (select u.until, sum(u.granted)::integer as granted
                         from (select * from unnest(a.recent_until, a.recent_granted)
                               union all
                               select date_bin('100 ms', p_now, 'epoch') + interval '100 ms', p_amount
                              ) as u (until, granted)
                        where u.until > p_now - interval '60 seconds'
                        group by u.until) as s)
     where a.scope = p_scope
$function$;

CREATE OR REPLACE FUNCTION allowance_free_at(p_use allowances, p_limit integer, p_amount integer, p_now timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
declare
    v_window timestamptz := date_trunc('minute', p_now, 'UTC');
    v_free_at timestamptz := p_now;
    v_slot timestamptz;
begin
    if p_use.window_start = v_window and p_use.granted + p_amount > p_limit then
        v_free_at := v_window + interval '1 minute';
    end if;
    -- The slots of the last 60 seconds leave one by one, oldest first; the sum over a slot and all later ones is what
    -- stands until that slot has left.
    select max(s.until) into v_slot
      from (select u.until, sum(u.granted) over (order by u.until desc) as standing
              from unnest(p_use.recent_until, p_use.recent_granted) as u (until, granted)
             where u.until > p_now - interval '60 seconds') as s
     where s.standing + p_amount > p_limit;
    return greatest(v_free_at, v_slot + interval '60 seconds');
end
$function$;

CREATE OR REPLACE FUNCTION allowance_next_moment(p_account uuid, p_moment timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select case
               when p_moment >= w + interval '55 seconds' then allowance_opening(p_account, w + interval '1 minute')
               else greatest(p_moment, allowance_opening(p_account, w))
           end
      from date_trunc('minute', p_moment, 'UTC') as w
$function$;

CREATE OR REPLACE FUNCTION allowance_opening(p_account uuid, p_window timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select p_window + interval '1 ms' * ((h % 10000 + 10000) % 10000)::integer
      from hashtextextended(p_account::text, extract(epoch from p_window)::bigint) as h
$function$;

CREATE OR REPLACE FUNCTION approval_due(p_club uuid, p_ids uuid[])
 RETURNS TABLE(id uuid, activity_at timestamp with time zone, due_at timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
    select
        a.id,
        a.activity_at,
        case
            when a.status = 'pending'
                and c.state = 'active'
                and r.keep is not true
                and r.archived_at is null
            then greatest(a.activity_at, r.revived_at) + make_interval(hours => 24 * c.retention_days)
        end
    from approvals a
    join clubs c on c.id = a.club_id
    left join retention r
        -- The ids once more: by statistics of a young table the join alone is done over the whole club.
        on r.club_id = p_club and r.id = any (p_ids) and r.id = a.id
    where a.club_id = p_club
      and a.id = any (p_ids)
$function$;

CREATE OR REPLACE FUNCTION archive_idle(p_club uuid, p_id uuid, p_kind text, p_activity timestamp with time zone, p_now timestamp with time zone, p_log_id uuid)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
    v_archive_version bigint;
begin
    insert into retention as r (
        club_id, id, join_request_id, approval_id, archived_at, archived_reason, archived_by_kind,
        archive_version, source_activity_at, created_at, updated_at
    )
    values (
        p_club, p_id, case p_kind when 'join_request' then p_id end, case p_kind when 'approval' then p_id end, p_now, 'idle', 'system',
        1, p_activity, p_now, p_now
    )
    on conflict (club_id, id) do update
    set archived_at = excluded.archived_at,
        archived_reason = excluded.archived_reason,
        archived_by_kind = excluded.archived_by_kind,
        version = r.version + 1,
        archive_version = r.archive_version + 1,
        source_activity_at = excluded.source_activity_at,
        updated_at = excluded.updated_at
    returning r.archive_version into v_archive_version;

    insert into activity_log (
        club_id, id, actor_kind, actor_name, action, entity_type, entity_id, details, created_at
    )
    values (
        p_club, p_log_id, 'system', 'retention', 'retention.archived', p_kind, p_id,
        jsonb_build_object('reason', 'idle', 'archiveVersion', v_archive_version), p_now
    );
    perform note_retention_digest(p_club, p_now);
    return v_archive_version;
end
$function$;

CREATE OR REPLACE FUNCTION are_roles_of_group(p_body jsonb, p_payload jsonb)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
declare
    v_role constant text := p_payload ->> 'roleId';
begin
    if p_payload ? 'roleIds' then
        return not exists (
            select lower(named) from jsonb_array_elements_text(p_payload -> 'roleIds') as r (named)
            except
            select lower(role ->> 'id') from jsonb_array_elements(p_body -> 'roles') as r (role));
    end if;
    if v_role is null or p_body -> 'roles' @> jsonb_build_array(jsonb_build_object('id', v_role)) then
        return true;
    end if;
    return exists (
        select from jsonb_array_elements(p_body -> 'roles') as r (role) where lower(r.role ->> 'id') = lower(v_role));
end
$function$;

CREATE OR REPLACE FUNCTION audit_scan_durations()
 RETURNS TABLE(longest interval, shortest interval, delay interval, overlap interval, back interval)
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select interval '24 hours', interval '5 minutes', interval '1 minute', interval '5 minutes', interval '31 days'
$function$;

CREATE OR REPLACE FUNCTION authority(p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_actor uuid, p_due_at timestamp with time zone, p_payload jsonb, p_account uuid, p_permission text, p_feature text, p_grants text[], p_is_protective boolean, p_now timestamp with time zone)
 RETURNS TABLE(refusal text, body jsonb, observed_at timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
    select case
               when s.obstacle is null or s.obstacle = 'epoch' then 'connection_changed'
               when s.obstacle = 'connection_state' then 'connection_inactive'
               when s.obstacle in ('frozen', 'connection_switch') then 'connection_paused'
               when s.obstacle <> 'none' then 'collector_disabled'
               when is_late(p_due_at, p_now) then 'late_window_elapsed'
               when club_sends(p.club_state) is not true then 'club_inactive'
               when not p.holds then 'staff_permission'
               when not p_feature = any (s.features) then 'feature_disabled'
               when e.body is null then 'provider_authority'
               when e.body ->> 'memberStatus' is distinct from 'member' then 'membership'
               when not holds_grants(e.body, p_grants) then 'provider_permissions'
               when p_is_protective and is_protected_target(p_payload, e.body) then 'protected_target'
               when not are_roles_of_group(e.body, p_payload) then 'role_scope'
               when p_payload ->> 'roleId' is not null and not p.may_assign then 'role_not_assignable'
               when not has_instance_options(e.body, p_payload) then 'invalid_instance_options'
           end,
           e.body, e.observed_at
      from person_standing(p_club, p_actor, p_permission, p_payload ->> 'roleId') as p
      left join connection_standing(p_club, p_connection, p_account, p_epoch, p_now) as s on true
      left join lateral (
           select r.body, r.observed_at
             from evidence_read_by(
                  p_club, p_connection, p_epoch, p_account, s.vrchat_user_id, s.group_id) as r
            where r.observed_at between p_now - evidence_life() and p_now) as e on true
$function$;

CREATE OR REPLACE FUNCTION authorize_operation(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_operation uuid, p_nonce uuid, p_kind text, p_permission text, p_feature text, p_is_protective boolean, p_evidence jsonb, p_evidence_age interval, p_needs_friend boolean, p_friend text, p_is_friend boolean, p_friend_age interval)
 RETURNS TABLE(outcome text, judged_at timestamp with time zone, state text, due_at timestamp with time zone, ready_at timestamp with time zone, expires_at timestamp with time zone, execute_before timestamp with time zone, fanout_at timestamp with time zone)
 LANGUAGE plpgsql
AS $function$
declare
    -- The age was true when the call arrived; what it waits for locks makes the evidence older, not younger.
    v_observed_at constant timestamptz := lastcall_now() - p_evidence_age;
    v_befriended_at constant timestamptz := lastcall_now() - p_friend_age;
    v_is_linked boolean;
    v_verdict text;
    v_due_at timestamptz;
    v_is_locked boolean;
    v_is_stored boolean := false;
    v_is_told boolean;
begin
    if not (is_commit_durable() and lock_fleet_and_account_shared(p_account)) then
        raise exception 'the commit cannot be made durable, or the gates cannot be held';
    end if;
    -- Locked in the order in which they are named at the end.
    perform
      from club_gates c
      join connection_gates n on n.club_id = c.club_id and n.connection_id = p_connection
      join operations o
             on o.club_id = c.club_id and o.id = p_operation and o.event_id is null
                and not is_dependent(o.kind)
     where c.club_id = p_club
       for share of c
       for share of n
       for no key update of o;
    v_is_linked := not found;
    v_is_locked := found or lock_linked(p_club, p_connection, p_operation);

    loop
        judged_at := lastcall_now();
        if v_is_linked then
            select v.code, v.due_at into v_verdict, v_due_at from operation_verdict(p_club, p_operation) as v;
        end if;
        select coalesce(
                   c.refusal,
                   case when not is_sent_as(o.kind, p_kind) then 'claim_unavailable' end,
                   v_verdict,
                   a.refusal,
                   case
                       when p_needs_friend
                            and not is_friendly(o.payload, p_friend, p_is_friend, v_befriended_at, judged_at)
                           then 'recipient_eligibility'
                   end),
               c.refusal is not null or not is_sent_as(o.kind, p_kind) or v_verdict is not null
               or is_evidence_of(a.body, a.observed_at, p_evidence, v_observed_at),
               o.due_at, o.ready_at
          into outcome, v_is_told, due_at, ready_at
          from operations o
         cross join lateral claim_refusal(
               is_held_by(o, p_account, p_generation, p_worker, p_connection, p_epoch, p_token, p_nonce, judged_at),
               p_account, p_generation, p_worker, p_club, p_connection, p_token, judged_at) as c
         cross join lateral authority(
               o.club_id, o.connection_id, o.epoch, o.actor_id, o.due_at, o.payload,
               p_account, p_permission, p_feature, o.grants, p_is_protective, judged_at) as a
         where o.club_id = p_club and o.id = p_operation and v_is_locked;
        if not found then
            outcome := case
                when key_is_current(p_account, p_generation, judged_at) then 'claim_unavailable'
                else 'stale_key'
            end;
            v_is_told := true;
        end if;
        exit when v_is_told or v_is_stored;
        -- This may wait for another authorization of the connection, and then all is judged again.
        perform store_own_member_evidence(
            p_club, p_connection, p_epoch, p_account, p_worker, p_evidence, v_observed_at);
        v_is_stored := true;
    end loop;
    if outcome in ('stale_key', 'claim_unavailable', 'stale_lease', 'collector_disabled') then
        return next;
        return;
    end if;

    if outcome is null then
        update operations o
           set state = 'submitted', submitted_at = judged_at, claim_expires_at = judged_at + submission_life()
         where o.club_id = p_club and o.id = p_operation and o.state is not distinct from 'claimed'
        returning 'authorized', o.state, o.claim_expires_at, o.due_at + operation_grace()
          into outcome, state, expires_at, execute_before;
        outcome := coalesce(outcome, 'claim_unavailable');
    else
        state := refused_state(outcome);
        ready_at := coalesce(settle_verdict(p_club, p_operation, outcome, v_due_at, judged_at), ready_at);
        if outcome = 'event_rescheduled' then
            due_at := v_due_at;
        elsif state <> 'pending' then
            fanout_at := first_fanout(p_club);
        end if;
    end if;
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION ceil_to_millisecond(p_time timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$
    select case
        when date_trunc('milliseconds', p_time) = p_time then p_time
        else date_trunc('milliseconds', p_time) + interval '1 millisecond'
    end
$function$;

CREATE OR REPLACE FUNCTION claim_audit_page(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_id uuid)
 RETURNS TABLE(outcome text, scan_id uuid, starts_at timestamp with time zone, ends_at timestamp with time zone, next_offset integer)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_times record;
    v_read_to timestamptz;
    v_starts timestamptz;
    v_ends timestamptz;
begin
    perform lock_telemetry(p_club, p_connection);

    v_now := lastcall_now();
    outcome := telemetry_obstacle(
        p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, v_now);
    if outcome = 'none' and not exists (
        select from own_member_evidence(p_club, p_connection, p_epoch) as e
         where holds_grants(e.body, array['group-audit-view'])
    ) then
        outcome := 'nothing';
    end if;
    if outcome <> 'none' then
        return next;
        return;
    end if;

    select s.id, s.starts_at, s.ends_at, s.next_offset into scan_id, starts_at, ends_at, next_offset
      from audit_scans s
     where s.club_id = p_club and s.connection_id = p_connection and s.epoch = p_epoch and s.finished_at is null;
    if scan_id is not null then
        outcome := 'page';
        return next;
        return;
    end if;

    select * into v_times from audit_scan_durations();
    select max(s.ends_at) into v_read_to
      from audit_scans s
     where s.club_id = p_club and s.connection_id = p_connection and s.epoch = p_epoch and s.ends_at > p_epoch;
    v_starts := greatest(coalesce(v_read_to - v_times.overlap, p_epoch), v_now - v_times.back);
    v_ends := least(v_starts + v_times.longest, v_now - v_times.delay);
    if v_ends - greatest(v_read_to, v_starts) < v_times.shortest then
        outcome := 'nothing';
        return next;
        return;
    end if;
    insert into audit_scans (club_id, id, connection_id, epoch, starts_at, ends_at)
    values (p_club, p_id, p_connection, p_epoch, v_starts, v_ends);
    outcome := 'page';
    scan_id := p_id;
    starts_at := v_starts;
    ends_at := v_ends;
    next_offset := 0;
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION claim_life()
 RETURNS interval
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN '00:04:00'::interval;

CREATE OR REPLACE FUNCTION claim_operation(p_account uuid, p_generation integer, p_worker uuid, p_journal uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_any_lane boolean)
 RETURNS TABLE(outcome text, judged_at timestamp with time zone, operation_id uuid, nonce uuid, kind text, payload text, due_at timestamp with time zone, execute_before timestamp with time zone, expires_at timestamp with time zone, has_settled boolean, moved_due_at timestamp with time zone, moved_ready_at timestamp with time zone, fanout_at timestamp with time zone)
 LANGUAGE plpgsql
AS $function$
declare
    v_synchronous_commit constant text := set_config('synchronous_commit', 'off', true); -- of this transaction only
    v_now constant timestamptz := lastcall_now();
    v_earliest constant timestamptz := v_now - operation_grace();
    v_lease_until timestamptz;
    v_lanes integer[] := array[1, 2, 3];
    v_is_linked boolean;
    v_verdict text;
    v_due_at timestamptz;
begin
    judged_at := v_now;
    select s.obstacle, s.lease_until into outcome, v_lease_until
      from claim_standing(p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, v_now) as s;
    if outcome <> 'none' then
        return next;
        return;
    end if;
    if p_any_lane then
        select coalesce(array_agg(first.lane order by first.ready_at, first.lane), '{}')
          into v_lanes
          from (values (1), (2), (3)) as l (lane)
         cross join lateral (
               select o.lane, o.ready_at
                 from operations o
                where o.club_id = p_club and o.connection_id = p_connection and o.epoch = p_epoch
                  and o.lane = l.lane and o.state = 'pending'
                  and o.ready_at between v_earliest and v_now and o.due_at >= v_earliest
                order by o.ready_at, o.id
                limit 1) as first;
    end if;
    -- The lanes are walked in that order, and only until one has a row. WRK-17: a claim lives four minutes and
    -- never past the lease.
    for v_attempt in 1 .. 100 loop
        update operations o
           set state = 'claimed', code = null,
               claim_nonce = gen_random_uuid(), claim_account_id = p_account, claim_worker_id = p_worker,
               claim_journal_id = p_journal, claim_fencing_token = p_token, claim_generation = p_generation,
               claim_expires_at = least(v_now + claim_life(), v_lease_until)
         where o.club_id = p_club and o.state is not distinct from 'pending'
           and o.id = (
               select first.id
                 from unnest(v_lanes) as l (lane)
                cross join lateral (
                      select r.id
                        from operations r
                       where r.club_id = p_club and r.connection_id = p_connection and r.epoch = p_epoch
                         and r.lane = l.lane and r.state = 'pending'
                         and r.ready_at between v_earliest and v_now and r.due_at >= v_earliest
                       order by r.ready_at, r.id
                       limit 1
                         for no key update skip locked) as first
                limit 1)
        returning 'claimed', o.id, o.claim_nonce, o.kind, o.payload::text, o.due_at, o.due_at + operation_grace(),
                  o.claim_expires_at, o.event_id is not null or is_dependent(o.kind)
          into outcome, operation_id, nonce, kind, payload, due_at, execute_before, expires_at, v_is_linked;
        exit when v_is_linked is not true;

        select v.code, v.due_at into v_verdict, v_due_at from operation_verdict(p_club, operation_id) as v;
        if v_verdict is null then
            if is_dependent(kind) then
                kind := 'invite_to_instance';
                payload := destination_payload(p_club, operation_id)::text;
            end if;
            exit;
        end if;
        outcome := 'more';
        has_settled := true;
        moved_ready_at := least(
            moved_ready_at, settle_verdict(p_club, operation_id, v_verdict, v_due_at, v_now));
        if v_verdict = 'event_rescheduled' then
            moved_due_at := least(moved_due_at, v_due_at);
        end if;
    end loop;
    outcome := coalesce(outcome, 'nothing');
    if has_settled then
        fanout_at := first_fanout(p_club);
    end if;
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION claim_read(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_kinds text[], p_permissions text[], p_features text[])
 RETURNS TABLE(outcome text, read_id uuid, nonce uuid, kind text, params text, has_failed boolean)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_refusal text;
begin
    perform lock_for_reading(p_account, p_club, p_connection);

    v_now := lastcall_now();
    has_failed := false;
    select s.obstacle into outcome
      from claim_standing(p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, v_now) as s;
    if outcome <> 'none' then
        return next;
        return;
    end if;
    loop
        select r.id into read_id
          from provider_reads r
         where r.club_id = p_club and r.connection_id = p_connection and r.epoch = p_epoch
           and r.account_id = p_account and r.credential_generation = p_generation
           and r.state in ('pending', 'running')
           and r.requested_at > v_now - read_life() and r.requested_at <= v_now
           and (r.state = 'pending' or r.claim_worker_id <> p_worker or r.claim_fencing_token <> p_token)
         order by r.state = 'pending', r.requested_at, r.id
         limit 1
           for no key update skip locked;
        if not found then
            outcome := 'nothing';
            return next;
            return;
        end if;
        select read_refusal(p_club, p_connection, r.id, k.permission, k.feature)
          into v_refusal
          from provider_reads r
          left join unnest(p_kinds, p_permissions, p_features) as k (name, permission, feature) on k.name = r.kind
         where r.club_id = p_club and r.id = read_id;
        if v_refusal is not null then
            perform fail_read_row(p_club, read_id, v_refusal);
            has_failed := true;
            continue;
        end if;
        update provider_reads r
           set state = 'running', claim_worker_id = p_worker, claim_fencing_token = p_token,
               claim_nonce = gen_random_uuid(), claimed_at = v_now
         where r.club_id = p_club and r.id = read_id and r.state in ('pending', 'running')
        returning 'claimed', r.claim_nonce, r.kind, r.params::text into outcome, nonce, kind, params;
        return next;
        return;
    end loop;
end
$function$;

CREATE OR REPLACE FUNCTION claim_refusal(p_is_held boolean, p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_token bigint, p_now timestamp with time zone)
 RETURNS TABLE(refusal text)
 LANGUAGE sql
 STABLE
AS $function$
    select case
               when k.generation is null then 'stale_key'
               when p_is_held is not true then 'claim_unavailable'
               when l.expires_at is null then 'stale_lease'
           end
      from (values (true)) as one
      left join current_key(p_account, p_generation, p_now) as k on true
      left join current_lease(p_club, p_connection, p_account, p_worker, p_token, p_now) as l on true
$function$;

CREATE OR REPLACE FUNCTION claim_standing(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_now timestamp with time zone)
 RETURNS TABLE(obstacle text, lease_until timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
    select case
               when k.generation is null then 'stale_key'
               when l.expires_at is null then 'stale_lease'
               when club_sends(c.state) is not true then 'club_inactive'
               else coalesce(s.obstacle, 'epoch')
           end,
           l.expires_at
      from (values (true)) as one
      left join clubs c on c.id = p_club
      left join current_key(p_account, p_generation, p_now) as k on true
      left join current_lease(p_club, p_connection, p_account, p_worker, p_token, p_now) as l on true
      left join connection_standing(p_club, p_connection, p_account, p_epoch, p_now) as s on true
$function$;

CREATE OR REPLACE FUNCTION clean_up_epoch(p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_limit integer)
 RETURNS TABLE(is_over boolean, has_changed boolean)
 LANGUAGE plpgsql
AS $function$
declare
    v_page constant uuid[] := epoch_page(p_club, p_connection, p_epoch, p_limit);
    v_ended uuid[];
    v_now timestamptz;
begin
    perform from operations o
      where o.club_id = p_club and o.id = any (v_page) and o.state in ('pending', 'claimed')
      order by o.id
        for no key update;

    v_now := lastcall_now();
    with ended as (
        update operations o
           set state = 'rejected', code = e.code, completed_at = v_now,
               claim_nonce = null, claim_account_id = null, claim_worker_id = null, claim_journal_id = null,
               claim_fencing_token = null, claim_generation = null, claim_expires_at = null
          from ended_epochs e
         where e.club_id = p_club and e.connection_id = p_connection and e.epoch = p_epoch
           and o.club_id = p_club and o.id = any (v_page)
           and o.state in ('pending', 'claimed') and o.submitted_at is null
        returning o.id)
    select array_agg(d.id) into v_ended from ended d;
    has_changed := v_ended is not null;
    if has_changed then
        perform operation_ended(p_club, v_ended, v_now);
    end if;

    is_over := cardinality(epoch_page(p_club, p_connection, p_epoch, 1)) = 0;
    if is_over then
        delete from ended_epochs e where e.club_id = p_club and e.connection_id = p_connection and e.epoch = p_epoch;
    end if;
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION club_sends(p_club_state text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$ select p_club_state in ('active', 'paused') $function$;

CREATE OR REPLACE FUNCTION club_standing(p_club uuid, p_person uuid)
 RETURNS TABLE(is_owner boolean, permissions text[], provider_role_ids text[], assignable_role_ids uuid[])
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE
AS $function$
begin
    return query
    select c.owner_id = p.id, r.permissions, r.permitted_provider_role_ids, r.assignable_role_ids
    from clubs c
    join people p on p.id = p_person and p.blocked_at is null
    left join (
        staff_assignments a
        join staff_roles r on r.club_id = a.club_id and r.id = a.role_id and r.state = 'active'
    ) on a.club_id = c.id and a.person_id = p.id
    where c.id = p_club
      and c.state <> 'deleting'
      and (c.owner_id = p.id or r.id is not null);
end
$function$;

CREATE OR REPLACE FUNCTION complete_operation(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_operation uuid, p_nonce uuid, p_state text, p_code text, p_result jsonb, p_evidence_id uuid)
 RETURNS TABLE(outcome text, judged_at timestamp with time zone, state text, code text, is_kept_as_evidence boolean, fanout_at timestamp with time zone)
 LANGUAGE plpgsql
AS $function$
declare
    v_row operations;
    v_kind text;
begin
    if not (is_commit_durable() and lock_fleet_and_account_shared(p_account)) then
        raise exception 'the commit cannot be made durable, or the gates cannot be held';
    end if;
    perform from operations o where o.club_id = p_club and o.id = p_operation for no key update;

    judged_at := lastcall_now();
    is_kept_as_evidence := false;
    update operations o
       set state = p_state, code = p_code, result = p_result, completed_at = judged_at
     where o.club_id = p_club and o.id = p_operation and o.state is not distinct from 'submitted'
       and is_claim_of(o, p_account, p_worker, p_connection, p_epoch, p_token, p_nonce)
       and exists (select from current_key(p_account, p_generation, judged_at))
    returning 'recorded', o.state, o.code, o.kind
      into outcome, state, code, v_kind;
    if found then
        -- Nothing waits for a success but what depends on a creation.
        if state <> 'succeeded' or v_kind = 'create_instance' then
            perform operation_ended(p_club, array[p_operation], judged_at);
            fanout_at := first_fanout(p_club);
        end if;
        return next;
        return;
    end if;

    select * into v_row from operations o where o.club_id = p_club and o.id = p_operation;
    if not key_is_current(p_account, p_generation, judged_at) then
        outcome := 'stale_key';
    elsif not is_claim_of(v_row, p_account, p_worker, p_connection, p_epoch, p_token, p_nonce)
          or v_row.submitted_at is null
    then
        outcome := 'claim_unavailable';
    else
        outcome := 'already_settled';
        state := v_row.state;
        code := v_row.code;
        fanout_at := first_fanout(p_club);
        if v_row.state = 'indeterminate' and p_state <> 'indeterminate' then
            insert into late_results (club_id, id, operation_id, outcome, code, result, reported_at)
            values (p_club, p_evidence_id, p_operation, p_state, p_code, p_result, judged_at)
                on conflict do nothing;
            is_kept_as_evidence := found;
        end if;
    end if;
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION complete_read(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_read uuid, p_nonce uuid, p_permission text, p_feature text, p_grants text[], p_evidence jsonb, p_evidence_age interval, p_age interval, p_items jsonb, p_next_offset integer, p_total integer, p_told jsonb)
 RETURNS TABLE(outcome text, code text)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_now timestamptz := lastcall_now();
    v_evidence_at constant timestamptz := v_now - p_evidence_age;
    v_observed_at constant timestamptz := v_now - greatest(p_age, p_evidence_age);
    v_row provider_reads;
begin
    perform lock_read(p_account, p_club, p_connection, p_read);

    v_now := lastcall_now();
    outcome := read_claim_refusal(
        p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, p_read, p_nonce, v_now);
    if outcome is null then
        if not is_about(p_club, p_connection, p_account, p_evidence) then
            outcome := 'failed';
            code := 'provider_scope';
            perform fail_read_row(p_club, p_read, code);
            return next;
            return;
        end if;
        -- This may wait for an authorization of the connection; then all is judged again.
        perform store_own_member_evidence(
            p_club, p_connection, p_epoch, p_account, p_worker, p_evidence, v_evidence_at);
        v_now := lastcall_now();
        outcome := read_claim_refusal(
            p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, p_read, p_nonce, v_now);
    end if;
    if outcome is not null then
        return next;
        return;
    end if;

    code := page_refusal(
        p_account, p_club, p_connection, p_epoch, p_read, p_permission, p_feature, p_grants, v_observed_at, v_now);
    if code is not null then
        outcome := 'failed';
        perform fail_read_row(p_club, p_read, code);
        return next;
        return;
    end if;
    outcome := 'recorded';
    update provider_reads r
       set state = 'succeeded', observed_at = v_observed_at, items = p_items, next_offset = p_next_offset,
           total = p_total,
           claim_worker_id = null, claim_fencing_token = null, claim_nonce = null, claimed_at = null
     where r.club_id = p_club and r.id = p_read and r.state is not distinct from 'running'
    returning r.* into v_row;
    if not found then
        outcome := 'read_unavailable';
    elsif p_told is not null then
        perform store_read_evidence(
            p_club, p_connection, p_epoch, p_account, p_worker, v_row.kind, v_row.evidence_subject, p_told,
            v_observed_at);
    end if;
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION connection_obstacle(p_club uuid, p_connection uuid, p_account uuid, p_epoch timestamp with time zone, p_now timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
    return coalesce(
        (select s.obstacle from connection_standing(p_club, p_connection, p_account, p_epoch, p_now) as s), 'epoch');
end
$function$;

CREATE OR REPLACE FUNCTION connection_standing(p_club uuid, p_connection uuid, p_account uuid, p_epoch timestamp with time zone, p_now timestamp with time zone)
 RETURNS TABLE(obstacle text, features text[], group_id text, vrchat_user_id text)
 LANGUAGE sql
 STABLE
AS $function$
    select s.obstacle, s.features, s.group_id, s.vrchat_user_id
      from standing_within(p_club, p_connection, p_account, p_epoch, usable_states(), p_now) as s
$function$;

CREATE OR REPLACE FUNCTION coverage_failed(p_club uuid, p_connection uuid, p_state text, p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
    v_connection connections;
    v_last timestamptz;
    v_state text;
begin
    select * into v_connection from connections c where c.club_id = p_club and c.id = p_connection;
    if not 'analytics' = any (v_connection.features) then
        return;
    end if;
    v_last := telemetry_last_observed(p_club, p_connection, v_connection.epoch);
    perform note_stale_coverage(p_club, p_connection, v_connection.epoch, v_last, p_at);
    v_state := case
        when v_last is null then 'unknown'
        when greatest(v_connection.telemetry_failures, v_connection.consecutive_failures)
             >= telemetry_unknown_after() then 'unknown'
        else p_state
    end;
    if not exists (
        select from telemetry_coverage w
         where w.club_id = p_club and w.connection_id = p_connection and w.epoch = v_connection.epoch
           and w.ended_at is null and w.state in (v_state, 'unknown')
    ) then
        perform open_coverage(p_club, p_connection, v_connection.epoch, v_state, p_at);
    end if;
end
$function$;

CREATE OR REPLACE FUNCTION coverage_observed(p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_last timestamp with time zone, p_observed timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    if p_observed <= p_last then
        return;
    end if;
    perform note_stale_coverage(p_club, p_connection, p_epoch, p_last, p_observed);
    if not exists (
        select from telemetry_coverage w
         where w.club_id = p_club and w.connection_id = p_connection and w.epoch = p_epoch
           and w.ended_at is null and (w.state = 'observed' or w.started_at > p_observed)
    ) then
        perform open_coverage(p_club, p_connection, p_epoch, 'observed', p_observed);
    end if;
end
$function$;

CREATE OR REPLACE FUNCTION creation_cursor(p_club uuid, p_creation uuid)
 RETURNS uuid
 LANGUAGE sql
 STABLE
AS $function$
    select coalesce(f.after, '00000000-0000-0000-0000-000000000000')
      from operation_fanouts f
     where f.club_id = p_club and f.subject_kind = 'creation' and f.subject_id = p_creation
$function$;

CREATE OR REPLACE FUNCTION creation_due(p_club uuid, p_creation uuid)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
    v_due_at timestamptz;
begin
    select case
               when c.state in ('pending', 'claimed') then coalesce(event_due(e.starts_at, c.offset_ms), c.due_at)
               else c.due_at
           end
      into v_due_at
      from operations c
      left join events e on e.club_id = c.club_id and e.id = c.event_id
     where c.club_id = p_club and c.id = p_creation;
    return v_due_at;
end
$function$;

CREATE OR REPLACE FUNCTION current_key(p_account uuid, p_generation integer, p_now timestamp with time zone)
 RETURNS TABLE(generation integer)
 LANGUAGE sql
 STABLE
AS $function$
    select k.generation
      from accounts a
      join worker_keys k on k.account_id = a.id and k.generation = a.credential_generation
     where a.id = p_account
       and k.generation = p_generation
       and (k.revoked_at is null or k.revoked_at > p_now)
$function$;

CREATE OR REPLACE FUNCTION current_lease(p_club uuid, p_connection uuid, p_account uuid, p_worker uuid, p_token bigint, p_now timestamp with time zone)
 RETURNS TABLE(expires_at timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
    select l.expires_at
      from leases l
     where l.club_id = p_club
       and l.connection_id = p_connection
       and l.account_id = p_account
       and l.worker_id = p_worker
       and l.fencing_token = p_token
       and l.released_at is null
       and l.expires_at > p_now
$function$;

CREATE OR REPLACE FUNCTION defer_operation(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_operation uuid, p_nonce uuid, p_code text, p_delay double precision)
 RETURNS TABLE(outcome text, judged_at timestamp with time zone, state text, code text, due_at timestamp with time zone, ready_at timestamp with time zone, fanout_at timestamp with time zone)
 LANGUAGE plpgsql
AS $function$
declare
    v_row operations;
    v_verdict text;
    v_microseconds numeric;
begin
    perform lock_fleet_and_account_shared(p_account);
    perform from connection_gates g where g.club_id = p_club and g.connection_id = p_connection for share;
    perform lock_events_of(array[p_club], array[p_operation]);
    select * into v_row from operations o where o.club_id = p_club and o.id = p_operation for no key update;

    judged_at := lastcall_now();
    outcome := case
        when p_delay < 0 or p_delay in ('infinity', 'nan') then 'invalid_delay'
        else preflight_refusal(
            v_row, p_account, p_generation, p_worker, p_connection, p_epoch, p_token, p_nonce, judged_at)
    end;
    if outcome is not null then
        return next;
        return;
    end if;

    outcome := 'recorded';
    select v.code, v.due_at into v_verdict, due_at from event_verdict(p_club, p_operation) as v;
    v_microseconds := ceil(greatest(coalesce(p_delay::numeric, 60), 1) * 1000000);
    if v_verdict <> 'event_rescheduled' then
        state := refused_state(v_verdict);
        code := v_verdict;
    elsif v_row.preflight_failures >= transient_retries() then
        state := 'rejected';
        code := 'preflight_retries_exhausted';
    elsif v_microseconds > extract(epoch from (due_at + operation_grace() - judged_at)) * 1000000 then
        state := 'missed';
        code := 'late_window_elapsed';
    else
        state := 'pending';
        code := p_code;
        update operations o
           set preflight_failures = o.preflight_failures + 1,
               retry_at = judged_at + v_microseconds * interval '1 microsecond',
               ready_at = judged_at + v_microseconds * interval '1 microsecond'
         where o.club_id = p_club and o.id = p_operation and o.state = 'claimed';
        ready_at := judged_at + v_microseconds * interval '1 microsecond';
    end if;
    if v_verdict = 'event_rescheduled' then
        ready_at := move_operation(p_club, p_operation, due_at);
    end if;
    perform settle_unsent(p_club, p_operation, state, code, judged_at);
    fanout_at := first_fanout(p_club);
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION deliver_to_agent(p_club uuid, p_id uuid, p_agent uuid, p_kind text, p_approval uuid, p_dedup text, p_data jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    insert into deliveries (club_id, id, kind, channel, agent_id, approval_id, dedup, data, state, next_at)
    values (p_club, p_id, p_kind, 'agent', p_agent, p_approval, p_dedup, p_data, 'pending', lastcall_now())
    on conflict (club_id, agent_id, kind, dedup) do nothing;
end
$function$;

CREATE OR REPLACE FUNCTION departed_actors(p_club uuid)
 RETURNS SETOF uuid
 LANGUAGE sql
 STABLE
AS $function$
    with recursive actors (id) as (
        (select n.actor_id from operation_notices n where n.club_id = p_club order by n.actor_id limit 1)
        union all
        select (select n.actor_id
                  from operation_notices n
                 where n.club_id = p_club and n.actor_id > a.id
                 order by n.actor_id
                 limit 1)
          from actors a
         where a.id is not null)
    select a.id from actors a where a.id is not null and not exists (select from club_standing(p_club, a.id))
$function$;

CREATE OR REPLACE FUNCTION dependency_verdict(p_club uuid, p_operation uuid, p_due_at timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
    v_row operations;
    v_creation operations;
begin
    select * into v_row from operations o where o.club_id = p_club and o.id = p_operation;
    if is_dependent(v_row.kind) is not true then
        return null;
    end if;
    select * into v_creation from operations o where o.club_id = p_club and o.id = v_row.depends_on;
    return case
        when not is_as_reviewed(v_row, v_creation) then 'dependency_unavailable'
        when v_creation.state in ('rejected', 'indeterminate', 'cancelled', 'missed') then 'instance_creation_failed'
        when creation_due(p_club, v_creation.id) > p_due_at then 'instance_creation_rescheduled'
        when v_creation.state <> 'succeeded' then 'awaiting_instance_creation'
        when not is_destination(
                v_creation.payload, v_creation.result,
                (select c.group_id from connections c where c.club_id = p_club and c.id = v_row.connection_id))
            then 'dependency_destination_unavailable'
    end;
end
$function$;

CREATE OR REPLACE FUNCTION dependents_page(p_club uuid, p_creation uuid, p_after uuid, p_limit integer)
 RETURNS uuid[]
 LANGUAGE sql
 STABLE
AS $function$
    select array(
        select o.id
          from operations o
         where o.club_id = p_club and o.depends_on = p_creation and o.completed_at is null
           and o.state in ('pending', 'claimed') and o.id > p_after
         order by o.id
         limit p_limit)
$function$;

CREATE OR REPLACE FUNCTION destination_payload(p_club uuid, p_operation uuid)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
AS $function$
    select jsonb_build_object(
               'targetUserId', o.payload -> 'targetUserId',
               'worldId', c.result -> 'worldId',
               'instanceId', c.result -> 'instanceId')
      from operations o
      join operations c on c.club_id = o.club_id and c.id = o.depends_on
     where o.club_id = p_club and o.id = p_operation
$function$;

CREATE OR REPLACE FUNCTION end_coverage(p_club uuid, p_connection uuid, p_at timestamp with time zone)
 RETURNS void
 LANGUAGE sql
AS $function$
    update telemetry_coverage
       set ended_at = greatest(started_at, p_at)
     where club_id = p_club and connection_id = p_connection and ended_at is null
$function$;

CREATE OR REPLACE FUNCTION end_expired_lease(p_club uuid, p_connection uuid)
 RETURNS uuid
 LANGUAGE plpgsql
AS $function$
declare
    v_now timestamptz;
    v_account uuid;
begin
    perform from leases l where l.club_id = p_club and l.connection_id = p_connection for no key update;

    v_now := lastcall_now();
    update leases l set released_at = v_now
     where l.club_id = p_club and l.connection_id = p_connection
       and l.released_at is null and l.expires_at <= v_now
    returning l.account_id into v_account;
    return v_account;
end
$function$;

CREATE OR REPLACE FUNCTION epoch_page(p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_limit integer)
 RETURNS uuid[]
 LANGUAGE sql
 STABLE
AS $function$
    select array(
        (select o.id
           from operations o
          where o.club_id = p_club and o.connection_id = p_connection and o.epoch = p_epoch and o.state = 'claimed'
            and not is_awaited(o.club_id, o.id, o.kind)
          order by o.due_at, o.id
          limit p_limit)
        union all
        (select o.id
           from operations o
          where o.club_id = p_club and o.connection_id = p_connection and o.epoch = p_epoch and o.state = 'pending'
            and not is_awaited(o.club_id, o.id, o.kind)
          order by o.lane, o.ready_at, o.id
          limit p_limit)
        limit p_limit)
$function$;

CREATE OR REPLACE FUNCTION event_due(p_starts_at timestamp with time zone, p_offset_ms bigint)
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN (p_starts_at + ((p_offset_ms)::double precision * '00:00:00.001'::interval));

CREATE OR REPLACE FUNCTION event_verdict(p_club uuid, p_operation uuid)
 RETURNS TABLE(code text, due_at timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
    select case
               when o.event_id is not null and (e.id is null or e.removed_at is not null)
                    or n.removed_at is not null
                   then 'event_deleted'
               when was_cancelled(e.status, e.cancel_generation, o.event_cancel_generation)
                    or was_cancelled(n.status, n.cancel_generation, c.event_cancel_generation)
                   then 'event_cancelled'
               when o.offset_ms is not null
                    and has_lost_time(e.starts_at, e.tba_generation, o.event_tba_generation)
                   then 'event_time_tba'
               when o.due_at <> event_due(e.starts_at, o.offset_ms) then 'event_rescheduled'
           end,
           coalesce(event_due(e.starts_at, o.offset_ms), o.due_at)
      from operations o
      left join events e on e.club_id = o.club_id and e.id = o.event_id
      left join operations c
             on c.club_id = o.club_id and c.id = o.depends_on and c.event_id = o.dependency_event_id
      left join events n on n.club_id = c.club_id and n.id = c.event_id
     where o.club_id = p_club and o.id = p_operation
$function$;

CREATE OR REPLACE FUNCTION evidence_life()
 RETURNS interval
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN '00:01:00'::interval;

CREATE OR REPLACE FUNCTION evidence_read_by(p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_account uuid, p_vrchat_user text, p_group text)
 RETURNS TABLE(account_id uuid, observed_at timestamp with time zone, body jsonb)
 LANGUAGE sql
 STABLE
AS $function$
    select e.account_id, e.observed_at, e.body
      from evidence e
     where e.club_id = p_club and e.connection_id = p_connection
       and e.kind = 'own_member' and e.subject = p_vrchat_user
       and e.account_id = p_account and e.epoch = p_epoch
       and e.body ->> 'groupId' = p_group
$function$;

CREATE OR REPLACE FUNCTION expire_claim(p_club uuid, p_operation uuid, p_nonce uuid, p_expires_at timestamp with time zone)
 RETURNS TABLE(is_done boolean, due_at timestamp with time zone, ready_at timestamp with time zone, account_id uuid)
 LANGUAGE plpgsql
AS $function$
declare
    v_row operations;
    v_now timestamptz;
begin
    select * into v_row from operations o where o.club_id = p_club and o.id = p_operation for no key update;

    v_now := lastcall_now();
    is_done := v_row.state = 'claimed' and v_row.claim_nonce = p_nonce
        and v_row.claim_expires_at = p_expires_at and v_row.claim_expires_at <= v_now
        and settle_unsent(p_club, p_operation, 'pending', null, v_now);
    due_at := v_row.due_at;
    ready_at := v_row.ready_at;
    account_id := (
        select c.account_id from connections c where c.club_id = p_club and c.id = v_row.connection_id);
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION expire_reads(p_clubs uuid[], p_reads uuid[])
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION fail_read(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_read uuid, p_nonce uuid, p_code text)
 RETURNS TABLE(outcome text)
 LANGUAGE plpgsql
AS $function$
begin
    perform lock_read(p_account, p_club, p_connection, p_read);

    outcome := read_claim_refusal(
        p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, p_read, p_nonce, lastcall_now());
    if outcome is null then
        outcome := 'recorded';
        perform fail_read_row(p_club, p_read, p_code);
    end if;
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION fail_read_row(p_club uuid, p_read uuid, p_code text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    update provider_reads r
       set state = 'failed', code = p_code,
           claim_worker_id = null, claim_fencing_token = null, claim_nonce = null, claimed_at = null
     where r.club_id = p_club and r.id = p_read and r.state in ('pending', 'running');
end
$function$;

CREATE OR REPLACE FUNCTION fails_at_its_work(p_connection connections)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select p_connection.features <@ array['analytics']
       and coalesce(p_connection.backoff_until > p_connection.last_attempt_at, false)
$function$;

CREATE OR REPLACE FUNCTION fan_out_creation(p_club uuid, p_creation uuid, p_limit integer)
 RETURNS TABLE(is_over boolean, has_changed boolean, due_at timestamp with time zone, ready_at timestamp with time zone, account_ids uuid[], fanout_at timestamp with time zone)
 LANGUAGE plpgsql
AS $function$
declare
    v_after constant uuid := creation_cursor(p_club, p_creation);
    v_page constant uuid[] := dependents_page(p_club, p_creation, v_after, p_limit);
    v_older constant uuid[] := array(select p.id from unnest(v_page) as p (id) where p.id < p_creation);
    v_newer constant uuid[] := array(select p.id from unnest(v_page) as p (id) where p.id > p_creation);
    v_ended uuid[];
    v_now timestamptz;
begin
    is_over := false;
    has_changed := false;
    perform lock_events_of(array_fill(p_club, array[cardinality(v_page)]), v_page);
    perform from operations o
      where o.club_id = p_club and o.id = any (v_older) and o.state in ('pending', 'claimed')
      order by o.id
        for no key update;
    perform from operations o where o.club_id = p_club and o.id = p_creation for share;
    perform from operations o
      where o.club_id = p_club and o.id = any (v_newer) and o.state in ('pending', 'claimed')
      order by o.id
        for no key update;
    if creation_cursor(p_club, p_creation) is distinct from v_after then
        -- Written anew, or gone on by somebody else, before the creation was held.
        return next;
        return;
    end if;

    v_now := lastcall_now();
    with judged as (
        select p.id, v.code, v.due_at,
               case when v.code is null then 'pending' else refused_state(v.code) end as state,
               dependency_verdict(p_club, p.id, v.due_at) = 'awaiting_instance_creation' as is_waiting
          from unnest(v_page) as p (id)
         cross join lateral (select * from operation_verdict(p_club, p.id) offset 0) as v),
    moved as (
        update operations o
           set state = j.state,
               code = nullif(j.code, 'event_rescheduled'),
               completed_at = case when j.state <> 'pending' then v_now end,
               due_at = j.due_at,
               ready_at = case when j.is_waiting is not true then greatest(j.due_at, o.retry_at) end,
               claim_nonce = null, claim_account_id = null, claim_worker_id = null, claim_journal_id = null,
               claim_fencing_token = null, claim_generation = null, claim_expires_at = null
          from judged j
         where o.club_id = p_club and o.id = j.id and o.state in ('pending', 'claimed') and o.submitted_at is null
           and (j.code is distinct from 'awaiting_instance_creation' or o.ready_at is not null)
           and (j.code is not null or o.ready_at is null)
        returning o.id, o.completed_at, o.due_at, o.ready_at, o.connection_id)
    select count(*) > 0,
           min(m.due_at) filter (where m.completed_at is null),
           min(m.ready_at) filter (where m.completed_at is null),
           array_agg(distinct c.account_id) filter (where m.completed_at is null),
           array_agg(m.id) filter (where m.completed_at is not null)
      into has_changed, due_at, ready_at, account_ids, v_ended
      from moved m
      join connections c on c.club_id = p_club and c.id = m.connection_id;
    if v_ended is not null then
        perform operation_ended(p_club, v_ended, v_now);
    end if;

    is_over := cardinality(v_page) < p_limit;
    if is_over then
        delete from operation_fanouts f
         where f.club_id = p_club and f.subject_kind = 'creation' and f.subject_id = p_creation;
    else
        update operation_fanouts f
           set after = v_page[p_limit]
         where f.club_id = p_club and f.subject_kind = 'creation' and f.subject_id = p_creation;
    end if;
    fanout_at := first_fanout(p_club);
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION fan_out_event(p_club uuid, p_event uuid, p_limit integer)
 RETURNS TABLE(is_over boolean, has_changed boolean, due_at timestamp with time zone, ready_at timestamp with time zone, account_ids uuid[], fanout_at timestamp with time zone)
 LANGUAGE plpgsql
AS $function$
declare
    v_after uuid;
    v_page uuid[];
    v_ended uuid[];
    v_now timestamptz;
begin
    perform from events e where e.club_id = p_club and e.id = p_event for share;
    select coalesce(f.after, '00000000-0000-0000-0000-000000000000') into v_after
      from operation_fanouts f
     where f.club_id = p_club and f.subject_kind = 'event' and f.subject_id = p_event;
    v_page := array(
        select o.id
          from operations o
         where o.club_id = p_club and o.event_id = p_event and o.completed_at is null
           and o.state in ('pending', 'claimed') and o.id > v_after
         order by o.id
         limit p_limit);
    perform from operations o
      where o.club_id = p_club and o.id = any (v_page) and o.state in ('pending', 'claimed')
      order by o.id
        for no key update;

    v_now := lastcall_now();
    with moved as (
        update operations o
           set state = refused_state(v.code),
               code = case when v.code = 'event_rescheduled' then o.code else v.code end,
               completed_at = case when refused_state(v.code) <> 'pending' then v_now end,
               due_at = case when v.code = 'event_rescheduled' then v.due_at else o.due_at end,
               ready_at = case
                   when v.code = 'event_rescheduled' and o.ready_at is not null then greatest(v.due_at, o.retry_at)
                   when v.code <> 'awaiting_instance_creation' then o.ready_at
               end,
               claim_nonce = null, claim_account_id = null, claim_worker_id = null, claim_journal_id = null,
               claim_fencing_token = null, claim_generation = null, claim_expires_at = null
          from unnest(v_page) as p (id)
         -- Offset 0: judged row by row and once each, however many rows the planner thinks there are.
         cross join lateral (select * from operation_verdict(p_club, p.id) offset 0) as v
         where o.club_id = p_club and o.id = p.id and v.code is not null
           and (v.code <> 'awaiting_instance_creation' or o.ready_at is not null)
           and o.state in ('pending', 'claimed') and o.submitted_at is null
        returning o.id, o.completed_at, o.due_at, o.ready_at, o.connection_id)
    select count(*) > 0,
           min(m.due_at) filter (where m.completed_at is null),
           min(m.ready_at) filter (where m.completed_at is null),
           array_agg(distinct c.account_id) filter (where m.completed_at is null),
           array_agg(m.id) filter (where m.completed_at is not null)
      into has_changed, due_at, ready_at, account_ids, v_ended
      from moved m
      join connections c on c.club_id = p_club and c.id = m.connection_id;
    if v_ended is not null then
        perform operation_ended(p_club, v_ended, v_now);
        fanout_at := first_fanout(p_club);
    end if;

    is_over := cardinality(v_page) < p_limit;
    if is_over then
        delete from operation_fanouts f
         where f.club_id = p_club and f.subject_kind = 'event' and f.subject_id = p_event;
    else
        update operation_fanouts f
           set after = v_page[p_limit]
         where f.club_id = p_club and f.subject_kind = 'event' and f.subject_id = p_event
           and coalesce(f.after, '00000000-0000-0000-0000-000000000000') < v_page[p_limit];
    end if;
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION first_fanout(p_club uuid)
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE
AS $function$ select min(f.created_at) from operation_fanouts f where f.club_id = p_club $function$;

CREATE OR REPLACE FUNCTION first_notice_mail()
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE
AS $function$ select n.mail_at from operation_notices n where n.mail_at is not null order by n.mail_at, n.id limit 1 $function$;

CREATE OR REPLACE FUNCTION fleet_gate_key()
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE
AS $function$ select hashtextextended('lastcall.fleet', 0) $function$;

CREATE OR REPLACE FUNCTION forget_read_evidence(p_club uuid, p_connection uuid, p_kind text, p_subject text, p_observed_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    delete from evidence e
     where e.club_id = p_club and e.connection_id = p_connection and e.kind = p_kind and e.subject = p_subject
       and e.observed_at <= p_observed_at;
end
$function$;

CREATE OR REPLACE FUNCTION has_instance_options(p_body jsonb, p_payload jsonb)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select case p_payload ->> 'access'
        when 'public' then coalesce(p_body ->> 'privacy' = 'default', false)
            and coalesce(p_payload -> 'roleIds', '[]') = '[]'
        when 'plus' then coalesce(p_payload -> 'roleIds', '[]') = '[]'
        else true
    end
$function$;

CREATE OR REPLACE FUNCTION has_lost_time(p_starts_at timestamp with time zone, p_generation integer, p_reviewed integer)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ((p_starts_at IS NULL) OR (p_generation <> p_reviewed));

CREATE OR REPLACE FUNCTION held_club_standing(p_club uuid, p_person uuid)
 RETURNS TABLE(is_owner boolean, permissions text[], provider_role_ids text[], assignable_role_ids uuid[])
 LANGUAGE plpgsql
AS $function$
begin
    perform from club_gates g where g.club_id = p_club for share;

    return query select s.* from club_standing(p_club, p_person) s;
end
$function$;

CREATE OR REPLACE FUNCTION holds_grants(p_body jsonb, p_grants text[])
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select coalesce(
        p_body ->> 'memberStatus' = 'member'
        and jsonb_typeof(p_body -> 'permissions') = 'array'
        and (p_body -> 'permissions' ? '*' or p_body -> 'permissions' ?& p_grants),
        false)
$function$;

CREATE OR REPLACE FUNCTION instance_group(p_instance text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN ((length(p_instance) - length(replace(p_instance, '~group('::text, ''::text))) = length('~group('::text)) THEN "substring"(p_instance, '~group\(([^~()]+)\)(?:~|$)'::text) ELSE NULL::text END;

CREATE OR REPLACE FUNCTION is_about(p_club uuid, p_connection uuid, p_account uuid, p_evidence jsonb)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
    select exists (
        select
          from connections c
          join accounts a on a.id = p_account
         where c.club_id = p_club and c.id = p_connection
           and c.group_id = p_evidence ->> 'groupId' and a.vrchat_user_id = p_evidence ->> 'userId')
$function$;

CREATE OR REPLACE FUNCTION is_among(p_locked uuid[], p_event uuid, p_dependency_event uuid)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (array_remove(ARRAY[p_event, p_dependency_event], NULL::uuid) <@ p_locked);

CREATE OR REPLACE FUNCTION is_as_reviewed(p_row operations, p_creation operations)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select coalesce(
        p_creation.kind = 'create_instance'
        and p_creation.connection_id = p_row.connection_id
        and p_creation.epoch = p_row.epoch
        and p_creation.revision = p_row.dependency_revision
        and (p_row.payload ->> 'creationRevision')::numeric = p_row.dependency_revision
        and p_creation.event_id is not distinct from p_row.dependency_event_id,
        false)
$function$;

CREATE OR REPLACE FUNCTION is_awaited(p_club uuid, p_operation uuid, p_kind text)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
    select p_kind = 'create_instance' and exists (
           select
             from operations c
             join operations d on d.club_id = c.club_id and d.depends_on = c.id
            where c.club_id = p_club and c.id = p_operation
              and d.connection_id = c.connection_id and d.epoch = c.epoch
              and d.completed_at is null and d.state in ('pending', 'claimed'))
$function$;

CREATE OR REPLACE FUNCTION is_claim_of(p_row operations, p_account uuid, p_worker uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_nonce uuid)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select coalesce(
        p_row.connection_id = p_connection
        and p_row.epoch = p_epoch
        and p_row.claim_account_id = p_account
        and p_row.claim_worker_id = p_worker
        and p_row.claim_fencing_token = p_token
        and p_row.claim_nonce = p_nonce,
        false)
$function$;

CREATE OR REPLACE FUNCTION is_commit_durable()
 RETURNS boolean
 LANGUAGE sql
AS $function$
    select current_setting('synchronous_commit') not in ('off', 'local', 'remote_write')
        or set_config('synchronous_commit', 'on', true) = 'on'
$function$;

CREATE OR REPLACE FUNCTION is_dependent(p_kind text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (p_kind = 'invite_to_created_instance'::text);

CREATE OR REPLACE FUNCTION is_destination(p_payload jsonb, p_result jsonb, p_group text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select coalesce(
        lower(p_result ->> 'worldId') = lower(p_payload ->> 'worldId')
        and lower(instance_group(p_result ->> 'instanceId')) = lower(p_group),
        false)
$function$;

CREATE OR REPLACE FUNCTION is_evidence_of(p_body jsonb, p_observed_at timestamp with time zone, p_brought jsonb, p_brought_from timestamp with time zone)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$ select coalesce(p_observed_at >= p_brought_from - interval '1 second' and p_body = p_brought, false) $function$;

CREATE OR REPLACE FUNCTION is_friendly(p_payload jsonb, p_friend text, p_is_friend boolean, p_seen_at timestamp with time zone, p_now timestamp with time zone)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select coalesce(
        p_is_friend
        and lower(p_friend) = lower(p_payload ->> 'targetUserId')
        and p_seen_at between p_now - evidence_life() and p_now,
        false)
$function$;

CREATE OR REPLACE FUNCTION is_held_by(p_row operations, p_account uuid, p_generation integer, p_worker uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_nonce uuid, p_now timestamp with time zone)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select p_row.state = 'claimed' and p_row.claim_expires_at > p_now and p_row.claim_generation = p_generation
        and is_claim_of(p_row, p_account, p_worker, p_connection, p_epoch, p_token, p_nonce)
$function$;

CREATE OR REPLACE FUNCTION is_late(p_due_at timestamp with time zone, p_now timestamp with time zone)
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN (p_now > (p_due_at + '00:15:00'::interval));

CREATE OR REPLACE FUNCTION is_protected_target(p_payload jsonb, p_body jsonb)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$ select lower(p_payload ->> 'targetUserId') in (lower(p_body ->> 'ownerId'), lower(p_body ->> 'userId')) $function$;

CREATE OR REPLACE FUNCTION is_read_alive(p_since timestamp with time zone, p_now timestamp with time zone)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN COALESCE(((p_since > (p_now - '00:01:00'::interval)) AND (p_since <= p_now)), false);

CREATE OR REPLACE FUNCTION is_sent_as(p_stored text, p_sent text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select p_stored = p_sent or p_stored = 'invite_to_created_instance' and p_sent = 'invite_to_instance'
$function$;

CREATE OR REPLACE FUNCTION join_request_due(p_club uuid, p_ids uuid[])
 RETURNS TABLE(id uuid, activity_at timestamp with time zone, due_at timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
    select
        j.id,
        j.activity_at,
        case
            when j.status = 'pending_approval'
                and c.state = 'active'
                and i.id is not null
                and r.keep is not true
                and r.archived_at is null
            then greatest(j.activity_at, r.revived_at) + make_interval(hours => 24 * c.retention_days)
        end
    from join_requests j
    join clubs c on c.id = j.club_id
    left join invites i on i.club_id = j.club_id and i.id = j.invite_id
    left join retention r
        -- The ids once more: by statistics of a young table the join alone is done over the whole club.
        on r.club_id = p_club and r.id = any (p_ids) and r.id = j.id
    where j.club_id = p_club
      and j.id = any (p_ids)
$function$;

CREATE OR REPLACE FUNCTION key_is_current(p_account uuid, p_generation integer, p_now timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
    return exists (select from current_key(p_account, p_generation, p_now));
end
$function$;

CREATE OR REPLACE FUNCTION lastcall_now()
 RETURNS timestamp with time zone
 LANGUAGE sql
AS $function$ select clock_timestamp() $function$;

CREATE OR REPLACE FUNCTION late_at(p_due_at timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (p_due_at + '00:15:00.000001'::interval);

CREATE OR REPLACE FUNCTION lease_is_current(p_club uuid, p_connection uuid, p_account uuid, p_worker uuid, p_token bigint, p_now timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
    return exists (select from current_lease(p_club, p_connection, p_account, p_worker, p_token, p_now));
end
$function$;

CREATE OR REPLACE FUNCTION lock_account(p_account uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    perform pg_advisory_xact_lock(account_gate_key(p_account));
end
$function$;

CREATE OR REPLACE FUNCTION lock_events_of(p_clubs uuid[], p_operations uuid[])
 RETURNS uuid[]
 LANGUAGE plpgsql
AS $function$
declare
    v_seen record;
    v_locked uuid[] := '{}';
begin
    for v_seen in
        select distinct o.club_id, t.event_id
          from unnest(p_clubs, p_operations) as s (club, operation)
          join operations o on o.club_id = s.club and o.id = s.operation
         cross join lateral (values (o.event_id), (o.dependency_event_id)) as t (event_id)
         where t.event_id is not null
         order by t.event_id
    loop
        perform from events e where e.club_id = v_seen.club_id and e.id = v_seen.event_id for share;
        v_locked := v_locked || v_seen.event_id;
    end loop;
    return v_locked;
end
$function$;

CREATE OR REPLACE FUNCTION lock_fleet()
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    perform pg_advisory_xact_lock(fleet_gate_key());
end
$function$;

CREATE OR REPLACE FUNCTION lock_fleet_and_account_shared(p_account uuid)
 RETURNS boolean
 LANGUAGE sql
AS $function$
    select pg_advisory_xact_lock_shared(fleet_gate_key()) is not null
       and pg_advisory_xact_lock_shared(account_gate_key(p_account)) is not null
$function$;

CREATE OR REPLACE FUNCTION lock_for_reading(p_account uuid, p_club uuid, p_connection uuid)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION lock_linked(p_club uuid, p_connection uuid, p_operation uuid)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
    v_is_locked boolean;
begin
    perform
      from club_gates c
      join connection_gates n on n.club_id = c.club_id and n.connection_id = p_connection
     where c.club_id = p_club
       for share of c
       for share of n;
    v_is_locked := found;
    perform lock_events_of(array[p_club], array[p_operation]);
    return lock_with_creation(p_club, p_operation) and v_is_locked;
end
$function$;

CREATE OR REPLACE FUNCTION lock_read(p_account uuid, p_club uuid, p_connection uuid, p_read uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    perform lock_for_reading(p_account, p_club, p_connection);
    perform from provider_reads r where r.club_id = p_club and r.id = p_read for no key update;
end
$function$;

CREATE OR REPLACE FUNCTION lock_telemetry(p_club uuid, p_connection uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    perform from connection_gates g where g.club_id = p_club and g.connection_id = p_connection for share;
    perform from leases l where l.club_id = p_club and l.connection_id = p_connection for no key update;
end
$function$;

CREATE OR REPLACE FUNCTION lock_with_creation(p_club uuid, p_operation uuid)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
    v_creation constant uuid := (
        select o.depends_on from operations o where o.club_id = p_club and o.id = p_operation);
    v_is_locked boolean;
begin
    perform from operations o where o.club_id = p_club and o.id = v_creation and o.id < p_operation for share;
    perform from operations o where o.club_id = p_club and o.id = p_operation for no key update;
    v_is_locked := found;
    perform from operations o where o.club_id = p_club and o.id = v_creation and o.id > p_operation for share;
    return v_is_locked;
end
$function$;

CREATE OR REPLACE FUNCTION miss_late(p_clubs uuid[], p_operations uuid[])
 RETURNS TABLE(club_id uuid, operation_id uuid, state text, due_at timestamp with time zone, ready_at timestamp with time zone, account_id uuid)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_events constant uuid[] := lock_events_of(p_clubs, p_operations);
    v_seen record;
    v_row operations;
    v_code text;
    v_now timestamptz;
begin
    for v_seen in
        select s.club, s.operation from unnest(p_clubs, p_operations) as s (club, operation) order by s.operation
    loop
        -- What is not unsent any more is not even locked: a hello locks returned rows before submitted ones, and the
        -- two could otherwise wait for each other.
        select * into v_row from operations o
         where o.club_id = v_seen.club and o.id = v_seen.operation and o.state in ('pending', 'claimed')
           for no key update;
        -- What an edit tied to another event meanwhile is found again if it is late.
        continue when v_row.id is null or not is_among(v_events, v_row.event_id, v_row.dependency_event_id);

        club_id := v_row.club_id;
        operation_id := v_row.id;
        state := null;
        due_at := v_row.due_at;
        v_now := lastcall_now();
        v_code := null;
        if v_row.event_id is not null then
            select v.code, v.due_at into v_code, due_at from event_verdict(v_row.club_id, v_row.id) as v;
        end if;
        if v_code = 'event_rescheduled' then
            state := 'pending';
            ready_at := move_operation(v_row.club_id, v_row.id, due_at);
            account_id := (
                select c.account_id from connections c
                 where c.club_id = v_row.club_id and c.id = v_row.connection_id);
            v_code := null;
        end if;
        if v_code is null and is_late(due_at, v_now) then
            v_code := 'late_window_elapsed';
        end if;
        if v_code is not null then
            state := refused_state(v_code);
            perform settle_unsent(v_row.club_id, v_row.id, state, v_code, v_now);
        end if;
        if state is not null then
            return next;
        end if;
    end loop;
end
$function$;

CREATE OR REPLACE FUNCTION move_operation(p_club uuid, p_operation uuid, p_due_at timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
AS $function$
declare
    v_ready_at timestamptz;
begin
    update operations o
       set state = 'pending',
           due_at = p_due_at,
           ready_at = case when o.ready_at is not null then greatest(p_due_at, o.retry_at) end,
           claim_nonce = null, claim_account_id = null, claim_worker_id = null, claim_journal_id = null,
           claim_fencing_token = null, claim_generation = null, claim_expires_at = null
     where o.club_id = p_club
       and o.id = p_operation
       and o.state in ('pending', 'claimed')
       and o.submitted_at is null
    returning o.ready_at into v_ready_at;
    return v_ready_at;
end
$function$;

CREATE OR REPLACE FUNCTION next_look(p_connection connections, p_claimed_at timestamp with time zone, p_phase double precision, p_now timestamp with time zone)
 RETURNS TABLE(at timestamp with time zone, is_spread boolean)
 LANGUAGE plpgsql
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION next_writes_at(p_account uuid, p_day date, p_now timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select least(p_now + interval '1 day',
                 (p_day + 1)::timestamp at time zone 'UTC' + interval '1 ms' * ((h % 600000 + 600000) % 600000)::integer)
      from hashtextextended(p_account::text, p_day - date '2000-01-01') as h
$function$;

CREATE OR REPLACE FUNCTION note_dependents(p_club uuid, p_creations uuid[], p_now timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
AS $function$
begin
    insert into operation_fanouts (club_id, id, subject_kind, subject_id, created_at)
    select o.club_id, o.id, 'creation', o.id, p_now
      from operations o
     where o.club_id = p_club and o.id = any (p_creations) and o.kind = 'create_instance'
       and exists (
           select from operations d
            where d.club_id = o.club_id and d.depends_on = o.id and d.completed_at is null)
        on conflict (club_id, subject_kind, subject_id) do update set after = null;
    return first_fanout(p_club);
end
$function$;

CREATE OR REPLACE FUNCTION note_earlier_epochs(p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_code text)
 RETURNS timestamp with time zone
 LANGUAGE sql
AS $function$
    with noted as (
        insert into ended_epochs (club_id, connection_id, epoch, code, ended_at)
        select p_club, u.connection_id, u.epoch, p_code, lastcall_now()
          from (select o.connection_id, o.epoch from operations o where o.club_id = p_club and o.state = 'pending'
                union
                select o.connection_id, o.epoch from operations o where o.club_id = p_club and o.state = 'claimed') as u
         where (u.connection_id, u.epoch) <> (p_connection, p_epoch)
            on conflict (club_id, connection_id, epoch) do update set ended_at = ended_epochs.ended_at
        returning ended_at)
    select min(n.ended_at) from noted n
$function$;

CREATE OR REPLACE FUNCTION note_ended_epoch(p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_code text)
 RETURNS timestamp with time zone
 LANGUAGE sql
AS $function$
    insert into ended_epochs (club_id, connection_id, epoch, code, ended_at)
    select p_club, p_connection, p_epoch, p_code, lastcall_now()
     where cardinality(epoch_page(p_club, p_connection, p_epoch, 1)) > 0
        on conflict (club_id, connection_id, epoch) do update set ended_at = ended_epochs.ended_at
    returning ended_at
$function$;

CREATE OR REPLACE FUNCTION note_event_fanout(p_club uuid, p_event uuid)
 RETURNS timestamp with time zone
 LANGUAGE sql
AS $function$
    insert into operation_fanouts (club_id, id, subject_kind, subject_id, created_at)
    select p_club, p_event, 'event', p_event, lastcall_now()
     where exists (
           select from operations o where o.club_id = p_club and o.event_id = p_event and o.completed_at is null)
        on conflict (club_id, subject_kind, subject_id) do update set after = null
    returning created_at
$function$;

CREATE OR REPLACE FUNCTION note_outcomes(p_club uuid, p_operations uuid[], p_now timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    insert into operation_notices (club_id, id, request_id, revision, outcome, actor_id, mail_at, created_at)
    select o.club_id, o.id, o.request_id, o.revision, o.state, o.actor_id, p_now + notice_mail_delay(), p_now
      from operations o
     where o.club_id = p_club and o.id = any (p_operations) and o.state in ('rejected', 'indeterminate', 'missed')
        on conflict (club_id, id) do nothing;
end
$function$;

CREATE OR REPLACE FUNCTION note_retention_digest(p_club uuid, p_archived_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    insert into retention_tellings (club_id, kind, day, tell_at)
    values (
        p_club,
        'digest',
        (p_archived_at at time zone 'UTC')::date,
        ((p_archived_at at time zone 'UTC')::date + 1)::timestamp at time zone 'UTC'
    )
    on conflict do nothing;
end
$function$;

CREATE OR REPLACE FUNCTION note_retention_reminders(p_club uuid, p_dues timestamp with time zone[])
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
AS $function$
declare
    v_first timestamptz;
begin
    with told as (
        insert into retention_tellings (club_id, kind, day, tell_at)
        select
            c.id,
            'reminder',
            d.day,
            greatest(
                (d.day - case when c.retention_days < 14 then 1 else 7 end)::timestamp at time zone 'UTC', n.now
            )
        from (select lastcall_now() as now) n
        cross join lateral (
            select distinct (due at time zone 'UTC')::date as day
            from unnest(p_dues) as dues (due)
            where due > n.now
        ) d
        join clubs c on c.id = p_club
        on conflict do nothing
        returning tell_at
    )
    select min(t.tell_at) into v_first from told t;
    return v_first;
end
$function$;

CREATE OR REPLACE FUNCTION note_stale_coverage(p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_last timestamp with time zone, p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    if p_at > p_last + telemetry_fresh() and exists (
        select from telemetry_coverage w
         where w.club_id = p_club and w.connection_id = p_connection and w.epoch = p_epoch
           and w.ended_at is null and w.state = 'observed'
    ) then
        perform open_coverage(p_club, p_connection, p_epoch, 'stale', p_last + telemetry_fresh());
    end if;
end
$function$;

CREATE OR REPLACE FUNCTION notice_mail_delay()
 RETURNS interval
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN '00:01:00'::interval;

CREATE OR REPLACE FUNCTION notice_recipient(p_club uuid, p_actor uuid, p_permission text)
 RETURNS uuid
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
    return (
        select case
                   when s.holds then p_actor
                   when not exists (select from club_standing(p_club, p_actor)) then c.owner_id
               end
          from clubs c
         cross join lateral person_standing(c.id, p_actor, p_permission, null) as s
         where c.id = p_club and c.state <> 'deleting');
end
$function$;

CREATE OR REPLACE FUNCTION open_coverage(p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_state text, p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
    v_at timestamptz;
begin
    update telemetry_coverage
       set ended_at = greatest(started_at, p_at)
     where club_id = p_club and connection_id = p_connection and ended_at is null
    returning ended_at into v_at;
    insert into telemetry_coverage (club_id, id, connection_id, epoch, state, started_at)
    values (p_club, gen_random_uuid(), p_connection, p_epoch, p_state, coalesce(v_at, p_at));
end
$function$;

CREATE OR REPLACE FUNCTION operation_ended(p_club uuid, p_operations uuid[], p_now timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    perform note_dependents(p_club, p_operations, p_now);
    perform note_outcomes(p_club, p_operations, p_now);
end
$function$;

CREATE OR REPLACE FUNCTION operation_grace()
 RETURNS interval
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN '00:15:00'::interval;

CREATE OR REPLACE FUNCTION operation_is_whole(p_row record)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
    begin
        return strpos(
                ' pending0000 pending0001 claimed7000 submitted7100 succeeded7110 rejected7111 rejected0011 '
                'indeterminate7111 cancelled0011 missed0011 ',
                concat(
                    ' ', p_row.state,
                    num_nonnulls(
                        p_row.claim_nonce, p_row.claim_account_id, p_row.claim_worker_id, p_row.claim_journal_id,
                        p_row.claim_fencing_token, p_row.claim_generation, p_row.claim_expires_at),
                    num_nonnulls(p_row.submitted_at), num_nonnulls(p_row.completed_at), num_nonnulls(p_row.code),
                    ' ')) > 0
            and p_row.lane between 1 and 3
            and (p_row.result is null or octet_length(p_row.result::text) <= 8192)
            and case
                when p_row.schedule_kind in ('immediate', 'fixed')
                     and p_row.ready_at >= greatest(p_row.due_at, p_row.retry_at)
                     and num_nonnulls(
                         p_row.event_id, p_row.event_cancel_generation, p_row.event_tba_generation, p_row.offset_ms,
                         p_row.depends_on, p_row.dependency_revision, p_row.dependency_event_id) = 0
                    then true
                else operation_links_are_whole(p_row)
            end;
    end
    $function$;

CREATE OR REPLACE FUNCTION operation_links_are_whole(p_row record)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
    begin
        return coalesce(p_row.ready_at >= greatest(p_row.due_at, p_row.retry_at), p_row.depends_on is not null)
            and (p_row.schedule_kind is null or p_row.schedule_kind in ('immediate', 'fixed', 'event_relative'))
            and num_nonnulls(p_row.event_id, p_row.event_cancel_generation, p_row.event_tba_generation) in (0, 3)
            and (p_row.offset_ms is not null) = (p_row.schedule_kind is not distinct from 'event_relative')
            and (p_row.offset_ms is null or p_row.event_id is not null)
            and (p_row.depends_on is not null
                 or num_nonnulls(p_row.dependency_revision, p_row.dependency_event_id) = 0);
    end
    $function$;

CREATE OR REPLACE FUNCTION operation_verdict(p_club uuid, p_operation uuid)
 RETURNS TABLE(code text, due_at timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
    select case
               when v.code <> 'event_rescheduled' then v.code
               when v.code is not null and d.code = 'awaiting_instance_creation' then v.code
               else coalesce(d.code, v.code)
           end,
           v.due_at
      from operations o
     cross join lateral event_verdict(o.club_id, o.id) as v
     cross join lateral (
           select case when is_dependent(o.kind) then dependency_verdict(o.club_id, o.id, v.due_at) end as code) as d
     where o.club_id = p_club and o.id = p_operation
$function$;

CREATE OR REPLACE FUNCTION own_member_evidence(p_club uuid, p_connection uuid, p_epoch timestamp with time zone)
 RETURNS TABLE(account_id uuid, observed_at timestamp with time zone, body jsonb)
 LANGUAGE sql
 STABLE
AS $function$
    select e.account_id, e.observed_at, e.body
      from connections c
      join accounts a on a.id = c.account_id
     cross join lateral evidence_read_by(c.club_id, c.id, p_epoch, a.id, a.vrchat_user_id, c.group_id) as e
     where c.club_id = p_club and c.id = p_connection
$function$;

CREATE OR REPLACE FUNCTION page_refusal(p_account uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_read uuid, p_permission text, p_feature text, p_grants text[], p_observed_at timestamp with time zone, p_now timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
    select coalesce(
               read_refusal(p_club, p_connection, p_read, p_permission, p_feature),
               case
                   when not is_read_alive(p_observed_at, p_now) then 'answer_too_old'
                   when e.body is null then 'provider_authority'
                   when e.body ->> 'memberStatus' is distinct from 'member' then 'membership'
                   when not holds_grants(e.body, p_grants) then 'provider_permissions'
               end)
      from connections c
      join accounts a on a.id = p_account
      left join lateral (
           select v.body
             from evidence_read_by(p_club, p_connection, p_epoch, p_account, a.vrchat_user_id, c.group_id) as v
            where v.observed_at between p_now - evidence_life() and p_now) as e on true
     where c.club_id = p_club and c.id = p_connection
$function$;

CREATE OR REPLACE FUNCTION pass_obstacle(p_club uuid, p_connection uuid, p_account uuid, p_epoch timestamp with time zone, p_now timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
    return coalesce(
        (select s.obstacle
           from standing_within(p_club, p_connection, p_account, p_epoch, passable_states(), p_now) as s),
        'epoch');
end
$function$;

CREATE OR REPLACE FUNCTION passable_states()
 RETURNS text[]
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select usable_states() || array['connecting', 'awaiting_approval', 'awaiting_invite', 'disconnecting']
$function$;

CREATE OR REPLACE FUNCTION person_holds(p_club uuid, p_person uuid, p_permission text)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE
AS $function$
begin
    return exists (select from person_standing(p_club, p_person, p_permission, null) as s where s.holds);
end
$function$;

CREATE OR REPLACE FUNCTION person_standing(p_club uuid, p_person uuid, p_permission text, p_provider_role text)
 RETURNS TABLE(club_state text, holds boolean, may_assign boolean)
 LANGUAGE sql
 STABLE
AS $function$
    select c.state,
           p.id is not null and (c.owner_id = p.id or coalesce(r.holds, false)),
           p.id is not null and (c.owner_id = p.id or coalesce(r.may_assign, false))
      from clubs c
      left join people p on p.id = p_person and p.blocked_at is null and c.state <> 'deleting'
      left join lateral (
           select bool_or(p_permission = any (r.permissions)) as holds,
                  bool_or('assign_vrchat_roles' = any (r.permissions)
                          and lower(p_provider_role) = any (r.permitted_provider_role_ids)) as may_assign
             from staff_assignments a
             join staff_roles r on r.club_id = a.club_id and r.id = a.role_id
            where a.club_id = p_club
              and a.person_id = p_person
              and r.state = 'active') as r on true
     where c.id = p_club
$function$;

CREATE OR REPLACE FUNCTION preflight_refusal(p_row operations, p_account uuid, p_generation integer, p_worker uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_nonce uuid, p_now timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
    v_refusal constant text := (
        select c.refusal
          from claim_refusal(
               is_held_by(p_row, p_account, p_generation, p_worker, p_connection, p_epoch, p_token, p_nonce, p_now),
               p_account, p_generation, p_worker, p_row.club_id, p_connection, p_token, p_now) as c);
    v_obstacle text;
begin
    if v_refusal is not null then
        return v_refusal;
    end if;
    v_obstacle := connection_obstacle(p_row.club_id, p_connection, p_account, p_epoch, p_now);
    if v_obstacle = 'none' then
        return null;
    end if;
    return case
        when v_obstacle in ('fleet_switch', 'account_switch', 'account_state') then 'collector_disabled'
        else 'claim_unavailable'
    end;
end
$function$;

CREATE OR REPLACE FUNCTION raise_connection_gate(p_club uuid, p_connection uuid)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
begin
    update connection_gates
       set generation = generation + 1
     where club_id = p_club and connection_id = p_connection;
    return found;
end
$function$;

CREATE OR REPLACE FUNCTION read_claim_refusal(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_read uuid, p_nonce uuid, p_now timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
    select case
               when k.generation is null then 'stale_key'
               when s.obstacle in ('fleet_switch', 'account_switch', 'account_state') then 'collector_disabled'
               when r.id is null then 'read_unavailable'
               when l.expires_at is null then 'stale_lease'
               when s.obstacle is distinct from 'none' or club_sends(c.state) is not true then 'read_unavailable'
           end
      from (values (true)) as one
      left join current_key(p_account, p_generation, p_now) as k on true
      left join current_lease(p_club, p_connection, p_account, p_worker, p_token, p_now) as l on true
      left join connection_standing(p_club, p_connection, p_account, p_epoch, p_now) as s on true
      left join clubs c on c.id = p_club
      left join provider_reads r
             on r.club_id = p_club and r.id = p_read and r.state = 'running' and r.connection_id = p_connection
            and r.epoch = p_epoch and r.account_id = p_account and r.credential_generation = p_generation
            and r.claim_worker_id = p_worker and r.claim_fencing_token = p_token and r.claim_nonce = p_nonce
            and is_read_alive(r.claimed_at, p_now)
$function$;

CREATE OR REPLACE FUNCTION read_is_wanted(p_club uuid, p_read uuid, p_permission text)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
    select exists (
        select
          from provider_read_askers a
         cross join lateral person_standing(p_club, a.person_id, p_permission, null) as s
         where a.club_id = p_club and a.read_id = p_read and s.holds)
$function$;

CREATE OR REPLACE FUNCTION read_kept()
 RETURNS interval
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN '00:15:00'::interval;

CREATE OR REPLACE FUNCTION read_life()
 RETURNS interval
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN '00:01:00'::interval;

CREATE OR REPLACE FUNCTION read_refusal(p_club uuid, p_connection uuid, p_read uuid, p_permission text, p_feature text)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
    select case
               when p_permission is null then 'unsupported_operation'
               when not read_is_wanted(p_club, p_read, p_permission) then 'access_expired'
               when not p_feature = any (c.features) then 'feature_disabled'
           end
      from connections c
     where c.club_id = p_club and c.id = p_connection
$function$;

CREATE OR REPLACE FUNCTION read_standing(p_row provider_reads, p_now timestamp with time zone)
 RETURNS TABLE(state text, code text, remaining interval)
 LANGUAGE sql
 STABLE
AS $function$
    select case when w.is_over then 'failed' else p_row.state end,
           case when w.is_over then 'not_answered' else p_row.code end,
           case
               when p_row.state = 'succeeded' and is_read_alive(p_row.observed_at, p_now)
                   then p_row.observed_at + read_life() - p_now
               else interval '0'
           end
      from (select p_row.state = 'pending' and not is_read_alive(p_row.requested_at, p_now)
                   or p_row.state = 'running' and not is_read_alive(p_row.claimed_at, p_now) as is_over) as w
$function$;

CREATE OR REPLACE FUNCTION record_audit_page(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_scan uuid, p_offset integer, p_raw_count integer, p_is_last boolean, p_entries text[], p_times timestamp with time zone[], p_events text[])
 RETURNS TABLE(outcome text)
 LANGUAGE plpgsql
AS $function$
declare
    v_now timestamptz;
    v_scan audit_scans;
begin
    perform lock_telemetry(p_club, p_connection);

    v_now := lastcall_now();
    outcome := telemetry_obstacle(
        p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, v_now);
    if outcome = 'none' then
        select * into v_scan from audit_scans s
         where s.club_id = p_club and s.id = p_scan and s.connection_id = p_connection and s.epoch = p_epoch;
        outcome := case
            when p_offset < v_scan.next_offset or v_scan.finished_at is not null then 'known'
            when v_scan.next_offset = p_offset then 'recorded'
            else 'elsewhere'
        end;
    end if;
    if outcome = 'recorded' then
        insert into audit_entries (club_id, connection_id, entry_id, at, event)
        select p_club, p_connection, e.entry_id, e.at, e.event
          from unnest(p_entries, p_times, p_events) as e (entry_id, at, event)
         where e.at between v_scan.starts_at and v_scan.ends_at
            on conflict do nothing;
        update audit_scans s
           set next_offset = s.next_offset + p_raw_count,
               finished_at = case when p_is_last or p_raw_count = 0 then v_now end
         where s.club_id = p_club and s.id = p_scan;
    end if;
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION record_sample(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_id uuid, p_poll text, p_age interval, p_member_count integer, p_groups text[], p_locations text[], p_worlds text[], p_populations integer[])
 RETURNS TABLE(outcome text)
 LANGUAGE plpgsql
AS $function$
declare
    v_observed timestamptz := lastcall_now() - p_age; -- before any lock is waited for
    v_last timestamptz;
begin
    perform lock_telemetry(p_club, p_connection);

    outcome := telemetry_obstacle(
        p_account, p_generation, p_worker, p_club, p_connection, p_epoch, p_token, lastcall_now());
    if outcome = 'none' and exists (
        select from connections c
         where c.club_id = p_club and c.id = p_connection and not p_groups <@ array[lower(c.group_id)]
    ) then
        outcome := 'other_group';
    end if;
    if outcome <> 'none' then
        return next;
        return;
    end if;

    v_last := telemetry_last_observed(p_club, p_connection, p_epoch);
    insert into telemetry_samples
           (club_id, id, connection_id, epoch, poll_id, observed_at, member_count, population, instance_count)
    values (p_club, p_id, p_connection, p_epoch, p_poll, v_observed, p_member_count,
            coalesce((select sum(p) from unnest(p_populations) as p), 0), cardinality(p_locations))
        on conflict (club_id, connection_id, poll_id) do nothing;
    if not found then
        outcome := 'known';
        return next;
        return;
    end if;
    insert into telemetry_instances (club_id, sample_id, location, world_id, population)
    select p_club, p_id, i.location, i.world_id, i.population
      from unnest(p_locations, p_worlds, p_populations) as i (location, world_id, population);
    -- What the connection's next look goes by (connections/), written only when it changed.
    update connections c
       set has_visitors = exists (select from unnest(p_populations) as p where p > 0), telemetry_failures = 0
     where c.club_id = p_club and c.id = p_connection
       and (c.telemetry_failures > 0
            or c.has_visitors <> exists (select from unnest(p_populations) as p where p > 0));
    perform coverage_observed(p_club, p_connection, p_epoch, v_last, v_observed);
    outcome := 'recorded';
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION recover_submission(p_club uuid, p_operation uuid, p_nonce uuid, p_expires_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
    v_row operations;
    v_now timestamptz;
begin
    select * into v_row from operations o where o.club_id = p_club and o.id = p_operation for no key update;

    v_now := lastcall_now();
    if v_row.state = 'submitted' and v_row.claim_nonce = p_nonce
       and v_row.claim_expires_at = p_expires_at and v_row.claim_expires_at <= v_now
    then
        update operations o
           set state = 'indeterminate', code = 'submission_outcome_unknown', completed_at = v_now
         where o.club_id = p_club and o.id = p_operation and o.state = 'submitted';
        perform operation_ended(p_club, array[p_operation], v_now);
        return true;
    end if;
    return false;
end
$function$;

CREATE OR REPLACE FUNCTION refresh_approval(p_club uuid, p_ids uuid[], OUT lowest timestamp with time zone, OUT later boolean, OUT remind timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
begin
    perform
    from approvals a
    where a.club_id = p_club and a.id = any (p_ids)
    order by a.id
    for no key update;

    with before as (
        select a.id, a.archive_due_at
        from approvals a
        where a.club_id = p_club and a.id = any (p_ids)
    ), changed as (
        update approvals a
        set archive_due_at = d.due_at
        from approval_due(p_club, p_ids) d
        join before b on b.id = d.id
        where a.club_id = p_club
          and a.id = d.id
          and a.archive_due_at is distinct from d.due_at
        returning d.due_at, b.archive_due_at as due_before
    )
    select
        ceil_to_millisecond(min(c.due_at)),
        coalesce(bool_or(c.due_before is not null and (c.due_at is null or c.due_at > c.due_before)), false),
        note_retention_reminders(p_club, array_agg(c.due_at))
    into lowest, later, remind
    from changed c;
end
$function$;

CREATE OR REPLACE FUNCTION refresh_join_request(p_club uuid, p_ids uuid[], OUT lowest timestamp with time zone, OUT later boolean, OUT remind timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
begin
    perform
    from join_requests j
    where j.club_id = p_club and j.id = any (p_ids)
    order by j.id
    for no key update;

    with before as (
        select j.id, j.archive_due_at
        from join_requests j
        where j.club_id = p_club and j.id = any (p_ids)
    ), changed as (
        update join_requests j
        set archive_due_at = d.due_at
        from join_request_due(p_club, p_ids) d
        join before b on b.id = d.id
        where j.club_id = p_club
          and j.id = d.id
          and j.archive_due_at is distinct from d.due_at
        returning d.due_at, b.archive_due_at as due_before
    )
    select
        ceil_to_millisecond(min(c.due_at)),
        coalesce(bool_or(c.due_before is not null and (c.due_at is null or c.due_at > c.due_before)), false),
        note_retention_reminders(p_club, array_agg(c.due_at))
    into lowest, later, remind
    from changed c;
end
$function$;

CREATE OR REPLACE FUNCTION refused_state(p_code text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (p_code = ANY (ARRAY['connection_paused'::text, 'event_rescheduled'::text, 'awaiting_instance_creation'::text])) THEN 'pending'::text WHEN (p_code = 'late_window_elapsed'::text) THEN 'missed'::text WHEN (p_code = ANY (ARRAY['event_deleted'::text, 'event_cancelled'::text, 'event_time_tba'::text])) THEN 'cancelled'::text ELSE 'rejected'::text END;

CREATE OR REPLACE FUNCTION reject_operation(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_operation uuid, p_nonce uuid, p_code text)
 RETURNS TABLE(outcome text, judged_at timestamp with time zone, state text, code text, fanout_at timestamp with time zone)
 LANGUAGE plpgsql
AS $function$
declare
    v_row operations;
begin
    perform lock_fleet_and_account_shared(p_account);
    perform from connection_gates g where g.club_id = p_club and g.connection_id = p_connection for share;
    select * into v_row from operations o where o.club_id = p_club and o.id = p_operation for no key update;

    judged_at := lastcall_now();
    outcome := preflight_refusal(
        v_row, p_account, p_generation, p_worker, p_connection, p_epoch, p_token, p_nonce, judged_at);
    if outcome is null then
        outcome := 'recorded';
        state := 'rejected';
        code := p_code;
        perform settle_unsent(p_club, p_operation, state, code, judged_at);
        fanout_at := first_fanout(p_club);
    end if;
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION release_lease(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_token bigint, p_phase double precision)
 RETURNS TABLE(outcome text, is_spread boolean)
 LANGUAGE plpgsql
AS $function$
declare
    v_now timestamptz;
    v_next record;
begin
    perform from connection_gates g where g.club_id = p_club and g.connection_id = p_connection for no key update;

    v_now := lastcall_now();
    outcome := case
        when not key_is_current(p_account, p_generation, v_now) then 'stale_key'
        when not lease_is_current(p_club, p_connection, p_account, p_worker, p_token, v_now) then 'stale_lease'
        else 'released'
    end;
    is_spread := false;
    if outcome = 'released' then
        perform raise_connection_gate(p_club, p_connection);
        select n.* into v_next
          from connections c
          join leases l on l.club_id = c.club_id and l.connection_id = c.id
         cross join lateral next_look(c, l.claimed_at, p_phase, v_now) as n
         where c.club_id = p_club and c.id = p_connection;
        update connections c
           set next_look_at = v_next.at
         where c.club_id = p_club and c.id = p_connection and c.next_look_at is distinct from v_next.at;
        update leases l set released_at = v_now where l.club_id = p_club and l.connection_id = p_connection;
        is_spread := v_next.is_spread;
    end if;
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION renew_lease(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_life interval)
 RETURNS TABLE(outcome text, judged_at timestamp with time zone, expires_at timestamp with time zone, account_limit integer, least_limit integer)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_obstacle text;
begin
    perform from leases l where l.club_id = p_club and l.connection_id = p_connection for no key update;

    v_now := lastcall_now();
    v_obstacle := pass_obstacle(p_club, p_connection, p_account, p_epoch, v_now);
    outcome := case
        when not key_is_current(p_account, p_generation, v_now) then 'stale_key'
        when not lease_is_current(p_club, p_connection, p_account, p_worker, p_token, v_now) then 'stale_lease'
        when v_obstacle <> 'none' then v_obstacle
        else 'renewed'
    end;
    judged_at := v_now;
    if outcome = 'renewed' then
        update leases l set expires_at = v_now + p_life where l.club_id = p_club and l.connection_id = p_connection;
        expires_at := v_now + p_life;
        select a.requests_per_minute, least(f.requests_per_minute, a.requests_per_minute, c.requests_per_minute)
          into account_limit, least_limit
          from accounts a, fleet_settings f, connections c
         where a.id = p_account and f.id = 1 and c.club_id = p_club and c.id = p_connection;
    end if;
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION reserve_allowance(p_account uuid, p_club uuid, p_connection uuid, p_amount integer, p_is_write boolean)
 RETURNS TABLE(outcome text, least_limit integer, judged_at timestamp with time zone, window_ends_at timestamp with time zone, retry_at timestamp with time zone)
 LANGUAGE plpgsql
AS $function$
declare
    v_scopes text[] := array['fleet', 'account:' || p_account];
    v_limits integer[];
    v_scope text;
    v_use allowances;
    v_day date;
begin
    if p_connection is not null then
        v_scopes := v_scopes || ('connection:' || p_connection);
    end if;
    foreach v_scope in array v_scopes loop
        insert into allowances (scope, window_start, granted) values (v_scope, '-infinity', 0)
            on conflict (scope) do nothing;
        perform from allowances a where a.scope = v_scope for no key update;
    end loop;

    judged_at := lastcall_now();
    outcome := case
        when p_connection is null then account_obstacle(p_account, judged_at)
        else pass_obstacle(p_club, p_connection, p_account, null, judged_at)
    end;
    if outcome <> 'none' then
        return next;
        return;
    end if;

    v_limits := array[
        (select f.requests_per_minute from fleet_settings f where f.id = 1),
        (select a.requests_per_minute from accounts a where a.id = p_account),
        (select c.requests_per_minute from connections c where c.club_id = p_club and c.id = p_connection)];
    least_limit := least(v_limits[1], v_limits[2], v_limits[3]);
    if p_amount > least_limit then
        outcome := 'too_low';
        return next;
        return;
    end if;

    v_day := (judged_at at time zone 'UTC')::date;
    if p_is_write and writes_reserved(p_account, v_day) >= (
        select writes_allowed(a.joined_on, a.writes_per_day, v_day) from accounts a where a.id = p_account
    ) then
        outcome := 'write_cap';
        retry_at := next_writes_at(p_account, v_day, judged_at);
        return next;
        return;
    end if;

    retry_at := judged_at;
    for i in 1 .. cardinality(v_scopes) loop
        select * into v_use from allowances a where a.scope = v_scopes[i];
        retry_at := greatest(retry_at, allowance_free_at(v_use, v_limits[i], p_amount, judged_at));
    end loop;
    retry_at := allowance_next_moment(p_account, retry_at);
    if retry_at > judged_at then
        outcome := 'denied';
        return next;
        return;
    end if;

    foreach v_scope in array v_scopes loop
        perform allowance_charge(v_scope, p_amount, judged_at);
    end loop;
    if p_is_write then
        update allowances a
           set writes_day = v_day, writes = case when a.writes_day = v_day then a.writes else 0 end + 1
         where a.scope = 'account:' || p_account;
    end if;
    outcome := 'granted';
    retry_at := null;
    window_ends_at := date_trunc('minute', judged_at, 'UTC') + interval '1 minute';
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION return_claims(p_account uuid, p_worker uuid)
 RETURNS TABLE(club_id uuid, operation_id uuid, due_at timestamp with time zone, ready_at timestamp with time zone)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_seen record;
    v_row operations;
begin
    for v_seen in
        select o.club_id, o.id, o.claim_nonce
          from operations o
         where o.state = 'claimed' and o.claim_account_id = p_account and o.claim_worker_id = p_worker
         order by o.id
    loop
        select * into v_row from operations o
         where o.club_id = v_seen.club_id and o.id = v_seen.id for no key update;
        if v_row.state = 'claimed' and v_row.claim_nonce = v_seen.claim_nonce
           and settle_unsent(v_seen.club_id, v_seen.id, 'pending', null, lastcall_now())
        then
            club_id := v_row.club_id;
            operation_id := v_row.id;
            due_at := v_row.due_at;
            ready_at := v_row.ready_at;
            return next;
        end if;
    end loop;
end
$function$;

CREATE OR REPLACE FUNCTION settle_approval(p_club uuid, p_id uuid, p_log_id uuid, OUT outcome text, OUT agent uuid)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
    v_now timestamptz;
    v_activity timestamptz;
    v_due timestamptz;
    v_archive_version bigint;
begin
    -- A writer that holds the row is waited for here and seen below (RET-10, RET-11).
    perform
    from approvals a
    where a.club_id = p_club and a.id = p_id
    for no key update;
    if not found then
        outcome := 'gone';
        return;
    end if;
    v_now := lastcall_now();

    select d.activity_at, d.due_at into v_activity, v_due
    from approval_due(p_club, array[p_id]) d;
    if v_due is null or v_due > v_now then
        update approvals a
        set archive_due_at = v_due
        where a.club_id = p_club and a.id = p_id and a.archive_due_at is distinct from v_due;
        outcome := 'not_due';
        return;
    end if;

    v_archive_version := archive_idle(p_club, p_id, 'approval', v_activity, v_now, p_log_id);
    update approvals a
    set archive_due_at = null, is_archived = true
    where a.club_id = p_club and a.id = p_id
    returning a.requested_by_agent_id into agent;
    if agent is not null then
        -- The archive's own number makes the message this archive's. The log entry's id serves a second time.
        perform deliver_to_agent(
            p_club, p_log_id, agent, 'approval.archived', p_id, p_id || ':' || v_archive_version,
            jsonb_build_object('archiveVersion', v_archive_version)
        );
    end if;
    outcome := 'archived';
end
$function$;

CREATE OR REPLACE FUNCTION settle_join_request(p_club uuid, p_id uuid, p_log_id uuid, OUT outcome text, OUT agent uuid)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
    v_now timestamptz;
    v_activity timestamptz;
    v_due timestamptz;
begin
    -- A writer that holds the row is waited for here and seen below (RET-10, RET-11).
    perform
    from join_requests j
    where j.club_id = p_club and j.id = p_id
    for no key update;
    if not found then
        outcome := 'gone';
        return;
    end if;
    v_now := lastcall_now();

    select d.activity_at, d.due_at into v_activity, v_due
    from join_request_due(p_club, array[p_id]) d;
    if v_due is null or v_due > v_now then
        update join_requests j
        set archive_due_at = v_due
        where j.club_id = p_club and j.id = p_id and j.archive_due_at is distinct from v_due;
        outcome := 'not_due';
        return;
    end if;

    perform archive_idle(p_club, p_id, 'join_request', v_activity, v_now, p_log_id);
    update join_requests j
    set archive_due_at = null, is_archived = true
    where j.club_id = p_club and j.id = p_id;
    outcome := 'archived';
end
$function$;

CREATE OR REPLACE FUNCTION settle_unattempted(p_account uuid, p_worker uuid, p_journal uuid, p_known uuid[])
 RETURNS TABLE(club_id uuid, operation_id uuid)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_seen record;
    v_row operations;
    v_now timestamptz;
begin
    for v_seen in
        select o.club_id, o.id
          from operations o
         where o.state = 'submitted' and o.claim_account_id = p_account and o.claim_worker_id = p_worker
           and o.claim_journal_id = p_journal and o.claim_nonce <> all (p_known)
         order by o.id
    loop
        select * into v_row from operations o
         where o.club_id = v_seen.club_id and o.id = v_seen.id for no key update;
        v_now := lastcall_now();
        if v_row.state = 'submitted' and v_row.claim_account_id = p_account and v_row.claim_worker_id = p_worker
           and v_row.claim_journal_id = p_journal and v_row.claim_nonce <> all (p_known)
           and v_row.claim_expires_at > v_now
        then
            update operations o
               set state = 'rejected', code = 'submission_not_attempted', completed_at = v_now
             where o.club_id = v_seen.club_id and o.id = v_seen.id and o.state = 'submitted';
            perform operation_ended(v_seen.club_id, array[v_seen.id], v_now);
            club_id := v_seen.club_id;
            operation_id := v_seen.id;
            return next;
        end if;
    end loop;
end
$function$;

CREATE OR REPLACE FUNCTION settle_unsent(p_club uuid, p_operation uuid, p_state text, p_code text, p_now timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
begin
    update operations o
       set state = p_state,
           code = p_code,
           completed_at = case when p_state = 'pending' then null else p_now end,
           claim_nonce = null, claim_account_id = null, claim_worker_id = null, claim_journal_id = null,
           claim_fencing_token = null, claim_generation = null, claim_expires_at = null
     where o.club_id = p_club
       and o.id = p_operation
       and o.state in ('pending', 'claimed')
       and o.submitted_at is null;
    if not found then
        return false;
    end if;
    if p_state <> 'pending' then
        perform operation_ended(p_club, array[p_operation], p_now);
    end if;
    return true;
end
$function$;

CREATE OR REPLACE FUNCTION settle_verdict(p_club uuid, p_operation uuid, p_code text, p_due_at timestamp with time zone, p_now timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
AS $function$
begin
    if p_code = 'event_rescheduled' then
        return move_operation(p_club, p_operation, p_due_at);
    end if;
    perform settle_unsent(p_club, p_operation, refused_state(p_code), p_code, p_now);
    if p_code = 'awaiting_instance_creation' then
        update operations o set ready_at = null where o.club_id = p_club and o.id = p_operation and o.state = 'pending';
    end if;
    return null;
end
$function$;

CREATE OR REPLACE FUNCTION spread_moment(p_now timestamp with time zone, p_least interval, p_most interval, p_phase double precision)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION standing_within(p_club uuid, p_connection uuid, p_account uuid, p_epoch timestamp with time zone, p_states text[], p_now timestamp with time zone)
 RETURNS TABLE(obstacle text, features text[], group_id text, vrchat_user_id text)
 LANGUAGE sql
 STABLE
AS $function$
    select case
               when p_epoch is not null and c.epoch <> p_epoch then 'epoch'
               when c.state in ('disconnecting', 'disconnected') and not c.state = any (p_states) then 'epoch'
               when c.account_id <> p_account then 'epoch'
               when s.account <> 'none' then s.account
               when not c.state = any (p_states) then 'connection_state'
               when c.frozen_at is not null then 'frozen'
               when c.kill_switch then 'connection_switch'
               else 'none'
           end,
           c.features, c.group_id, a.vrchat_user_id
      from connections c
      join accounts a on a.id = p_account
      join fleet_settings f on f.id = 1
     cross join lateral (
           select account_obstacle_of(f.kill_switch, a.kill_switch, a.state, a.cooldown_until, p_now) as account) as s
     where c.club_id = p_club and c.id = p_connection
$function$;

CREATE OR REPLACE FUNCTION store_own_member_evidence(p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_account uuid, p_worker uuid, p_body jsonb, p_observed_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION store_read_evidence(p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_account uuid, p_worker uuid, p_kind text, p_subject text, p_body jsonb, p_observed_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    insert into evidence as e
           (club_id, connection_id, kind, subject, epoch, body, observed_at, account_id, worker_id)
    values (p_club, p_connection, p_kind, p_subject, p_epoch, p_body, p_observed_at, p_account, p_worker)
        on conflict (club_id, connection_id, kind, subject) do update
       set epoch = excluded.epoch, body = excluded.body, observed_at = excluded.observed_at,
           account_id = excluded.account_id, worker_id = excluded.worker_id
     where e.observed_at < excluded.observed_at or e.epoch <> excluded.epoch or e.observed_at > lastcall_now();
end
$function$;

CREATE OR REPLACE FUNCTION submission_life()
 RETURNS interval
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN '00:02:00'::interval;

CREATE OR REPLACE FUNCTION take_lease(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_life interval)
 RETURNS TABLE(outcome text, judged_at timestamp with time zone, fencing_token bigint, expires_at timestamp with time zone, epoch timestamp with time zone, state text, group_id text, features text[], account_limit integer, least_limit integer)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_obstacle text;
    v_connection connections;
begin
    perform lock_fleet_and_account_shared(p_account);
    perform from connection_gates g where g.club_id = p_club and g.connection_id = p_connection for no key update;

    v_now := lastcall_now();
    select * into v_connection from connections c
     where c.club_id = p_club and c.id = p_connection and c.account_id = p_account;
    v_obstacle := pass_obstacle(p_club, p_connection, p_account, null, v_now);
    outcome := case
        when not key_is_current(p_account, p_generation, v_now) then 'stale_key'
        when v_connection.id is null or v_connection.state = 'disconnected' then 'unknown'
        when v_obstacle <> 'none' then v_obstacle
        when exists (
            select from leases l
             where l.club_id = p_club and l.connection_id = p_connection
               and l.worker_id <> p_worker and l.released_at is null and l.expires_at > v_now
        ) then 'held'
        else 'leased'
    end;
    judged_at := v_now;
    if outcome <> 'leased' then
        return next;
        return;
    end if;

    perform raise_connection_gate(p_club, p_connection);
    -- The look that was to come is this pass's; what is there later than its beginning was asked for meanwhile.
    update connections c
       set lease_generation = c.lease_generation + 1, last_attempt_at = v_now,
           next_look_at = case when c.next_look_at > v_now then v_now else c.next_look_at end
     where c.club_id = p_club and c.id = p_connection
    returning c.* into v_connection;
    insert into leases as l
           (club_id, connection_id, account_id, worker_id, fencing_token, claimed_at, expires_at)
    values (p_club, p_connection, p_account, p_worker, v_connection.lease_generation, v_now, v_now + p_life)
        on conflict (club_id, connection_id) do update
       set account_id = excluded.account_id, worker_id = excluded.worker_id, fencing_token = excluded.fencing_token,
           claimed_at = excluded.claimed_at, expires_at = excluded.expires_at, released_at = null;

    fencing_token := v_connection.lease_generation;
    expires_at := v_now + p_life;
    epoch := v_connection.epoch;
    state := v_connection.state;
    group_id := v_connection.group_id;
    features := v_connection.features;
    select a.requests_per_minute, least(f.requests_per_minute, a.requests_per_minute, v_connection.requests_per_minute)
      into account_limit, least_limit
      from accounts a, fleet_settings f
     where a.id = p_account and f.id = 1;
    return next;
end
$function$;

CREATE OR REPLACE FUNCTION telemetry_fresh()
 RETURNS interval
 LANGUAGE sql
 IMMUTABLE
AS $function$ select interval '6 minutes' $function$;

CREATE OR REPLACE FUNCTION telemetry_last_observed(p_club uuid, p_connection uuid, p_epoch timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE
AS $function$
    select s.observed_at
      from telemetry_samples s
     where s.club_id = p_club and s.connection_id = p_connection and s.epoch = p_epoch
       -- Nothing that was older when it came is kept: so an earlier epoch's samples need not be walked over.
       and s.observed_at >= p_epoch - interval '15 minutes'
     order by s.observed_at desc
     limit 1
$function$;

CREATE OR REPLACE FUNCTION telemetry_obstacle(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_now timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
    v_standing record;
begin
    if not key_is_current(p_account, p_generation, p_now) then
        return 'stale_key';
    elsif not lease_is_current(p_club, p_connection, p_account, p_worker, p_token, p_now) then
        return 'stale_lease';
    end if;
    select * into v_standing from connection_standing(p_club, p_connection, p_account, p_epoch, p_now);
    return case
        when v_standing.obstacle is distinct from 'none' then coalesce(v_standing.obstacle, 'epoch')
        when not 'analytics' = any (v_standing.features) then 'analytics_off'
        else 'none'
    end;
end
$function$;

CREATE OR REPLACE FUNCTION telemetry_unknown_after()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE
AS $function$ select 3 $function$;

CREATE OR REPLACE FUNCTION transient_retries()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN 2;

CREATE OR REPLACE FUNCTION usable_states()
 RETURNS text[]
 LANGUAGE sql
 IMMUTABLE
AS $function$ select array['active', 'degraded'] $function$;

CREATE OR REPLACE FUNCTION was_cancelled(p_status text, p_generation integer, p_reviewed integer)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ((p_status = 'cancelled'::text) OR (p_generation <> p_reviewed));

CREATE OR REPLACE FUNCTION worker_allowance(p_account uuid, p_generation integer, p_worker uuid, p_club uuid, p_connection uuid, p_epoch timestamp with time zone, p_token bigint, p_amount integer, p_is_write boolean)
 RETURNS TABLE(outcome text, least_limit integer, judged_at timestamp with time zone, window_ends_at timestamp with time zone, retry_at timestamp with time zone)
 LANGUAGE plpgsql
AS $function$
begin
    judged_at := lastcall_now();
    outcome := case
        when not key_is_current(p_account, p_generation, judged_at) then 'stale_key'
        when p_connection is null then null
        when not lease_is_current(p_club, p_connection, p_account, p_worker, p_token, judged_at) then 'stale_lease'
        when not exists (
            select from connections c where c.club_id = p_club and c.id = p_connection and c.epoch = p_epoch
        ) then 'epoch'
    end;
    if outcome is not null then
        return next;
    else
        return query select * from reserve_allowance(p_account, p_club, p_connection, p_amount, p_is_write);
    end if;
end
$function$;

CREATE OR REPLACE FUNCTION writes_allowed(p_joined_on date, p_writes_per_day integer, p_day date)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select least(p_writes_per_day,
                 case when p_day - p_joined_on < 7 then 50
                      when p_day - p_joined_on < 30 then 200
                      else p_writes_per_day end)
$function$;

CREATE OR REPLACE FUNCTION writes_reserved(p_account uuid, p_day date)
 RETURNS integer
 LANGUAGE sql
 STABLE
AS $function$
    select coalesce(
        (select a.writes from allowances a where a.scope = 'account:' || p_account and a.writes_day = p_day), 0)
$function$;
