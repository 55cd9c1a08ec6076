-- How long things took: requests to the API, and what is done to a document. Both are written a
-- batch at a time, beside the work that they measure, and go by month as the other logs do.

CREATE SCHEMA measure;
GRANT USAGE ON SCHEMA measure TO trapline_worker, trapline_tenant;

CREATE TABLE measure.operation (
    id bigint GENERATED ALWAYS AS IDENTITY,
    recorded_at timestamptz NOT NULL,
    organisation_id uuid NOT NULL,
    -- chunking, embedding, vector, bm25, or another word for what was done
    type text NOT NULL,
    name text NOT NULL,
    milliseconds double precision NOT NULL,
    -- Null if it went well.
    error text,
    request_id uuid,
    job_id uuid,
    task_id bigint,
    document_url text,
    extra jsonb,
    PRIMARY KEY (recorded_at, id)
) PARTITION BY RANGE (recorded_at);

CREATE INDEX operation_job_idx ON measure.operation (job_id, recorded_at) WHERE job_id IS NOT NULL;
CREATE INDEX operation_organisation_idx ON measure.operation (organisation_id, recorded_at, id);

CREATE TABLE measure.request (
    id bigint GENERATED ALWAYS AS IDENTITY,
    recorded_at timestamptz NOT NULL,
    -- Null where nobody was known to ask: those are for administrators.
    organisation_id uuid,
    method text NOT NULL,
    path text NOT NULL,
    -- The pattern that the path fits, of which there are few.
    route text NOT NULL,
    status smallint NOT NULL,
    milliseconds double precision NOT NULL,
    request_id uuid NOT NULL,
    client text,
    user_agent text,
    extra jsonb,
    PRIMARY KEY (recorded_at, id)
) PARTITION BY RANGE (recorded_at);

CREATE INDEX request_organisation_idx ON measure.request (organisation_id, recorded_at, id);

-- What a job's operations took together. Every process adds to it every few seconds.
CREATE TABLE measure.job_time (
    job_id uuid NOT NULL,
    type text NOT NULL,
    organisation_id uuid NOT NULL,
    operations bigint NOT NULL,
    failures bigint NOT NULL,
    milliseconds double precision NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, type)
) WITH (fillfactor = 70);

CREATE INDEX job_time_created_idx ON measure.job_time (created_at);

-- The days of a month, added up before it is dropped.
CREATE TABLE measure.operation_day (
    organisation_id uuid NOT NULL,
    day date NOT NULL,
    type text NOT NULL,
    name text NOT NULL,
    operations bigint NOT NULL,
    failures bigint NOT NULL,
    milliseconds double precision NOT NULL,
    slowest double precision NOT NULL,
    PRIMARY KEY (organisation_id, day, type, name)
);

CREATE TABLE measure.request_day (
    organisation_id uuid,
    day date NOT NULL,
    method text NOT NULL,
    route text NOT NULL,
    status smallint NOT NULL,
    requests bigint NOT NULL,
    milliseconds double precision NOT NULL,
    slowest double precision NOT NULL,
    CONSTRAINT request_day_key UNIQUE NULLS NOT DISTINCT (organisation_id, day, method, route, status)
);

-- A job that is gone, for those who ask what was done: without what it found, by the month of its end.
CREATE TABLE queue.past_job (
    id uuid NOT NULL,
    organisation_id uuid NOT NULL,
    kind text NOT NULL,
    status text NOT NULL,
    base_url text NOT NULL,
    -- Pages; what a job does beside them is in none of these.
    total bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    indexed bigint NOT NULL,
    auto_index boolean NOT NULL,
    metadata jsonb NOT NULL,
    error text,
    created_at timestamptz NOT NULL,
    started_at timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    expired_at timestamptz,
    id_text varchar NOT NULL GENERATED ALWAYS AS (id::text) STORED,
    PRIMARY KEY (finished_at, id)
) PARTITION BY RANGE (finished_at);

CREATE INDEX past_job_started_idx ON queue.past_job (started_at);
CREATE INDEX past_job_text_idx ON queue.past_job (id_text);
CREATE INDEX past_job_id_idx ON queue.past_job (id);
CREATE TABLE queue.past_job_default PARTITION OF queue.past_job DEFAULT;

-- Maintenance makes the partitions of the months to come; the default one holds what is before them.
CREATE TABLE measure.operation_default PARTITION OF measure.operation DEFAULT;
CREATE TABLE measure.request_default PARTITION OF measure.request DEFAULT;

SELECT tenancy.isolate(t)
FROM unnest(ARRAY[
    'measure.operation', 'measure.operation_default', 'measure.request', 'measure.request_default',
    'queue.past_job', 'queue.past_job_default', 'measure.job_time', 'measure.operation_day', 'measure.request_day'
]::regclass[]) AS t;
-- A tenant sees what its own took; only the system measures.
REVOKE INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA measure FROM trapline_tenant;
REVOKE INSERT, UPDATE, DELETE ON queue.past_job, queue.past_job_default FROM trapline_tenant;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA measure TO trapline_worker;
