-- The queue: what someone asked for (job), its units of work (task) and where each of them is.
-- docs/state_machine.md draws the states; docs/decisions/010-queue-storage.md has the figures.
--
-- A task's row never changes. Its state is the table that holds its other row:
--   ready (may run now), waiting (may run later), overflow (beyond the job's limit),
--   leased (runs), done (ended). A task of an ended job without such a row was cancelled.

CREATE SCHEMA queue;
GRANT USAGE ON SCHEMA queue TO trapline_worker, trapline_tenant;

CREATE TABLE queue.job (
    id uuid PRIMARY KEY,
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    member_id uuid,
    kind text NOT NULL CHECK (kind <> ''),
    status text NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'running', 'paused', 'completed', 'failed', 'cancelled')),
    -- A standing job, such as the deliveries of an organisation, does not end when it runs dry.
    standing boolean NOT NULL DEFAULT false,
    priority smallint NOT NULL DEFAULT 0,
    parent_id uuid CHECK (parent_id <> id),
    retry_of uuid CHECK (retry_of <> id),
    retry_count integer NOT NULL DEFAULT 0,
    max_retries integer NOT NULL DEFAULT 3 CHECK (max_retries >= 0),
    round integer NOT NULL DEFAULT 1,
    options jsonb NOT NULL DEFAULT '{}',
    variables jsonb NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    trace_id uuid,
    zero_data_retention boolean NOT NULL DEFAULT false,

    -- Limits; null means none, and then nothing is counted for it.
    task_limit bigint CHECK (task_limit >= 0),
    max_active integer CHECK (max_active > 0),
    required_workers integer NOT NULL DEFAULT 1 CHECK (required_workers > 0),

    -- Counters. total = remaining + completed + failed + skipped + cancelled, always.
    total bigint NOT NULL DEFAULT 0,
    remaining bigint NOT NULL DEFAULT 0 CHECK (remaining >= 0),
    completed bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    skipped bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0,
    found bigint NOT NULL DEFAULT 0,
    from_sitemap bigint NOT NULL DEFAULT 0,
    -- Tasks that count against the limit, less those that ended skipped.
    reserved bigint NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    overflow bigint NOT NULL DEFAULT 0 CHECK (overflow >= 0),
    -- Tasks in flight; kept only while there is a max_active.
    active integer NOT NULL DEFAULT 0,
    last_event bigint NOT NULL DEFAULT 0,

    created_at timestamptz NOT NULL DEFAULT now(),
    scheduled_at timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    -- How long the job is kept once it has ended, well or badly.
    ttl interval NOT NULL DEFAULT '24 hours' CHECK (ttl > interval '0'),
    failed_ttl interval CHECK (failed_ttl > interval '0'),
    expires_at timestamptz,
    cancelled_by text,
    cancel_reason text,
    error text,
    -- Columns, since row-level security lets no function of one be looked up in an index.
    id_text varchar NOT NULL GENERATED ALWAYS AS (id::text) STORED,
    begun_at timestamptz NOT NULL GENERATED ALWAYS AS (coalesce(started_at, created_at)) STORED,
    CHECK (task_limit IS NULL OR reserved <= task_limit)
-- Every finished batch updates this row: room in the page keeps those updates off the indexes.
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX job_organisation_idx ON queue.job (organisation_id, created_at DESC, id DESC);
CREATE INDEX job_organisation_status_idx
ON queue.job (organisation_id, status, created_at DESC, id DESC);
CREATE INDEX job_open_idx ON queue.job (kind) WHERE status IN ('pending', 'running', 'paused');
CREATE INDEX job_expires_idx ON queue.job (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX job_retry_of_idx ON queue.job (retry_of) WHERE retry_of IS NOT NULL;
-- For questions over all organisations: what began or was made lately, and a job by its id as text.
CREATE INDEX job_begun_idx ON queue.job (begun_at);
CREATE INDEX job_created_idx ON queue.job USING brin (created_at) WITH (pages_per_range = 16);
CREATE INDEX job_text_idx ON queue.job (id_text);
CREATE UNIQUE INDEX job_standing_key ON queue.job (organisation_id, kind) WHERE standing;

-- Where tasks are paced: a host for fetches, a kind for the rest; shared by all organisations.
CREATE TABLE queue.gate (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name <> ''),
    gap interval NOT NULL DEFAULT '0' CHECK (gap >= interval '0'),
    -- What no job's wish goes below: a robots.txt's Crawl-delay.
    floor interval NOT NULL DEFAULT '0' CHECK (floor >= interval '0'),
    bound integer CHECK (bound > 0),
    ready_at timestamptz NOT NULL DEFAULT 'epoch',
    in_flight integer NOT NULL DEFAULT 0,
    -- The exponent of the gap: rises when the host asks for less, falls with success.
    pressure smallint NOT NULL DEFAULT 0,
    -- Until then workers leave one place to a caller who waits for it.
    kept_until timestamptz NOT NULL DEFAULT 'epoch',
    updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- One job's line at one gate.
CREATE TABLE queue.lane (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id uuid NOT NULL,
    job_id uuid NOT NULL,
    gate_id bigint NOT NULL,
    priority smallint NOT NULL DEFAULT 0,
    -- Not open: the job is paused or has ended. Claims never look at such a lane's tasks.
    open boolean NOT NULL DEFAULT true,
    -- Not awake: found empty for a while. Whoever adds a task wakes it.
    awake boolean NOT NULL DEFAULT true,
    -- What the job wishes instead of the gate's gap and bound.
    gap interval CHECK (gap >= interval '0'),
    bound integer CHECK (bound > 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (job_id, gate_id)
) WITH (fillfactor = 80);

CREATE INDEX lane_served_idx ON queue.lane (organisation_id, priority, id) WHERE open AND awake;

CREATE TABLE queue.task (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id uuid NOT NULL,
    job_id uuid NOT NULL,
    lane_id bigint NOT NULL,
    gate_id bigint NOT NULL,
    parent_id bigint,
    kind text NOT NULL,
    payload jsonb NOT NULL,
    priority smallint NOT NULL DEFAULT 0,
    max_attempts smallint NOT NULL CHECK (max_attempts > 0),
    timeout interval,
    deadline timestamptz,
    -- Whether it counts against the job's limit.
    counted boolean NOT NULL DEFAULT true,
    -- 0 submitted, 1 found in a page, 2 from a sitemap
    source smallint NOT NULL DEFAULT 0,
    trace_id uuid,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX task_job_idx ON queue.task (job_id, id);
-- Few: what a job does beside its pages. Status calls count them.
CREATE INDEX task_uncounted_idx ON queue.task (job_id) WHERE NOT counted;

-- What was made lately. The table is written in the order of time, so this costs next to nothing.
CREATE INDEX task_created_idx ON queue.task USING brin (created_at) WITH (autosummarize = on);

-- The order of tasks within a lane and a priority; a retry gets a new number.
CREATE SEQUENCE queue.turn_number;

CREATE TABLE queue.ready (
    lane_id bigint NOT NULL,
    priority smallint NOT NULL,
    turn bigint NOT NULL DEFAULT nextval('queue.turn_number'),
    task_id bigint NOT NULL,
    attempts smallint NOT NULL DEFAULT 0,
    stalls smallint NOT NULL DEFAULT 0,
    deadline timestamptz,
    PRIMARY KEY (lane_id, priority, turn)
);

CREATE INDEX ready_deadline_idx ON queue.ready (deadline) WHERE deadline IS NOT NULL;
-- Claims go by the key; this is for questions that begin at a task. Ids ascend, so it grows at its end.
CREATE INDEX ready_task_idx ON queue.ready (task_id);

CREATE TABLE queue.waiting (
    task_id bigint PRIMARY KEY,
    lane_id bigint NOT NULL,
    priority smallint NOT NULL,
    run_at timestamptz NOT NULL,
    attempts smallint NOT NULL DEFAULT 0,
    stalls smallint NOT NULL DEFAULT 0,
    deadline timestamptz
);

CREATE INDEX waiting_run_at_idx ON queue.waiting (run_at);
CREATE INDEX waiting_deadline_idx ON queue.waiting (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX waiting_lane_idx ON queue.waiting (lane_id);

-- Tasks beyond their job's limit, which take the place of one that ends skipped.
CREATE TABLE queue.overflow (
    job_id uuid NOT NULL,
    task_id bigint NOT NULL,
    PRIMARY KEY (job_id, task_id)
);

CREATE TABLE queue.agent (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid uuid NOT NULL UNIQUE,
    name text NOT NULL,
    user_agent text,
    host text NOT NULL,
    pid integer NOT NULL,
    capacity integer NOT NULL,
    kinds text[] NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    heartbeat_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    died boolean NOT NULL DEFAULT false
);

CREATE INDEX agent_alive_idx ON queue.agent (id) WHERE finished_at IS NULL;

-- One row per claim: its tasks are renewed together, by one small update.
CREATE TABLE queue.lease (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    agent_id bigint NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);

CREATE INDEX lease_expires_idx ON queue.lease (expires_at);
CREATE INDEX lease_agent_idx ON queue.lease (agent_id);

CREATE TABLE queue.leased (
    lease_id bigint NOT NULL,
    task_id bigint NOT NULL,
    lane_id bigint NOT NULL,
    priority smallint NOT NULL,
    attempts smallint NOT NULL,
    stalls smallint NOT NULL,
    -- What this claim was counted in, and must be taken out of: 1 gate, 2 job, 4 organisation.
    -- 8: it is its caller's own, so nobody else runs it when the caller dies. 16: it is among the
    -- pages of its organisation's day, and stays there unless it comes to nothing.
    slots smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (lease_id, task_id)
);

CREATE TABLE queue.done (
    task_id bigint PRIMARY KEY,
    -- 0 completed, 1 failed, 2 skipped, 3 cancelled
    status smallint NOT NULL CHECK (status BETWEEN 0 AND 3),
    -- How it ended, as in trapline.errors.ExitCode; null for a plain success.
    code smallint,
    attempts smallint NOT NULL,
    stalls smallint NOT NULL,
    agent_id bigint,
    started_at timestamptz,
    finished_at timestamptz NOT NULL DEFAULT now(),
    error text,
    result jsonb,
    -- Failing always has a reason.
    CHECK (status <> 1 OR error IS NOT NULL)
);

CREATE INDEX done_started_idx ON queue.done USING brin (started_at) WITH (autosummarize = on);

CREATE TABLE queue.dead_letter (
    task_id bigint PRIMARY KEY,
    organisation_id uuid NOT NULL,
    job_id uuid NOT NULL,
    kind text NOT NULL,
    code smallint,
    error text NOT NULL,
    failed_at timestamptz NOT NULL DEFAULT now(),
    resolved_at timestamptz,
    resolved_by text,
    resolution text CHECK (resolution IN ('retried', 'resolved')),
    retried_in uuid
);

CREATE INDEX dead_letter_open_idx ON queue.dead_letter (organisation_id, failed_at)
WHERE resolved_at IS NULL;
CREATE INDEX dead_letter_job_idx ON queue.dead_letter (job_id, task_id);

-- scope is a job or an organisation; key is a 128-bit hash of what must be there once.
CREATE TABLE queue.unique_key (
    scope uuid NOT NULL,
    key uuid NOT NULL,
    job_id uuid NOT NULL,
    task_id bigint NOT NULL,
    expires_at timestamptz,
    PRIMARY KEY (scope, key)
);

CREATE INDEX unique_key_expires_idx ON queue.unique_key (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX unique_key_job_idx ON queue.unique_key (job_id) WHERE scope <> job_id;

-- Slots and pages that an organisation's tasks hold; a row only where tenancy.organisation has a limit.
CREATE TABLE queue.quota (
    organisation_id uuid PRIMARY KEY,
    active integer NOT NULL DEFAULT 0,
    -- Pages that were visited, or are being visited, on the latest day (UTC) with any.
    day date NOT NULL DEFAULT 'epoch',
    pages bigint NOT NULL DEFAULT 0,
    -- As of a gate.
    kept_until timestamptz NOT NULL DEFAULT 'epoch'
) WITH (fillfactor = 50);

-- The event log. Numbers are gapless per job; (xid, id) is a safe order over all jobs.
CREATE TABLE queue.event (
    job_id uuid NOT NULL,
    number bigint NOT NULL,
    organisation_id uuid NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    type text NOT NULL,
    task_id bigint,
    data jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, number)
);

CREATE INDEX event_feed_idx ON queue.event (xid, id);

-- How far each consumer of the whole log has read.
CREATE TABLE queue.consumer (
    name text PRIMARY KEY,
    xid xid8 NOT NULL DEFAULT '0',
    event_id bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- What a job's steps say, by month.
CREATE TABLE queue.job_log (
    id bigint GENERATED ALWAYS AS IDENTITY,
    organisation_id uuid NOT NULL,
    job_id uuid NOT NULL,
    site_id uuid,
    step text NOT NULL,
    level text NOT NULL CHECK (level IN ('DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL')),
    message text NOT NULL,
    context jsonb NOT NULL DEFAULT '{}',
    trace_id uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (created_at, id)
) PARTITION BY RANGE (created_at);

CREATE INDEX job_log_job_idx ON queue.job_log (job_id, created_at);
CREATE INDEX job_log_site_idx ON queue.job_log (site_id, created_at) WHERE site_id IS NOT NULL;
CREATE INDEX job_log_trace_idx ON queue.job_log (trace_id) WHERE trace_id IS NOT NULL;

-- Deltas by kind, inserted by workers and folded by maintenance into one row a minute.
CREATE TABLE queue.statistic (
    id bigint GENERATED ALWAYS AS IDENTITY,
    kind text NOT NULL,
    minute timestamptz NOT NULL,
    completed bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    skipped bigint NOT NULL DEFAULT 0,
    retried bigint NOT NULL DEFAULT 0,
    stalled bigint NOT NULL DEFAULT 0,
    seconds double precision NOT NULL DEFAULT 0,
    folded boolean NOT NULL DEFAULT false,
    PRIMARY KEY (minute, id)
) PARTITION BY RANGE (minute);

CREATE INDEX statistic_unfolded_idx ON queue.statistic (minute) WHERE NOT folded;

-- When each duty of maintenance last ran, and how it went.
CREATE TABLE queue.duty (
    name text PRIMARY KEY,
    ran_at timestamptz NOT NULL DEFAULT now(),
    took interval NOT NULL,
    did bigint NOT NULL,
    error text
);

-- What the functions in ../functions/queue_*.sql are handed.

-- A task to be added. key_scope and key are null where it may be there twice.
CREATE TYPE queue.new_task AS (
    job_id uuid,
    gate text,
    kind text,
    payload text,
    parent_id bigint,
    priority smallint,
    max_attempts smallint,
    timeout interval,
    run_at timestamptz,
    deadline timestamptz,
    counted boolean,
    source smallint,
    trace_id uuid,
    key_scope uuid,
    key uuid,
    key_expires_at timestamptz
);

-- A job whose one task is run by who asks for it.
CREATE TYPE queue.new_direct AS (
    id uuid,
    organisation_id uuid,
    member_id uuid,
    kind text,
    priority smallint,
    options text,
    metadata text,
    trace_id uuid,
    zero_data_retention boolean,
    ttl interval,
    failed_ttl interval
);

-- A gate that tasks name, with what it starts from and what this job wishes there.
CREATE TYPE queue.new_gate AS (
    name text,
    gap interval,
    bound integer,
    lane_gap interval,
    lane_bound integer
);

-- What an attempt came to: 0 completed, 1 failed, 2 skipped, 3 cancelled, 4 retry, 5 stalled, 6 released.
CREATE TYPE queue.verdict AS (
    lease_id bigint,
    task_id bigint,
    verdict smallint,
    code smallint,
    result text,
    error text,
    run_at timestamptz
);

-- A verdict whose lease held, with all that settling it needs.
CREATE TYPE queue.ending AS (
    task_id bigint,
    verdict smallint,
    code smallint,
    result text,
    error text,
    run_at timestamptz,
    lane_id bigint,
    job_id uuid,
    organisation_id uuid,
    gate_id bigint,
    priority smallint,
    attempts smallint,
    stalls smallint,
    slots smallint,
    agent_id bigint,
    claimed_at timestamptz
);

-- What a batch comes to for one job.
CREATE TYPE queue.tally AS (
    job_id uuid,
    organisation_id uuid,
    completed bigint,
    failed bigint,
    skipped bigint,
    cancelled bigint,
    slots bigint
);

CREATE TYPE queue.new_event AS (
    job_id uuid,
    task_id bigint,
    type text,
    data text
);

-- What a visit taught about a gate.
CREATE TYPE queue.gate_change AS (
    gate_id bigint,
    gap interval,
    pressure smallint,
    not_before timestamptz
);

-- How many tasks a worker wants of a lane, after which position, up to which priority.
CREATE TYPE queue.want AS (
    lane_id bigint,
    take integer,
    after_priority smallint,
    after_turn bigint,
    to_priority smallint,
    limited boolean
);

-- One of three: a task (task_id), a lane that cannot be served now (lane_id), a job with news (job_id).
CREATE TYPE queue.claimed AS (
    task_id bigint,
    lane_id bigint,
    lease_id bigint,
    priority smallint,
    turn bigint,
    attempts smallint,
    stalls smallint,
    kind text,
    payload text,
    max_attempts smallint,
    timeout interval,
    deadline timestamptz,
    trace_id uuid,
    blocked_by text,
    blocked_until timestamptz,
    job_id uuid,
    job_status text
);

-- Maintenance makes the partitions of the months to come; the default one holds what is before them.
CREATE TABLE queue.job_log_default PARTITION OF queue.job_log DEFAULT;
CREATE TABLE queue.statistic_default PARTITION OF queue.statistic DEFAULT;

-- These churn: vacuum by the rows that died, not by a share of the table.
ALTER TABLE queue.ready SET (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE queue.leased SET (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 1);
ALTER TABLE queue.waiting SET (autovacuum_vacuum_scale_factor = 0.01);
ALTER TABLE queue.lease SET (autovacuum_vacuum_scale_factor = 0.01);

SELECT tenancy.isolate('queue.job');
SELECT tenancy.isolate('queue.lane');
SELECT tenancy.isolate('queue.task');
SELECT tenancy.isolate('queue.dead_letter');
SELECT tenancy.isolate('queue.event');
SELECT tenancy.isolate('queue.quota');
SELECT tenancy.isolate('queue.job_log');
SELECT tenancy.isolate('queue.job_log_default');
-- Without an organisation of their own, so that they stay narrow; they are their lane's or task's.
SELECT tenancy.isolate('queue.ready', 'lane_id IN (SELECT l.id FROM queue.lane l)');
SELECT tenancy.isolate('queue.waiting', 'lane_id IN (SELECT l.id FROM queue.lane l)');
SELECT tenancy.isolate('queue.leased', 'EXISTS (SELECT FROM queue.lane l WHERE l.id = lane_id)');
SELECT tenancy.isolate('queue.overflow', 'EXISTS (SELECT FROM queue.job j WHERE j.id = job_id)');
SELECT tenancy.isolate('queue.done', 'EXISTS (SELECT FROM queue.task t WHERE t.id = task_id)');
SELECT tenancy.isolate('queue.unique_key', 'EXISTS (SELECT FROM queue.job j WHERE j.id = job_id)');
SELECT tenancy.share('queue.gate');
SELECT tenancy.share('queue.agent');
SELECT tenancy.share('queue.lease');
SELECT tenancy.share('queue.statistic');
SELECT tenancy.share('queue.duty');
GRANT SELECT, INSERT, UPDATE, DELETE ON queue.consumer TO trapline_worker;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA queue TO trapline_worker, trapline_tenant;

-- Only workers run tasks; a tenant asks for them and sees them.
REVOKE INSERT, UPDATE, DELETE ON queue.leased, queue.done, queue.quota FROM trapline_tenant;
REVOKE UPDATE, DELETE ON queue.event, queue.job_log FROM trapline_tenant;
