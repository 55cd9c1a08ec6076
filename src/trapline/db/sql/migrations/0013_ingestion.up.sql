-- How far sources and applications are, and what Firecrawl elsewhere tells of its crawls.

-- Items by the source or application that they are of, the job that handles them and the minute
-- when that job was made. Whoever adds or ends items adds what changed; maintenance makes one row of
-- it. So progress reads a few rows however many items there are, and nobody waits for a counter.
CREATE TABLE knowledge.tally (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id uuid NOT NULL,
    scope uuid NOT NULL,
    -- Null once the job has ended: what was left of it has been cancelled.
    job_id uuid,
    minute timestamptz NOT NULL,
    total bigint NOT NULL DEFAULT 0,
    completed bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0,
    folded boolean NOT NULL DEFAULT false
) WITH (autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX tally_scope_idx ON knowledge.tally (scope, minute);
CREATE INDEX tally_unfolded_idx ON knowledge.tally (id) WHERE NOT folded;
CREATE INDEX tally_job_idx ON knowledge.tally (job_id) WHERE job_id IS NOT NULL;

-- What was told to us, by the id that its sender gave it: once, however often it is sent.
CREATE TABLE deliver.inbox (
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    message_id uuid NOT NULL,
    sender text NOT NULL,
    type text NOT NULL,
    -- What it is about, by the sender's name for it.
    subject text NOT NULL,
    -- The text that came with it, in store.blob.
    sha256 bytea CHECK (length(sha256) = 32),
    received_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organisation_id, message_id)
);

CREATE INDEX inbox_received_idx ON deliver.inbox (received_at);
CREATE INDEX inbox_sha256_idx ON deliver.inbox (sha256) WHERE sha256 IS NOT NULL;

-- A crawl of a Firecrawl elsewhere, and the job that takes in its pages.
CREATE TABLE knowledge.intake (
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    crawl text NOT NULL CHECK (crawl <> '' AND length(crawl) <= 300),
    source_id uuid NOT NULL REFERENCES knowledge.source (id) ON DELETE CASCADE,
    job_id uuid NOT NULL,
    -- The task that keeps the job open until the crawl has ended.
    task_id bigint NOT NULL,
    ended text CHECK (ended IN ('completed', 'failed', 'cancelled')),
    error text,
    pages bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz,
    PRIMARY KEY (organisation_id, crawl)
);

CREATE INDEX intake_source_idx ON knowledge.intake (source_id);
CREATE INDEX intake_job_idx ON knowledge.intake (job_id);

SELECT tenancy.isolate('knowledge.tally');
SELECT tenancy.isolate('deliver.inbox');
SELECT tenancy.isolate('knowledge.intake');
GRANT USAGE ON ALL SEQUENCES IN SCHEMA knowledge TO trapline_worker, trapline_tenant;
