-- Telling others: who is to be told of a job, and what became of each attempt to tell them.

CREATE SCHEMA deliver;
GRANT USAGE ON SCHEMA deliver TO trapline_worker, trapline_tenant;

-- A receiver of one job's events. Its deliveries go out one after the other, by one process at a time.
CREATE TABLE deliver.endpoint (
    id uuid PRIMARY KEY,
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    job_id uuid NOT NULL,
    -- The first word of its events' names: crawl, batch_scrape, extract.
    topic text NOT NULL CHECK (topic <> ''),
    url text NOT NULL CHECK (length(url) <= 16384),
    -- Of those that share a receiver only a few are told at once.
    receiver text NOT NULL,
    headers jsonb NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    -- Words or whole names of the events that it wants; empty: all.
    events text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    -- When there is something to send; null while there is not.
    due_at timestamptz,
    -- Who sends now, and until when others keep away.
    lease uuid,
    leased_until timestamptz NOT NULL DEFAULT 'epoch'
) WITH (fillfactor = 70);

CREATE INDEX endpoint_job_idx ON deliver.endpoint (job_id);
CREATE INDEX endpoint_due_idx ON deliver.endpoint (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX endpoint_organisation_idx ON deliver.endpoint (organisation_id, created_at);

-- One event for one receiver. The id is what the receiver tells repeated ones by.
CREATE TABLE deliver.delivery (
    endpoint_id uuid NOT NULL REFERENCES deliver.endpoint (id) ON DELETE CASCADE,
    -- The event's number in its job: deliveries are in this order.
    number bigint NOT NULL,
    id uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL,
    name text NOT NULL,
    -- The event itself, as the log has it.
    data jsonb NOT NULL DEFAULT '{}',
    -- pending: in its turn. aside: failed for a quarter of an hour, tried hourly beside the others.
    state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'aside', 'delivered', 'dead')),
    attempts integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    due_at timestamptz NOT NULL DEFAULT now(),
    first_attempt_at timestamptz,
    last_attempt_at timestamptz,
    delivered_at timestamptz,
    -- What the receiver answered last, or why it did not.
    answer smallint,
    error text,
    took_ms integer,
    PRIMARY KEY (endpoint_id, number),
    -- Whatever is not delivered says why, once it was tried.
    CHECK (state IN ('pending', 'delivered') OR error IS NOT NULL)
) WITH (fillfactor = 80);

CREATE INDEX delivery_open_idx ON deliver.delivery (endpoint_id, state, number)
WHERE state IN ('pending', 'aside');
CREATE INDEX delivery_dead_idx ON deliver.delivery (organisation_id, created_at) WHERE state = 'dead';
CREATE INDEX delivery_organisation_idx ON deliver.delivery (organisation_id, created_at);
CREATE INDEX delivery_created_idx ON deliver.delivery (created_at);

SELECT tenancy.isolate('deliver.endpoint');
SELECT tenancy.isolate('deliver.delivery');
