-- Schedules: rules that make jobs. What the jobs are is in the template, which the queue only keeps.

CREATE TABLE queue.schedule (
    id uuid PRIMARY KEY,
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    name text NOT NULL CHECK (name <> '' AND length(name) <= 200),
    -- By what it is found and sorted. A column, since row-level security lets no function of one be
    -- looked up in an index.
    name_key text NOT NULL GENERATED ALWAYS AS (lower(name)) STORED,
    kind text NOT NULL CHECK (kind IN ('one_time', 'scheduled', 'recurring')),
    -- Of a recurring one: five cron fields in its time zone, or a fixed number of seconds.
    cron text CHECK (length(cron) <= 200),
    every interval CHECK (every > interval '0'),
    timezone text NOT NULL DEFAULT 'UTC',
    -- Nothing before, the first tick of an interval, or the one tick of kind scheduled.
    starts_at timestamptz,
    ends_at timestamptz,
    -- What it is for, so that it can be found; the template says what is done.
    site_id uuid,
    application_id uuid,
    template jsonb NOT NULL,
    -- 1 to 10, higher first, as people say it.
    importance smallint NOT NULL DEFAULT 5 CHECK (importance BETWEEN 1 AND 10),
    overlap boolean NOT NULL DEFAULT false,
    -- How late a missed tick is still worth a job; null: as the setting says.
    catch_up interval CHECK (catch_up >= interval '0'),
    paused_at timestamptz,
    -- The tick that is next; null when it is paused or has no more.
    next_at timestamptz,
    last_tick timestamptz,
    last_job_id uuid,
    created_by text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((kind = 'recurring') = (num_nonnulls(cron, every) = 1)),
    CHECK (kind <> 'scheduled' OR starts_at IS NOT NULL),
    CHECK (paused_at IS NULL OR next_at IS NULL)
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX schedule_name_key ON queue.schedule (organisation_id, name_key);
CREATE INDEX schedule_organisation_idx ON queue.schedule (organisation_id, created_at DESC, id DESC);
-- What ticks next comes first; what has no next tick comes last.
CREATE INDEX schedule_next_idx ON queue.schedule (
    organisation_id,
    (CASE WHEN next_at IS NULL THEN '9000-01-01 00:00:00+00'::timestamptz ELSE next_at END), id);
CREATE INDEX schedule_due_idx ON queue.schedule (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedule_site_idx ON queue.schedule (site_id) WHERE site_id IS NOT NULL;

-- What became of each tick, the skipped ones too.
CREATE TABLE queue.schedule_run (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule_id uuid NOT NULL REFERENCES queue.schedule (id) ON DELETE CASCADE,
    organisation_id uuid NOT NULL,
    tick timestamptz NOT NULL,
    -- Someone asked for it; it is no tick of the rule.
    manual boolean NOT NULL DEFAULT false,
    outcome text NOT NULL CHECK (outcome IN ('created', 'missed', 'overlapped', 'failed')),
    job_id uuid,
    detail text,
    -- What its job came to, as its maker counts it; written once that is final.
    summary jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((outcome = 'created') = (job_id IS NOT NULL)),
    CHECK (outcome = 'created' OR detail IS NOT NULL)
);

-- One creation a tick, whoever makes it.
CREATE UNIQUE INDEX schedule_run_tick_key ON queue.schedule_run (schedule_id, tick) WHERE NOT manual;
CREATE INDEX schedule_run_recent_idx ON queue.schedule_run (schedule_id, id DESC);
CREATE INDEX schedule_run_created_idx ON queue.schedule_run (created_at);

SELECT tenancy.isolate('queue.schedule');
SELECT tenancy.isolate('queue.schedule_run');
GRANT USAGE ON SEQUENCE queue.schedule_run_id_seq TO trapline_worker, trapline_tenant;
