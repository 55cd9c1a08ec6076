-- What outlives the logs, and what must not live long.

-- The logs of a day, counted before their month is dropped.
CREATE TABLE queue.job_log_day (
    organisation_id uuid NOT NULL,
    day date NOT NULL,
    step text NOT NULL,
    level text NOT NULL,
    lines bigint NOT NULL,
    PRIMARY KEY (organisation_id, day, step, level)
);

CREATE TABLE queue.statistic_day (
    day date NOT NULL,
    kind text NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    skipped bigint NOT NULL,
    retried bigint NOT NULL,
    stalled bigint NOT NULL,
    seconds double precision NOT NULL,
    PRIMARY KEY (day, kind)
);

CREATE TABLE archive.visit_day (
    organisation_id uuid NOT NULL,
    site_id uuid NOT NULL,
    day date NOT NULL,
    crawl_type smallint NOT NULL,
    exit_code smallint NOT NULL,
    visits bigint NOT NULL,
    took_ms bigint NOT NULL,
    PRIMARY KEY (organisation_id, site_id, day, crawl_type, exit_code)
);

-- Content of jobs that ask for zero data retention: read for an hour, then dropped with its slice
-- of a quarter of an hour. It is in no other table, and never in a blob.
CREATE TABLE store.fleeting (
    organisation_id uuid NOT NULL,
    job_id uuid NOT NULL,
    task_id bigint NOT NULL,
    stored_at timestamptz NOT NULL,
    url text NOT NULL,
    status smallint,
    content_type text,
    title text,
    language text,
    page_type text,
    text text NOT NULL,
    markdown text NOT NULL,
    metadata jsonb NOT NULL,
    links jsonb NOT NULL,
    warning text,
    -- As they came, so that they can be read in another way.
    body bytea NOT NULL,
    compressed boolean NOT NULL,
    PRIMARY KEY (stored_at, task_id)
) PARTITION BY RANGE (stored_at);

CREATE INDEX fleeting_job_idx ON store.fleeting (job_id, task_id);

-- Maintenance makes the slices ahead; this one catches what comes before it has begun.
CREATE TABLE store.fleeting_default PARTITION OF store.fleeting DEFAULT;

SELECT tenancy.isolate('queue.job_log_day');
SELECT tenancy.share('queue.statistic_day');
SELECT tenancy.isolate('archive.visit_day');
SELECT tenancy.isolate('store.fleeting');
SELECT tenancy.isolate('store.fleeting_default');
REVOKE INSERT, UPDATE, DELETE ON queue.job_log_day, archive.visit_day FROM trapline_tenant;
REVOKE INSERT, UPDATE, DELETE ON store.fleeting, store.fleeting_default FROM trapline_tenant;

-- ANALYZE would keep samples of these after the rows are gone, and no plan needs them.
ALTER TABLE store.fleeting ALTER COLUMN url SET STATISTICS 0, ALTER COLUMN title SET STATISTICS 0,
    ALTER COLUMN text SET STATISTICS 0, ALTER COLUMN markdown SET STATISTICS 0,
    ALTER COLUMN metadata SET STATISTICS 0, ALTER COLUMN links SET STATISTICS 0,
    ALTER COLUMN body SET STATISTICS 0;
ALTER TABLE queue.task ALTER COLUMN payload SET STATISTICS 0;
ALTER TABLE queue.done ALTER COLUMN result SET STATISTICS 0, ALTER COLUMN error SET STATISTICS 0;
ALTER TABLE queue.dead_letter ALTER COLUMN error SET STATISTICS 0;
ALTER TABLE queue.event ALTER COLUMN data SET STATISTICS 0;
ALTER TABLE queue.job ALTER COLUMN options SET STATISTICS 0,
    ALTER COLUMN variables SET STATISTICS 0, ALTER COLUMN metadata SET STATISTICS 0;
